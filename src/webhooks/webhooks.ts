/**
 * Puts the parts of webhooks together: what management needs, and what works by itself.
 *
 * @module
 */
import type { Chance } from "../lib/chance.ts";
import type { Wait } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { webhooks } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import type { Records } from "../traces/record.ts";
import { RETRY_SCHEDULE_MS } from "./backoff.ts";
import { Connections, type Network } from "./delivery.ts";
import { OUTBOX, outboxDrain } from "./outbox.ts";
import { deliveryRetention } from "./retention.ts";
import type { WebhookParts } from "./subscriptions.ts";
import { systemResolve } from "./target.ts";
import { DELIVERIES, Worker } from "./worker.ts";

const TIMEOUT_MS = 15_000;

export interface WebhookOptions extends Partial<Network> {
  /** An attempt has this long to be answered. */
  timeoutMs?: number | undefined;
  /** Waits before each further attempt. */
  schedule?: readonly number[] | undefined;
}

export interface Webhooks {
  readonly parts: WebhookParts["webhooks"];
  readonly tasks: readonly Task[];
  /** To be called after a commit that may have left events. */
  readonly wakeOutbox: () => void;
  stop(): Promise<void>;
}

/** @param wakeTask - runs a task soon */
export function openWebhooks(
  records: Records,
  means: { log: Log; wait: Wait; random: Chance },
  { timeoutMs = TIMEOUT_MS, schedule = RETRY_SCHEDULE_MS, ...given }: WebhookOptions,
  wakeTask: (name: string) => void,
): Webhooks {
  const connections = new Connections();
  const network: Network = { rules: { loopback: true, private: false }, resolve: systemResolve, connections, ...given };
  const worker = new Worker({ ...records, ...means, network, timeoutMs, schedule });
  const wake = () => {
    worker.poke();
    wakeTask(DELIVERIES);
  };
  return {
    parts: { network, wake },
    tasks: [outboxDrain(records, wake), worker.task, deliveryRetention(records)],
    wakeOutbox: () => {
      if (records.store.keys(webhooks, { from: "", to: AFTER_ALL, limit: 1 }).length > 0) wakeTask(OUTBOX);
    },
    async stop() {
      await worker.stop();
      connections.close();
    },
  };
}
