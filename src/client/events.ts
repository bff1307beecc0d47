/**
 * Traces as they happen: server-sent events, which continue after the last one when a connection ends.
 *
 * @module
 */
import { CairnError, unexpected } from "./errors.ts";
import type { Exchange } from "./exchange.ts";
import { isTemporary, type CallOptions, type Http } from "./http.ts";
import type { Trace, WatchTracesQuery } from "./types.ts";

export interface EventOptions extends Pick<CallOptions, "signal"> {
  /** The id of a trace: those that followed it come first. */
  lastEventId?: string | undefined;
}

/** The server sends at least a comment every 20 s: a connection that is silent for longer is dead. */
const SILENCE_MS = 60_000;

/** More than there are in the few seconds whose traces a server repeats. */
const REMEMBERED_MAX = 10_000;

/**
 * Gives traces as they happen, until the loop is left or the signal is aborted. A connection that ends is made again, and misses and
 * repeats nothing.
 *
 * @throws {CairnError} when it cannot begin, and when the server refuses to continue, as after the key was revoked
 */
export async function* events(http: Http, query: WatchTracesQuery, { signal, lastEventId }: EventOptions): AsyncGenerator<Trace, void> {
  let last = lastEventId;
  /** Servers that share a database continue a little before the last event: what another of them had not committed yet is there then. */
  const given = new Set(lastEventId === undefined ? [] : [lastEventId]);
  let failures = 0;
  for (let hasBegun = false; ;) {
    try {
      for await (const messages of connection(http, query, signal, last)) {
        for (const { id, trace } of messages) {
          [hasBegun, failures] = [true, 0];
          last = id ?? last;
          if (trace === undefined || given.has(trace.id)) continue;
          remember(given, trace.id);
          yield trace;
        }
      }
      await http.backoff(failures++, {}, signal);
    } catch (error) {
      if (!(error instanceof CairnError) || !isTemporary(error) || (!hasBegun && failures > 1)) throw error;
      await http.backoff(failures++, error, signal);
    }
  }
}

/** A message of the stream; without a trace where it is a comment. */
interface Message {
  readonly id: string | undefined;
  readonly trace: Trace | undefined;
}

/** Gives the messages of one connection as they came together: none once it is open, and there can be hundreds in a second. */
export async function* connection(
  http: Http,
  query: WatchTracesQuery,
  signal: AbortSignal | undefined,
  lastEventId?: string,
): AsyncGenerator<readonly Message[], void> {
  const exchange = http.exchange(signal);
  try {
    exchange.limit(SILENCE_MS);
    const headers = lastEventId === undefined ? {} : { "Last-Event-ID": lastEventId };
    const response = await http.send(exchange, { method: "GET", path: "/v1/events", query, headers });
    yield* messages(response, exchange);
  } finally {
    exchange.close();
  }
}

function remember(given: Set<string>, id: string): void {
  given.add(id);
  if (given.size <= REMEMBERED_MAX) return;
  for (const oldest of given) {
    given.delete(oldest);
    return;
  }
}

async function* messages(response: Response, exchange: Exchange): AsyncGenerator<readonly Message[], void> {
  if (response.body === null || response.headers.get("content-type")?.startsWith("text/event-stream") !== true) throw unexpected(response);
  yield [];
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  for (let rest = ""; ;) {
    const { done, value } = (await exchange.part(reader.read())) as { done: boolean; value: Uint8Array };
    if (done) return;
    exchange.limit(SILENCE_MS);
    const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    yield blocks.map(messageIn);
  }
}

function messageIn(block: string): Message {
  const lines = block.split("\n");
  const data = field(lines, "data: ");
  return { id: field(lines, "id: "), trace: data === undefined ? undefined : (JSON.parse(data) as Trace) };
}

function field(lines: readonly string[], name: string): string | undefined {
  return lines.find((line) => line.startsWith(name))?.slice(name.length);
}
