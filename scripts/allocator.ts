/**
 * Defaults of the memory allocator in the Bun that becomes part of the executable.
 *
 * The allocator, mimalloc, gives the system back what is free between blocks in use ("holes"), in Bun ten times a second. A busy server
 * needs the same memory again at once, and gets it a page fault at a time: every 5 seconds is soon enough for what is free for good, and with
 * 10 to 30 a change took .91 to .95 of the CPU, a search .92. The allocator reads its options before any code of ours runs, so the default in
 * the file is another one. `MIMALLOC_PURGE_HOLES_MIN_INTERVAL` (milliseconds) in the environment still decides.
 *
 * ```
 * an option   value int64  |  state int32, 0: the default  |  its number int32  |  its name, and an older one: pointers
 * ```
 * Little-endian, one after the other by number.
 *
 * @module
 */
import { Failure } from "./failure.ts";

const OPTION_BYTES = 32;
/** Number and default of some options side by side, by which the table is known. */
const KNOWN = [
  [50, 1],
  [51, 0],
  [52, 100],
  [53, 64],
  [54, 4_096],
  [55, 256],
] as const;
const PURGE_HOLES_MIN_INTERVAL = 52;
const INTERVAL_MS = 5_000;

/**
 * Returns a Bun with these defaults.
 *
 * @throws {Failure} where its options are not found, or twice: another version may have others
 */
export function withAllocatorDefaults(runtime: Buffer): Buffer {
  const [first] = KNOWN;
  const head = option(...first);
  const found: number[] = [];
  for (let at = runtime.indexOf(head); at !== -1; at = runtime.indexOf(head, at + 1)) {
    const isTable = KNOWN.every(([number, value]) => {
      const from = at + OPTION_BYTES * (number - first[0]);
      return runtime.subarray(from, from + head.length).equals(option(number, value));
    });
    if (isTable) found.push(at);
  }
  const [table, ...others] = found;
  if (table === undefined || others.length > 0)
    throw new Failure(`The options of Bun's memory allocator were found ${found.length} times in it instead of once.`);
  const changed = Buffer.from(runtime);
  option(PURGE_HOLES_MIN_INTERVAL, INTERVAL_MS).copy(changed, table + OPTION_BYTES * (PURGE_HOLES_MIN_INTERVAL - first[0]));
  return changed;
}

/** What an option begins with. */
function option(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeBigInt64LE(BigInt(value), 0);
  bytes.writeInt32LE(number, 12);
  return bytes;
}
