/**
 * Defaults of the memory allocator in the Bun that becomes part of the executable.
 *
 * The allocator, mimalloc, gives the system back what is free ten times a second in Bun: whole pages of its own 100 ms after they were
 * freed (`PURGE_DELAY`), and what is free between blocks in use, "holes", as often (`PURGE_HOLES_MIN_INTERVAL`). A busy server needs the same
 * memory again at once, and gets it a page fault at a time. For what is free for good later is soon enough:
 *
 * - holes every 5 seconds: with 10 to 30 a change took .91 to .95 of the CPU, a search .92;
 * - pages after a second: page faults and giving back are then 2.9 % of a state instead of 4.8, and 3.0 % of a turn instead of 3.7. With 5
 *   seconds they are 1.9 and 2.3 %, but a busy server has 35 to 75 MB more of the memory instead of 25. Fifteen seconds after the load it has
 *   the same as with 100 ms.
 *
 * The allocator reads its options before any code of ours runs, so the defaults in the file are others. `MIMALLOC_PURGE_DELAY` and
 * `MIMALLOC_PURGE_HOLES_MIN_INTERVAL` (milliseconds) in the environment still decide.
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
/** Number and default of some options, by which the table is known. */
const KNOWN = [
  [15, 100],
  [50, 1],
  [51, 0],
  [52, 100],
  [53, 64],
  [54, 4_096],
  [55, 256],
] as const;
const PURGE_DELAY = 15;
const PURGE_HOLES_MIN_INTERVAL = 52;
const CHANGED = [
  [PURGE_DELAY, 1_000],
  [PURGE_HOLES_MIN_INTERVAL, 5_000],
] as const;

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
  for (const [number, value] of CHANGED) option(number, value).copy(changed, table + OPTION_BYTES * (number - first[0]));
  return changed;
}

/** What an option begins with. */
function option(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeBigInt64LE(BigInt(value), 0);
  bytes.writeInt32LE(number, 12);
  return bytes;
}
