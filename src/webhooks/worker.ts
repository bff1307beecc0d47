/**
 * Makes the deliveries that are due: up to 8 sessions of a webhook at once, each session one after another.
 *
 * All there is to do is in the store, and a delivery is taken from the queue once its result is saved. So a process that dies
 * at any moment makes the attempts that were in flight again, with the same ids, and never an earlier one of a session after a
 * later one. While the store refuses results, nothing more is sent.
 *
 * `queue.ts` says what is due, `places.ts` whose turn it is, `attempt.ts` sends, `outcome.ts` decides what follows from it.
 *
 * @module
 */
import type { Chance } from "../lib/chance.ts";
import { withPrefix, type BareId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { BadRows } from "../storage/bad-rows.ts";
import type { Tx } from "../storage/store.ts";
import { deliveries, webhooks, type DeliveryRow, type WebhookRow } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { WakeUp } from "../tasks/wake-up.ts";
import { recordAdmin, type Caller, type Records } from "../traces/record.ts";
import { attemptDelivery } from "./attempt.ts";
import { RETRY_AFTER_MS_MAX } from "./backoff.ts";
import type { Network } from "./delivery.ts";
import { enabledWebhooks } from "./outbox.ts";
import { afterAttempt, webhookAfterAttempt, type Attempt, type Outcomes } from "./outcome.ts";
import { Places } from "./places.ts";
import type { WebhookPolicy } from "./policy.ts";
import { nextDue, putDelivery, type Next, type Queued } from "./queue.ts";
import { tracedDisabling } from "./subscriptions.ts";

export const DELIVERIES = "webhook deliveries";

/** When nothing is due; new deliveries wake the task. */
const IDLE_MS = 60_000;

export interface WorkerDeps extends Records {
  readonly log: Log;
  readonly network: Network;
  readonly random: Chance;
  readonly policy: () => WebhookPolicy;
  /** Who disables a webhook. */
  readonly system: Caller;
}

/** An attempt that has ended, and of what. */
interface Result {
  readonly webhook: BareId;
  readonly delivery: BareId;
  readonly attempt: Attempt;
}

/** What a saved result has changed. */
interface Change {
  readonly status: DeliveryRow["status"];
  /** Set when it has disabled the webhook. */
  readonly disabled: { reason: string | null } | undefined;
}

export class Worker {
  readonly outcomes: Outcomes = { delivered: 0, retry: 0, failed: 0, disabled: 0 };
  /** A run ends when nothing is due and nothing in flight. */
  readonly task: Task = { name: DELIVERIES, run: () => (this.#run ??= this.#deliver().finally(() => (this.#run = undefined))) };
  readonly #deps: WorkerDeps;
  readonly #places = new Places();
  readonly #bad: BadRows;
  readonly #wakeUp: WakeUp;
  readonly #stop = new AbortController();
  /** Results that the store has refused. */
  #unsaved: Result[] = [];
  #run: Promise<number> | undefined;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#bad = new BadRows(deps.store, deps.log, DELIVERIES);
    this.#wakeUp = new WakeUp(deps.clock);
  }

  /** Makes a run that is under way look for new deliveries. */
  wake(): void {
    this.#wakeUp.now();
  }

  /** Ends the attempts in flight; what they had to deliver is delivered after the next start. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#run?.catch(() => undefined);
  }

  /**
   * @returns milliseconds until something is due
   * @throws what keeps results from being saved
   */
  async #deliver(): Promise<number> {
    for (;;) {
      if (this.#places.isIdle) await this.#saveRefused();
      const mayStart = !this.#stop.signal.aborted && this.#unsaved.length === 0;
      const nextAt = mayStart ? this.#startDue() : undefined;
      const ms = nextAt === undefined ? IDLE_MS : Math.max(1, nextAt - this.#deps.clock.now());
      if (this.#places.isIdle) return ms;
      await this.#wakeUp.after(ms);
    }
  }

  /** Starts what is due and has a place. @returns when something else will be due */
  #startDue(): number | undefined {
    const { store, clock } = this.#deps;
    const now = clock.now();
    let nextAt = Number.POSITIVE_INFINITY;
    const turns = this.#places.inTurn(enabledWebhooks(store));
    for (const webhook of turns) {
      const { key, row } = webhook;
      const isFailing = row.failingSince !== null;
      if (!this.#places.isFree(key, isFailing)) continue;
      const pausedUntil = row.pausedUntil ?? 0;
      // No receiver can ask for a longer pause: the clock was ahead when it began.
      const isPaused = pausedUntil > now && pausedUntil <= now + RETRY_AFTER_MS_MAX;
      const next: Next = isPaused
        ? { kind: "later", at: pausedUntil }
        : nextDue(
            store,
            key,
            now,
            (delivery) => this.#places.has(key, delivery) || this.#bad.has(key + delivery),
            (bad, error) => this.#bad.note(bad, error),
          );
      if (next.kind === "later") nextAt = Math.min(nextAt, next.at);
      if (next.kind !== "now") continue;
      this.#places.take(key, next.queued.delivery, isFailing);
      void this.#attempt(next.queued, row);
      // To the back of the queue.
      turns.push(webhook);
    }
    return Number.isFinite(nextAt) ? nextAt : undefined;
  }

  /** The place is free again when the result is saved. Never rejects. */
  async #attempt(queued: Queued, row: WebhookRow): Promise<void> {
    const { webhook, delivery } = queued;
    const attempt = await attemptDelivery(this.#deps, queued, row, this.#deps.policy().timeoutMs, this.#stop.signal);
    // A result that is refused is saved again before anything else is done.
    if (attempt !== undefined) await this.#save({ webhook, delivery, attempt }).catch(() => undefined);
    this.#places.release(webhook, delivery);
    this.wake();
  }

  /** @throws what keeps the first of them from being saved */
  async #saveRefused(): Promise<void> {
    const saved = await Promise.allSettled(this.#unsaved.splice(0).map((result) => this.#save(result)));
    for (const one of saved) if (one.status === "rejected") throw one.reason;
  }

  /** The store saves results together that come while it is busy. */
  async #save(result: Result): Promise<void> {
    let change: Change | undefined;
    try {
      change = await this.#bad.commit((tx, isolate) => {
        let written: Change | undefined;
        isolate(result.webhook + result.delivery, () => (written = this.#write(tx, result)));
        return written;
      });
    } catch (error) {
      this.#unsaved.push(result);
      throw error;
    }
    if (change === undefined) return;
    this.outcomes[change.status === "pending" ? "retry" : change.status]++;
    if (change.disabled === undefined) return;
    this.outcomes.disabled++;
    this.#deps.wakeOutbox?.();
    this.#deps.log.warn("webhook disabled", { webhook: withPrefix("whk", result.webhook), reason: change.disabled.reason });
  }

  /** @returns nothing for a delivery, or a webhook, that was deleted meanwhile */
  #write(tx: Tx, { webhook, delivery, attempt }: Result): Change | undefined {
    const { clock, policy, random, log, system } = this.#deps;
    const row = tx.get(deliveries, webhook + delivery);
    const before = tx.get(webhooks, webhook);
    if (row === undefined || before === undefined) return undefined;
    const now = clock.now();
    const after = afterAttempt(row, attempt, now, policy().schedule, random());
    putDelivery(tx, { webhook, delivery, row: after }, now);
    log.debug("webhook attempt", {
      delivery: withPrefix("dlv", delivery),
      status: after.last?.status ?? null,
      result: after.status,
      duration_ms: attempt.durationMs,
    });
    const changed = webhookAfterAttempt(before, attempt, now);
    if (changed !== before) tx.put(webhooks, webhook, changed);
    const isDisabled = before.enabled && !changed.enabled;
    if (isDisabled) recordAdmin(tx, this.#deps, system, "webhook.disabled", tracedDisabling(webhook, changed));
    return { status: after.status, disabled: isDisabled ? { reason: changed.disabledReason } : undefined };
  }
}
