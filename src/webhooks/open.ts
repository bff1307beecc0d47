/**
 * Opens the parts of webhooks: what the API needs of them, and their tasks.
 *
 * @module
 */
import type { Chance } from "../lib/chance.ts";
import type { Log } from "../lib/log.ts";
import { LIMITS } from "../lib/limits.ts";
import { Connections, systemResolve, type Network } from "../lib/outbound.ts";
import { leasedTask, type Leases } from "../storage/leases.ts";
import { Activator, type Task } from "../tasks/task.ts";
import type { Caller, Deps } from "../traces/record.ts";
import { outboxDrain } from "./outbox.ts";
import type { WebhookPolicy } from "./policy.ts";
import { deliveryRetention } from "./retention.ts";
import type { WebhookDeps } from "./webhooks.ts";
import { isAllowed } from "./target.ts";
import { Worker } from "./worker.ts";

/** Time that a connection stays open for the next delivery. */
const IDLE_CONNECTION_MS = 4_000;

export interface WebhookOptions extends Partial<Omit<Network, "isAllowed">> {
  /** Allows receivers on this machine: right for a server that only this machine can reach. */
  loopback?: boolean;
}

export interface Webhooks {
  /** For the operations of the API. */
  readonly webhooks: WebhookDeps["webhooks"];
  readonly tasks: readonly Task[];
  /** Has events of a commit delivered. */
  wake(): void;
  stop(): Promise<void>;
}

/** @param policy - how deliveries are made now; asked at every attempt */
export function openWebhooks(
  deps: Deps & { log: Log; random: Chance; system: Caller; leases: Leases },
  policy: () => WebhookPolicy,
  { loopback = true, ...given }: WebhookOptions,
): Webhooks {
  const { log, leases } = deps;
  const connections = new Connections({ idleMs: IDLE_CONNECTION_MS, idleMax: LIMITS.webhookSessionsAtOnceMax });
  const network: Network = {
    resolve: systemResolve,
    connections,
    ...given,
    isAllowed: (kind) => isAllowed(kind, { loopback, private: policy().allowPrivate }),
  };
  const drain = new Activator();
  let isStopped = false;
  const deliveries = new Activator();
  const worker = new Worker({ ...deps, network, policy, activator: deliveries });
  return {
    webhooks: { network, deliveries, inFlight: worker.inFlight, outcomes: worker.outcomes },
    tasks: [
      outboxDrain(deps, leases, log, drain, deliveries),
      worker.task,
      leasedTask(leases, deps.store, (store) => deliveryRetention({ ...deps, store }, log)),
    ],
    wake() {
      if (!isStopped) drain.wake();
    },
    async stop() {
      isStopped = true;
      await worker.stop();
      connections.close();
    },
  };
}
