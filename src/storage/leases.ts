/**
 * Leases: of several servers that share a store, one at a time runs a task.
 *
 * A lease has an end and is renewed long before; when its holder is gone, another server takes it over after that end. A holder that
 * was held up finds that out in its next commit, which then keeps nothing (fencing). The embedded store has one server, which holds
 * every lease for as long as it runs: so no task knows which store it works on.
 *
 * @module
 */
import type { Task } from "../tasks/task.ts";
import type { Reader } from "./access.ts";
import type { RecordStore } from "./record-store.ts";

export interface Lease {
  /** Called inside every commit that its holder alone may make. @throws {LeaseLost} when another server holds it by then */
  check(reader: Reader): void;
  /** Aborts before another server can hold it: what it does outside of the store has to end. */
  readonly signal: AbortSignal;
}

export interface Leases {
  /** Takes part in the lease of this name from now on: this server holds it whenever no other does. */
  join(name: string): void;
  /** The lease of this name, while this server holds it. */
  find(name: string): Lease | undefined;
  /** Interval at which a holder looks for what other servers have left to do: they cannot wake its tasks. */
  readonly lookMs: number;
}

/** Thrown into the callback of a commit whose server has lost its lease. */
export class LeaseLost extends Error {
  override name = "LeaseLost";

  constructor(lease: string) {
    super(`Another server holds the lease "${lease}" by now.`);
  }
}

const ALWAYS_HELD: Lease = { check: () => undefined, signal: new AbortController().signal };
/** Leases of a store that one server has alone. */
export const EVERY_LEASE: Leases = { join: () => undefined, find: () => ALWAYS_HELD, lookMs: Infinity };

/** Delay until a server runs a task whose lease it has got. */
const LOOK_MS = 1_000;

/** The same store, which commits nothing while this server does not hold a lease. */
function underLease(store: RecordStore, leases: Leases, nameOf: () => string): RecordStore {
  const commit: RecordStore["commit"] = (partition, callback) => {
    const name = nameOf();
    const lease = leases.find(name);
    return store.commit(partition, (tx) => {
      if (lease === undefined) throw new LeaseLost(name);
      lease.check(tx);
      return callback(tx);
    });
  };
  return new Proxy(store, {
    get(target, property) {
      if (property === "commit") return commit;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/**
 * A task that only runs while this server holds the lease of its name.
 *
 * @param make - makes the task on a store that commits nothing without the lease, also what the task leaves under way when its run ends
 */
export function leasedTask(leases: Leases, store: RecordStore, make: (store: RecordStore) => Task): Task {
  if (leases === EVERY_LEASE) return make(store);
  const task: Task = make(underLease(store, leases, () => task.name));
  leases.join(task.name);
  // Causes that wake it can happen in any server.
  const pauseMsMax = task.activator === undefined ? Infinity : leases.lookMs;
  return {
    ...task,
    run: async () => {
      if (leases.find(task.name) === undefined) return LOOK_MS;
      try {
        return Math.min(await task.run(), pauseMsMax);
      } catch (error) {
        if (error instanceof LeaseLost) return LOOK_MS;
        throw error;
      }
    },
  };
}
