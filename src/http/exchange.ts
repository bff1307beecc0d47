/**
 * A request on its way through the pipeline, and its answer.
 *
 * @module
 */
import type { Level } from "../lib/bucket.ts";
import type { ApiKeyRow } from "../storage/tables.ts";

/** Report of a request for metrics, spans and the log: never its content, its key or its query. */
export interface AnsweredRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  readonly requestId: string;
  /** First 8 characters of the API key. */
  readonly key: string | undefined;
  /** Operation on memories. */
  readonly memoryOperation: string | undefined;
  readonly sessionId: string | undefined;
  readonly traceparent: string | null;
}

/**
 * The address and port a request came from, if the server knows them, and where it listens. Bun's types do not know `address` (seen with
 * Bun 1.4.5).
 */
export type Remote = { requestIP(request: Request): End | null; readonly address?: End } | null;
type End = { readonly address: string; readonly port: number };

/** A request and what is known of it so far. */
export interface Exchange {
  readonly request: Request;
  readonly remote: Remote;
  /** Path of the endpoint, with the names of its parameters. */
  readonly route: string;
  /** Empty only where making one failed. */
  requestId: string;
  startedAt: number;
  /** Set by `authenticate`, and by `admitNamed`. */
  key: ApiKeyRow | undefined;
  level: Level | undefined;
  /** Set by `answer`: the header of a success that says how long it took. */
  latencyHeader: string | undefined;
  /** Set by `trackOperation`. */
  memoryOperation: string | undefined;
  sessionId: string | undefined;
}

export interface Answer {
  readonly status: number;
  readonly body: string | Blob | ReadableStream<Uint8Array>;
  /** Added to those of every response; one of the same name replaces it. */
  readonly headers?: Record<string, string>;
  readonly replayed?: boolean;
  /** True if a success may have changed something, so that it can no longer be refused. */
  readonly isChange?: boolean;
}
