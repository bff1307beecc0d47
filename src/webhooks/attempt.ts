/**
 * One attempt to deliver: from the stored row to a POST, and from its reply to an answer. It writes nothing.
 *
 * Of the answer at most 64 KiB are read and 2 KiB kept, and one deadline holds for everything. Of a receiver on this machine or
 * in a private network only the status is kept: a webhook must not let its owner read what such a service answers.
 *
 * @module
 */
import { addressKind } from "../lib/addresses.ts";
import type { Clock } from "../lib/clock.ts";
import { withPrefix } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { hostOf, post, type Network, type Post } from "../lib/outbound.ts";
import { Deadline } from "../lib/deadline.ts";
import { version } from "../lib/version.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { isEventErased } from "../storage/erasure.ts";
import { payloads, type DeliveryRow, type WebhookRow } from "../storage/tables.ts";
import { errorOf, type Answer, type Attempt } from "./outcome.ts";
import type { Queued } from "./queue.ts";
import { signatureHeaders } from "./signature.ts";
import { refusalOf } from "./target.ts";

/** An answer of up to this length leaves its connection open for the next delivery. */
const READ_BYTES_MAX = 64 * 1024;
const KEPT_BYTES_MAX = 2 * 1024;

export interface AttemptDeps {
  readonly store: Pick<RecordStore, "read">;
  readonly clock: Clock;
  readonly log: Log;
  readonly network: Network;
}

/** Prepares and sends a delivery. Never rejects. @returns undefined when `stop` ended it */
export async function attemptDelivery(
  deps: AttemptDeps,
  { delivery, row }: Queued,
  webhook: WebhookRow,
  timeoutMs: number,
  stop: AbortSignal,
): Promise<Attempt | undefined> {
  const { store, clock, log, network } = deps;
  const at = clock.now();
  const startedAt = clock.elapsed();
  using deadline = new Deadline(clock, timeoutMs, stop);
  let answer: Answer;
  try {
    const body = await store.read((reader) => (isEventErased(reader, row) ? undefined : reader.get(payloads, row.payload)));
    answer =
      body === undefined
        ? unanswered("The payload is no longer kept.")
        : await deliver(network, { url: new URL(webhook.url), headers: headersOf(row, webhook, body, at), body }, deadline.signal);
  } catch (error) {
    log.error("could not make a webhook delivery", { delivery: withPrefix("dlv", delivery), error: String(error) });
    answer = unanswered("The delivery could not be made; the operator's log has more.");
  }
  if (stop.aborted && answer.error !== null) return undefined;
  return { ...answer, at, durationMs: Math.round((clock.elapsed() - startedAt) * 100) / 100 };
}

function headersOf(row: DeliveryRow, { secret, previousSecrets }: WebhookRow, body: string, at: number): Record<string, string> {
  const previous = previousSecrets.filter(({ until }) => until > at).map((one) => one.secret);
  const signed = { id: withPrefix("evt", row.eventId), timestampSeconds: Math.floor(at / 1000), body };
  return { "Content-Type": "application/json", "User-Agent": `Cairn/${version}`, ...signatureHeaders([secret, ...previous], signed) };
}

/**
 * Posts to where the URL leads now. Never rejects.
 *
 * @param signal - ends the attempt; what has come of an answer by then counts
 */
export async function deliver(network: Network, request: Omit<Post, "readMax">, signal: AbortSignal): Promise<Answer> {
  const reply = await post(network, { ...request, readMax: () => READ_BYTES_MAX }, signal);
  switch (reply.kind) {
    case "answered": {
      const { address, status, headers } = reply;
      const body = addressKind(address) === "public" ? textOf(reply.body.subarray(0, KEPT_BYTES_MAX)) : null;
      return { status, retryAfter: headers["retry-after"], body, error: errorOf(status) };
    }
    case "forbidden":
      return unanswered(refusalOf(request.url, reply.address));
    case "unknown":
      return unanswered(`The name ${hostOf(request.url)} was not found.`);
    default:
      return unanswered(ERRORS[reply.code] ?? `The connection failed: ${reply.code}.`);
  }
}

function unanswered(error: string): Answer {
  return { status: null, body: null, error };
}

const ERRORS: Readonly<Record<string, string>> = {
  ABORT_ERR: "No answer within the time limit.",
  EPROTO: "The receiver wanted to speak another protocol.",
};

/** Invalid UTF-8 and control characters, which a terminal would obey, become U+FFFD; a character cut through at the end goes. */
function textOf(bytes: Buffer): string {
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll(/(?![\t\n\r])\p{Cc}/gu, "\ufffd");
}
