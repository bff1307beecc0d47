import { expect, test } from "bun:test";
import { withAllocatorDefaults } from "../../../scripts/allocator.ts";

const DEFAULTS = [1, 0, 100, 64, 4_096, 256];
const FIRST = 50;
const INTERVAL_AT = 2 * 32;

/** Options side by side, as mimalloc has them. */
function options(defaults = DEFAULTS): Buffer {
  const table = Buffer.alloc(32 * defaults.length, 0xee);
  for (const [i, value] of defaults.entries()) {
    table.writeBigInt64LE(BigInt(value), 32 * i);
    table.writeBigInt64LE(BigInt(FIRST + i) << 32n, 32 * i + 8);
  }
  return table;
}

const around = (...parts: Buffer[]) => Buffer.concat(parts.flatMap((part) => [Buffer.from("code and data"), part]));

test("the allocator's interval is another one, and nothing else of the runtime", () => {
  const runtime = around(options([1, 0, 100]), options(), Buffer.from("the end"));
  const before = Buffer.from(runtime);
  const changed = withAllocatorDefaults(runtime);
  expect(runtime.equals(before)).toBe(true);
  const at = runtime.lastIndexOf(options()) + INTERVAL_AT;
  expect(changed.readBigInt64LE(at)).toBe(5_000n);
  changed.writeBigInt64LE(100n, at);
  expect(changed.equals(before)).toBe(true);
});

test.each([
  ["none", around(options([1, 0, 100, 64, 4_096, 512]))],
  ["two", around(options(), options())],
])("a runtime with %s of the known table of options is refused", (_, runtime) => {
  expect(() => withAllocatorDefaults(runtime)).toThrow("times in it instead of once");
});
