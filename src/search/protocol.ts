/**
 * The messages between the request thread and the worker.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import type { CollectionName } from "../storage/collections.ts";
import type { PackedCandidates } from "./candidates.ts";
import type { IndexBytes, IndexStatus } from "./index-status.ts";
import type { Shared } from "./scopes/shared-vectors.ts";

export type ToWorker =
  /** Without the snapshot when the worker before failed: the snapshot may be why. */
  | { kind: "start"; dataDirectory: string; collection: CollectionName; useSnapshot: boolean; graphFrom: number }
  /** A query as `packQuery` gives it, and a filter as JSON. */
  | { kind: "nearest"; call: number; query: string; filter: string }
  /** Rows of these memories were put again: before the next search. */
  | { kind: "updated"; memories: readonly BareId[] }
  /** Something was stored or deleted. */
  | { kind: "changed" }
  /** Write a snapshot if there is anything new, now. */
  | { kind: "save"; call: number }
  | { kind: "close" };

export type FromWorker =
  | { kind: "ready"; rebuilding: string | undefined; status: IndexStatus; bytes: IndexBytes }
  /** Memory in which the request thread sees vectors: sent before an answer that names slots of it, and whenever there is more of it. */
  | { kind: "shared"; shared: Shared }
  | ({ kind: "answer"; call: number } & PackedCandidates)
  | { kind: "saved"; call: number }
  /** Fails this call only. */
  | { kind: "error"; call: number; reason: string }
  /** Ends the worker. */
  | { kind: "fatal"; reason: string }
  /** Posted now and then during long work, and when there is none left. */
  | { kind: "status"; status: IndexStatus; bytes: IndexBytes; idle: boolean }
  | { kind: "warning"; message: string }
  | { kind: "closed" };
