/**
 * What the request thread and the worker say to each other.
 *
 * @module
 */
import type { Filter } from "../storage/walk.ts";
import type { Neighbour } from "./exact.ts";
import type { IndexStatus } from "./indexer.ts";

export type ToWorker =
  | { kind: "start"; dataDirectory: string }
  | { kind: "nearest"; call: number; query: Float32Array; filter: Filter; limit: number }
  /** Something was stored or deleted. */
  | { kind: "changed" }
  /** Write a snapshot if there is anything new, now. */
  | { kind: "save"; call: number }
  | { kind: "close" };

export type FromWorker =
  | { kind: "ready"; rebuilding: string | undefined; status: IndexStatus }
  | { kind: "answer"; call: number; neighbours: Neighbour[] }
  | { kind: "saved"; call: number }
  | { kind: "failed"; call: number; reason: string }
  | { kind: "status"; status: IndexStatus }
  | { kind: "warning"; message: string }
  | { kind: "closed" };
