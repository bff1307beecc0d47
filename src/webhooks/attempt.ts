/**
 * One attempt to deliver, from the stored row to its answer. It writes nothing.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { withPrefix } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { Network } from "../lib/outbound.ts";
import { timeLimit } from "../lib/time-limit.ts";
import { version } from "../lib/version.ts";
import type { Store } from "../storage/store.ts";
import { payloads, type DeliveryRow, type WebhookRow } from "../storage/tables.ts";
import { deliver, unanswered } from "./delivery.ts";
import type { Answer, Attempt } from "./outcome.ts";
import type { Queued } from "./queue.ts";
import { signatureHeaders } from "./signature.ts";

export interface AttemptDeps {
  readonly store: Pick<Store, "latest">;
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
  const limit = timeLimit(clock, timeoutMs, stop);
  let answer: Answer;
  try {
    const body = store.latest.get(payloads, row.payload);
    answer =
      body === undefined
        ? unanswered("The payload is no longer kept.")
        : await deliver(network, { url: new URL(webhook.url), headers: headersOf(row, webhook, body, at), body }, limit.signal);
  } catch (error) {
    log.error("could not make a webhook delivery", { delivery: withPrefix("dlv", delivery), error: String(error) });
    answer = unanswered("The delivery could not be made; the operator's log has more.");
  } finally {
    limit.end();
  }
  if (stop.aborted && answer.error !== null) return undefined;
  return { ...answer, at, durationMs: Math.round((clock.elapsed() - startedAt) * 100) / 100 };
}

function headersOf(row: DeliveryRow, { secret, previousSecrets }: WebhookRow, body: string, at: number): Record<string, string> {
  const previous = previousSecrets.filter(({ until }) => until > at).map((one) => one.secret);
  const signed = { id: withPrefix("evt", row.eventId), timestampSeconds: Math.floor(at / 1000), body };
  return { "Content-Type": "application/json", "User-Agent": `Cairn/${version}`, ...signatureHeaders([secret, ...previous], signed) };
}
