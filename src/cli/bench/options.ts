/**
 * Flags that both benchmarks have.
 *
 * @module
 */
import { UsageError, type BenchConfig } from "../../config.ts";

/** Refuses the flags of other commands: its server is its own, or has its settings already. @throws {UsageError} */
export function assertOptions(kind: string, { flags }: BenchConfig, own: readonly string[]): void {
  const unknown = Object.keys(flags).find((name) => !own.includes(name));
  if (unknown !== undefined) throw new UsageError(`cairn bench ${kind} takes no --${unknown}: its server is its own, or that of --url`);
  if (flags["url"] !== undefined && flags["dir"] !== undefined) throw new UsageError("--url and --dir exclude each other");
}

/** A whole number from 1 to `max`. @throws {UsageError} */
export function numberIn(flags: BenchConfig["flags"], name: string, max: number, otherwise: number): number {
  const text = flags[name];
  if (text === undefined) return otherwise;
  const number = /^\d+$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > max) throw new UsageError(`--${name} must be a whole number from 1 to ${max}; got ${text}`);
  return number;
}
