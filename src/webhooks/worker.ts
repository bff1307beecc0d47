/**
 * Makes the deliveries that are due: up to 8 sessions of a webhook at once, each session one after another.
 *
 * ```
 * run ── queue.ts: what is due; places.ts: whose turn it is ──► deliver   (in the background, for each)
 *  ▲                                                             attempt.ts: prepare, send
 *  └────────────────────── woken by the end of an attempt ────── record: outcome.ts decides, one commit writes
 * ```
 *
 * A delivery leaves the queue in the commit that records its attempt. So a process that dies at any moment makes the attempts
 * that were in flight again, with the same ids, and never an earlier one of a session after a later one. While the store
 * refuses outcomes, nothing more is sent.
 *
 * @module
 */
import type { Chance } from "../lib/chance.ts";
import { withPrefix, type BareId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { Network } from "../lib/outbound.ts";
import { BadRows, readable } from "../storage/bad-rows.ts";
import { isEventErased } from "../storage/erasure.ts";
import { LeaseLost, leasedTask, type Leases } from "../storage/leases.ts";
import { deliveries, webhookFailures, webhooks, type DeliveryRow, type WebhookRow } from "../storage/tables.ts";
import type { Activator, Task } from "../tasks/task.ts";
import { enabledWebhooks, recordAdmin, type Caller, type Deps } from "../traces/record.ts";
import { attemptDelivery } from "./attempt.ts";
import { afterAttempt, failuresAfter, pauseOf, webhookAfterAttempt, type Attempt, type Outcomes } from "./outcome.ts";
import { DeliverySlots } from "./delivery-slots.ts";
import type { WebhookPolicy } from "./policy.ts";
import { nextDue, putDelivery, type Next, type Queued } from "./queue.ts";
import { tracedDisabling } from "./webhooks.ts";

const NAME = "webhook deliveries";
/** Pause when nothing is due; new deliveries wake the task. */
const IDLE_MS = 60_000;
/** Pause until a delivery that is being erased is looked at again, unless it is removed by then. */
const ERASED_LATER_MS = 60_000;
/** Result of an attempt by the status of its delivery after it. */
const OUTCOMES = { delivered: "delivered", pending: "retry", failed: "exhausted" } as const;

export interface WorkerDeps extends Deps {
  readonly log: Log;
  readonly network: Network;
  readonly random: Chance;
  readonly policy: () => WebhookPolicy;
  /** Actor that disables a webhook. */
  readonly system: Caller;
  readonly activator: Activator;
  /** Only the holder of one makes deliveries. */
  readonly leases: Leases;
}

export class Worker {
  readonly outcomes: Outcomes = { delivered: 0, retry: 0, exhausted: 0, disabled: 0 };
  readonly task: Task;
  /** Attempts in flight, until their outcome is recorded or refused by the store. */
  readonly inFlight = new Set<Promise<void>>();
  readonly #deps: WorkerDeps;
  readonly #slots = new DeliverySlots();
  readonly #bad: BadRows;
  readonly #stop = new AbortController();
  /** Attempts whose outcome the store has refused. */
  readonly #unrecorded: [Queued, Attempt][] = [];

  constructor(deps: WorkerDeps) {
    let leased = deps.store;
    this.task = leasedTask(deps.leases, deps.store, (store) => {
      leased = store;
      return { name: NAME, activator: deps.activator, run: () => this.#run() };
    });
    this.#deps = { ...deps, store: leased };
    this.#bad = new BadRows(leased, deps.log, NAME);
  }

  /** Ends the attempts in flight; their deliveries are made after the next start. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.inFlight);
  }

  /**
   * Starts what is due.
   *
   * @throws what keeps outcomes from being recorded
   */
  async #run(): Promise<number> {
    while (this.inFlight.size === 0 && this.#unrecorded.length > 0) {
      await this.#record(...this.#unrecorded[0]!);
      this.#unrecorded.shift();
    }
    if (this.#stop.signal.aborted) return IDLE_MS;
    const { store, clock } = this.#deps;
    const now = clock.now();
    let nextAt = now + IDLE_MS;
    // A run makes no attempt twice: what is read meanwhile can be older than the end of one, or than a stop.
    const attempted = this.#slots.inFlight();
    const turns = this.#slots.inTurn(await store.read(enabledWebhooks));
    for (const webhook of turns) {
      const { key, row } = webhook;
      const isFailing = row.failingSince !== null;
      if (!this.#slots.isFree(key, isFailing)) continue;
      const next = await this.#nextOf(key, row, now, attempted);
      if (next.kind === "later") nextAt = Math.min(nextAt, next.at);
      if (next.kind !== "now") continue;
      if (this.#unrecorded.length > 0) break;
      attempted.add(next.queued.delivery);
      this.#slots.take(key, next.queued.delivery, isFailing);
      const delivering = this.#deliver(next.queued, row).finally(() => this.inFlight.delete(delivering));
      this.inFlight.add(delivering);
      // To the back of the queue.
      turns.push(webhook);
    }
    return Math.max(1, nextAt - now);
  }

  async #nextOf(webhook: BareId, row: WebhookRow, now: number, attempted: ReadonlySet<BareId>): Promise<Next> {
    const pausedUntil = pauseOf(row, now);
    if (pausedUntil !== undefined) return { kind: "later", at: pausedUntil };
    const isPassedOver = (delivery: BareId) => attempted.has(delivery) || this.#bad.has(webhook + delivery);
    return this.#deps.store.read((reader) => nextDue(reader, webhook, now, isPassedOver, (key, error) => this.#bad.note(key, error)));
  }

  /** Prepares, sends and records one attempt. Never rejects. */
  async #deliver(queued: Queued, row: WebhookRow): Promise<void> {
    const { leases, policy } = this.#deps;
    const { signal = AbortSignal.abort() } = leases.find(NAME) ?? {};
    const attempt = await attemptDelivery(this.#deps, queued, row, policy().timeoutMs, AbortSignal.any([this.#stop.signal, signal]));
    if (attempt !== undefined) {
      await this.#record(queued, attempt).catch((error: unknown) => {
        // Another server makes the attempt again, as after the end of this one.
        if (!(error instanceof LeaseLost)) this.#unrecorded.push([queued, attempt]);
      });
    }
    this.#slots.release(queued.webhook, queued.delivery);
    this.#deps.activator.wake();
  }

  /** Commits the outcome of an attempt; the store groups such commits. */
  async #record({ webhook, delivery }: Queued, attempt: Attempt): Promise<void> {
    const { policy, random, system, log } = this.#deps;
    const { schedule } = policy();
    const chance = random();
    const { after, disabled } = await this.#bad.commit((tx, isolate) => {
      const written: { after?: DeliveryRow; disabled?: WebhookRow } = {};
      isolate(webhook + delivery, () => {
        const row = tx.get(deliveries, webhook + delivery);
        const before = tx.get(webhooks, webhook);
        // Deleted meanwhile.
        if (row === undefined || before === undefined) return;
        // A delivery that was not sent since it is being erased is no failure of the receiver. The erasure removes it.
        if (attempt.status === null && isEventErased(tx, row)) {
          putDelivery(tx, { webhook, delivery, row: { ...row, nextAttemptAt: tx.now + ERASED_LATER_MS } });
          return;
        }
        written.after = afterAttempt(row, attempt, tx.now, schedule, chance);
        putDelivery(tx, { webhook, delivery, row: written.after });
        if (attempt.error !== null) {
          const failures = readable(() => tx.get(webhookFailures, webhook));
          tx.put(webhookFailures, webhook, failuresAfter(failures, attempt, attempt.error, tx.now));
        }
        const changed = webhookAfterAttempt(before, attempt, tx.now);
        if (changed !== before) tx.put(webhooks, webhook, changed);
        if (!before.enabled || changed.enabled) return;
        recordAdmin(tx, system, "webhook.disabled", tracedDisabling(webhook, changed));
        written.disabled = changed;
      });
      return written;
    });
    if (after === undefined) return;
    this.outcomes[OUTCOMES[after.status]]++;
    const id = withPrefix("dlv", delivery);
    log.debug("webhook attempt", { delivery: id, status: attempt.status, result: after.status, duration_ms: attempt.durationMs });
    if (disabled === undefined) return;
    this.outcomes.disabled++;
    log.warn("webhook disabled", { webhook: withPrefix("whk", webhook), reason: disabled.disabledReason });
  }
}
