/**
 * `cairn bench recall` and `cairn bench load`: what searches find, and what a server does in a second.
 *
 * @module
 */
import { UsageError } from "../../config.ts";

export async function bench([kind = "", ...args]: readonly string[]): Promise<number> {
  if (kind === "recall") return (await import("./recall.ts")).benchRecall(args);
  if (kind === "load") return (await import("./load.ts")).benchLoad(args);
  // Started by both.
  if (kind === "server") return (await import("./server.ts")).serveUntilLeft(args);
  throw new UsageError(`cairn bench is one of recall and load${kind === "" ? "" : `; got ${kind}`}`);
}
