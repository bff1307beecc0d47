/**
 * Makes the attempts: at most 8 at once, one at a time for each webhook.
 *
 * What is to be done stands in the store, so that a process that dies between two attempts, or in one, makes it again
 * after the next start, with the same id. Results are written together, as many as there are; until its result is written
 * a delivery that arrived is not looked at again, and while the disk takes no results nothing more is sent.
 *
 * Receivers that fail share half of the places, so that those that hang leave room for the others.
 *
 * @module
 */
import type { Chance } from "../lib/chance.ts";
import type { Wait } from "../lib/clock.ts";
import { withPrefix, type BareId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { timeLimit } from "../lib/time-limit.ts";
import { version } from "../lib/version.ts";
import type { Tx } from "../storage/store.ts";
import { deliveries, payloads, webhooks, type DeliveryRow, type WebhookRow } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { recordAdmin, type Caller, type Records } from "../traces/record.ts";
import { deliver, type Answer, type Network } from "./delivery.ts";
import { enabledWebhooks } from "./outbox.ts";
import { afterAttempt, isSuccess, pauseUntil, webhookAfterAttempt, type Attempt, type Outcomes } from "./outcome.ts";
import type { WebhookPolicy } from "./policy.ts";
import { nextOf, putDelivery, type Queued } from "./queue.ts";
import { signatureHeaders } from "./signature.ts";
import { tracedDisabling } from "./subscriptions.ts";

export const DELIVERIES = "webhook deliveries";

const AT_ONCE_MAX = 8;
const FAILING_AT_ONCE_MAX = 4;
/** When nothing is due; new deliveries wake the task. */
const IDLE_MS = 60_000;

export interface WorkerParts extends Records {
  readonly log: Log;
  readonly network: Network;
  readonly wait: Wait;
  readonly random: Chance;
  readonly policy: () => WebhookPolicy;
  /** Who disables a webhook. */
  readonly system: Caller;
}

interface UnderWay {
  readonly isFailing: boolean;
}

interface Ended extends Queued {
  readonly attempt: Attempt;
}

/** What was written of an attempt. */
interface Written {
  readonly webhook: BareId;
  readonly became: DeliveryRow["status"];
  /** Set when it has disabled the webhook. */
  readonly disabled: { reason: string | null } | undefined;
}

export class Worker {
  readonly outcomes: Outcomes = { delivered: 0, retry: 0, failed: 0, disabled: 0 };
  readonly #parts: WorkerParts;
  /** Webhooks whose attempt is under way, or whose failed attempt is not written down yet. */
  readonly #busy = new Map<BareId, UnderWay>();
  readonly #stop = new AbortController();
  /** Attempts whose results are still to be written. */
  #ended: Ended[] = [];
  #saving: Promise<void> | undefined;
  #saveError: { error: unknown } | undefined;
  #underWay = 0;
  /** When each webhook was last served, in turns: who has waited longest is next. */
  readonly #served = new Map<BareId, number>();
  #turn = 0;
  readonly #pausedUntil = new Map<BareId, number>();
  #poked = false;
  #wake: () => void = () => undefined;
  #run: Promise<number> | undefined;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
  }

  get task(): Task {
    return { name: DELIVERIES, run: () => (this.#run ??= this.#work().finally(() => (this.#run = undefined))) };
  }

  /** Makes a run that is under way look again. */
  poke(): void {
    this.#poked = true;
    this.#wake();
  }

  /** Ends the attempts under way; what they had to deliver is delivered after the next start. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.poke();
    await this.#run?.catch(() => undefined);
  }

  async #work(): Promise<number> {
    // What an earlier run could not write down comes before anything is sent.
    this.#saveError = undefined;
    if (this.#ended.length > 0) await this.#save();
    for (;;) {
      this.#poked = false;
      const nextAt = this.#stop.signal.aborted || this.#saveError !== undefined ? undefined : this.#startDue();
      if (this.#ended.length > 0 && this.#saving === undefined && this.#saveError === undefined) this.#saveSoon();
      if (this.#underWay === 0 && this.#saving === undefined) {
        this.#refuseToGoOn();
        return nextAt === undefined ? IDLE_MS : Math.max(1, nextAt - this.#parts.clock.now());
      }
      await this.#change(nextAt);
    }
  }

  /** @throws what kept the results from being written */
  #refuseToGoOn(): void {
    if (this.#saveError !== undefined) throw this.#saveError.error;
  }

  /** Starts what is due and has a place. @returns when something else will be due */
  #startDue(): number | undefined {
    const { store, clock } = this.#parts;
    const now = clock.now();
    const settling = new Set(this.#ended.map(({ webhook, delivery }) => webhook + delivery));
    let nextAt = Number.POSITIVE_INFINITY;
    const waiting = enabledWebhooks(store)
      .filter(({ key }) => !this.#busy.has(key))
      .sort((a, b) => (this.#served.get(a.key) ?? 0) - (this.#served.get(b.key) ?? 0));
    for (const { key, row } of waiting) {
      if (this.#underWay >= AT_ONCE_MAX) break;
      const isFailing = row.failingSince !== null;
      if (isFailing && this.#failingUnderWay() >= FAILING_AT_ONCE_MAX) continue;
      const pausedUntil = this.#pausedUntil.get(key) ?? 0;
      if (pausedUntil > now) {
        nextAt = Math.min(nextAt, pausedUntil);
        continue;
      }
      const next = nextOf(store, key, now, (delivery) => settling.has(key + delivery));
      if (next.kind === "later") nextAt = Math.min(nextAt, next.at);
      if (next.kind === "now") this.#start(next.queued, row, isFailing);
    }
    return Number.isFinite(nextAt) ? nextAt : undefined;
  }

  #failingUnderWay(): number {
    return [...this.#busy.values()].filter(({ isFailing }) => isFailing).length;
  }

  #start(queued: Queued, row: WebhookRow, isFailing: boolean): void {
    this.#busy.set(queued.webhook, { isFailing });
    this.#served.set(queued.webhook, ++this.#turn);
    this.#underWay++;
    void this.#attempt(queued, row).then((attempt) => {
      this.#underWay--;
      if (attempt === undefined) {
        this.#busy.delete(queued.webhook);
      } else {
        // After a failure the store has to say when the next attempt is before another is chosen.
        if (isSuccess(attempt.answer)) this.#busy.delete(queued.webhook);
        this.#ended.push({ ...queued, attempt });
      }
      this.poke();
    });
  }

  /** undefined when the stop ended it. Never rejects. */
  async #attempt(queued: Queued, webhook: WebhookRow): Promise<Attempt | undefined> {
    const { clock, wait, policy } = this.#parts;
    const at = clock.now();
    const startedAt = clock.elapsed();
    const limit = timeLimit(wait, policy().timeoutMs, this.#stop.signal);
    let answer: Answer;
    try {
      answer = await this.#send(queued, webhook, at, limit.signal);
    } catch (error) {
      this.#parts.log.error("a webhook delivery could not be made", { delivery: withPrefix("dlv", queued.delivery), error: String(error) });
      answer = { kind: "unanswered", reason: "The delivery could not be made; the operator's log has more." };
    } finally {
      limit.end();
    }
    if (this.#stop.signal.aborted && !isSuccess(answer)) return undefined;
    return { at, durationMs: Math.round((clock.elapsed() - startedAt) * 100) / 100, answer };
  }

  async #send({ row }: Queued, webhook: WebhookRow, at: number, signal: AbortSignal): Promise<Answer> {
    const body = this.#parts.store.get(payloads, row.payload);
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
    return deliver(this.#parts.network, { url: new URL(webhook.url), headers, body }, signal);
  }

  #saveSoon(): void {
    this.#saving = this.#save()
      .catch((error: unknown) => {
        this.#saveError = { error };
      })
      .finally(() => {
        this.#saving = undefined;
        this.poke();
      });
  }

  async #save(): Promise<void> {
    const ended = [...this.#ended];
    const written = await this.#parts.store.commit((tx) => ended.flatMap((one) => this.#write(tx, one)));
    this.#ended = this.#ended.filter((one) => !ended.includes(one));
    for (const { webhook, attempt } of ended) {
      if (isSuccess(attempt.answer)) continue;
      this.#busy.delete(webhook);
      const until = pauseUntil(attempt.answer, this.#parts.clock.now());
      if (until !== undefined) this.#pausedUntil.set(webhook, until);
    }
    for (const { webhook, became, disabled } of written) {
      this.outcomes[became === "pending" ? "retry" : became]++;
      if (disabled === undefined) continue;
      this.outcomes.disabled++;
      this.#parts.wakeOutbox?.();
      this.#parts.log.warn("webhook disabled", { webhook: withPrefix("whk", webhook), reason: disabled.reason });
    }
  }

  /** @returns nothing for a webhook that is gone */
  #write(tx: Tx, { webhook, delivery, attempt }: Ended): Written[] {
    const { clock, policy, random, log, system } = this.#parts;
    const row = tx.get(deliveries, webhook + delivery);
    const before = tx.get(webhooks, webhook);
    // Deleted meanwhile.
    if (row === undefined || before === undefined) return [];
    const now = clock.now();
    const after = afterAttempt(row, attempt, now, policy().schedule, random());
    putDelivery(tx, { webhook, delivery, row: after });
    log.debug("webhook attempt", {
      delivery: withPrefix("dlv", delivery),
      status: after.last?.status ?? null,
      result: after.status,
      duration_ms: attempt.durationMs,
    });
    const changed = webhookAfterAttempt(before, attempt, now);
    if (changed !== before) tx.put(webhooks, webhook, changed);
    const isDisabled = before.enabled && !changed.enabled;
    if (isDisabled) recordAdmin(tx, this.#parts, system, "webhook.disabled", tracedDisabling(webhook, changed));
    return [{ webhook, became: after.status, disabled: isDisabled ? { reason: changed.disabledReason } : undefined }];
  }

  /** Resolves at the next poke, or at a time. */
  async #change(at: number | undefined): Promise<void> {
    if (this.#poked) return;
    const waited = new AbortController();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (at !== undefined) void this.#parts.wait(Math.max(1, at - this.#parts.clock.now()), waited.signal).then(resolve);
    });
    waited.abort();
  }
}
