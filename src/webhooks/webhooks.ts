/**
 * Puts the parts of webhooks together: what management needs, and what works by itself.
 *
 * @module
 */
import type { Chance } from "../lib/chance.ts";
import type { Log } from "../lib/log.ts";
import { LIMITS } from "../lib/limits.ts";
import { systemResolve } from "../lib/names.ts";
import { Connections } from "../lib/pinned-request.ts";
import { webhooks } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import type { Caller, Records } from "../traces/record.ts";
import type { Network } from "./delivery.ts";
import { OUTBOX, outboxDrain } from "./outbox.ts";
import type { WebhookPolicy } from "./policy.ts";
import { deliveryRetention } from "./retention.ts";
import type { WebhookParts } from "./subscriptions.ts";
import { DELIVERIES, Worker } from "./worker.ts";

/** How long a connection stays open for the next delivery. */
const IDLE_CONNECTION_MS = 4_000;

export interface WebhookOptions extends Partial<Omit<Network, "rules">> {
  /** Whether they may lead to this machine: unless said otherwise, for a server that only this machine can reach. */
  loopback?: boolean;
}

export interface Webhooks {
  readonly parts: WebhookParts["webhooks"];
  readonly tasks: readonly Task[];
  /** To be called after a commit that may have left events. */
  readonly wakeOutbox: () => void;
  stop(): Promise<void>;
}

/**
 * @param policy - how deliveries are made now; asked at every attempt
 * @param wakeTask - runs a task soon
 */
export function openWebhooks(
  records: Records,
  means: { log: Log; random: Chance; system: Caller },
  policy: () => WebhookPolicy,
  { loopback = true, ...given }: WebhookOptions,
  wakeTask: (name: string) => void,
): Webhooks {
  const connections = new Connections({ idleMs: IDLE_CONNECTION_MS, idleMax: LIMITS.webhookSessionsAtOnceMax });
  const network: Network = {
    resolve: systemResolve,
    connections,
    ...given,
    get rules() {
      return { loopback, private: policy().allowPrivate };
    },
  };
  const worker = new Worker({ ...records, ...means, network, policy });
  const wake = () => {
    worker.wake();
    wakeTask(DELIVERIES);
  };
  let isLooking = false;
  let isStopped = false;
  return {
    parts: { network, wake, outcomes: worker.outcomes },
    tasks: [outboxDrain(records, means.log, wake), worker.task, deliveryRetention(records, means.log)],
    wakeOutbox: () => {
      // Commits that were flushed together look together.
      if (isLooking) return;
      isLooking = true;
      queueMicrotask(() => {
        isLooking = false;
        if (!isStopped && !records.store.isEmpty(webhooks)) wakeTask(OUTBOX);
      });
    },
    async stop() {
      isStopped = true;
      await worker.stop();
      connections.close();
    },
  };
}
