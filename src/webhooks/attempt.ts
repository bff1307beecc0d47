/**
 * One attempt to deliver: from what is stored to what came of it. It changes nothing in the store.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { withPrefix } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { Network } from "../lib/outbound.ts";
import { timeLimit } from "../lib/time-limit.ts";
import { version } from "../lib/version.ts";
import type { Reader } from "../storage/store.ts";
import { payloads, type WebhookRow } from "../storage/tables.ts";
import { deliver, type Answer } from "./delivery.ts";
import { isSuccess, type Attempt } from "./outcome.ts";
import type { Queued } from "./queue.ts";
import { signatureHeaders } from "./signature.ts";

export interface AttemptDeps {
  readonly store: Reader;
  readonly clock: Clock;
  readonly log: Log;
  readonly network: Network;
}

/**
 * Posts a delivery. Never rejects.
 *
 * @param stop - ends the attempt
 * @returns undefined when the stop ended it
 */
export async function attemptDelivery(
  deps: AttemptDeps,
  queued: Queued,
  webhook: WebhookRow,
  timeoutMs: number,
  stop: AbortSignal,
): Promise<Attempt | undefined> {
  const { clock, log } = deps;
  const at = clock.now();
  const startedAt = clock.elapsed();
  const limit = timeLimit(clock, timeoutMs, stop);
  let answer: Answer;
  try {
    answer = await post(deps, queued, webhook, at, limit.signal);
  } catch (error) {
    log.error("a webhook delivery could not be made", { delivery: withPrefix("dlv", queued.delivery), error: String(error) });
    answer = { kind: "unanswered", reason: "The delivery could not be made; the operator's log has more." };
  } finally {
    limit.end();
  }
  if (stop.aborted && !isSuccess(answer)) return undefined;
  return { at, durationMs: Math.round((clock.elapsed() - startedAt) * 100) / 100, answer };
}

async function post(
  { store, network }: AttemptDeps,
  { row }: Queued,
  webhook: WebhookRow,
  at: number,
  signal: AbortSignal,
): Promise<Answer> {
  const body = store.get(payloads, row.payload);
  if (body === undefined) return { kind: "unanswered", reason: "What was to be delivered is no longer kept." };
  const previous = webhook.previousSecrets.filter(({ until }) => until > at).map(({ secret }) => secret);
  const headers = {
    "Content-Type": "application/json",
    "User-Agent": `Cairn/${version}`,
    ...signatureHeaders([webhook.secret, ...previous], {
      id: withPrefix("evt", row.eventId),
      timestampSeconds: Math.floor(at / 1000),
      body,
    }),
  };
  return deliver(network, { url: new URL(webhook.url), headers, body }, signal);
}
