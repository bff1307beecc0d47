import { expect, test } from "bun:test";
import { withAllocatorDefaults } from "../../../scripts/allocator.ts";

const DELAY = 15;
const INTERVAL = 52;
const DEFAULTS = new Map([
  [DELAY, 100],
  [50, 1],
  [51, 0],
  [INTERVAL, 100],
  [53, 64],
  [54, 4_096],
  [55, 256],
]);

/** The options of mimalloc, side by side; others than these are 7. */
function options(defaults: ReadonlyMap<number, number> = DEFAULTS): Buffer {
  const table = Buffer.alloc(32 * 60, 0xee);
  for (let i = 0; i < 60; i++) {
    table.writeBigInt64LE(BigInt(defaults.get(i) ?? 7), 32 * i);
    table.writeBigInt64LE(BigInt(i) << 32n, 32 * i + 8);
  }
  return table;
}

const around = (...parts: Buffer[]) => Buffer.concat(parts.flatMap((part) => [Buffer.from("code and data"), part]));

test("the allocator's delay and interval are others, and nothing else of the runtime", () => {
  const runtime = around(options(new Map([[50, 1]])), options(), Buffer.from("the end"));
  const before = Buffer.from(runtime);
  const changed = withAllocatorDefaults(runtime);
  expect(runtime.equals(before)).toBe(true);
  for (const [number, milliseconds] of [
    [DELAY, 1_000n],
    [INTERVAL, 5_000n],
  ] as const) {
    const at = runtime.lastIndexOf(options()) + 32 * number;
    expect(changed.readBigInt64LE(at)).toBe(milliseconds);
    changed.writeBigInt64LE(100n, at);
  }
  expect(changed.equals(before)).toBe(true);
});

test.each([
  ["none", around(options(new Map([...DEFAULTS, [55, 512]])), options(new Map([...DEFAULTS, [DELAY, 10]])))],
  ["two", around(options(), options())],
])("a runtime with %s of the known table of options is refused", (_, runtime) => {
  expect(() => withAllocatorDefaults(runtime)).toThrow("times in it instead of once");
});
