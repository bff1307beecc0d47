/**
 * Keys that a start registers: the first one of a store, and one that the operator chose.
 *
 * @module
 */
import { DAY_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { NO_PARTITION } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { Reader } from "../storage/access.ts";
import { apiKeys, deletedKeys } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import type { Caller, Deps } from "../traces/record.ts";
import { addNewKey, hasEnded, newSecret, SHOWN_LENGTH } from "./keys.ts";
import { hashOf } from "./stored-key.ts";

/** Makes the first key, with all scopes, when there is none. @returns it, to be shown once */
export async function createFirstKey(deps: Deps, caller: Caller): Promise<string | undefined> {
  // Without a commit where there is nothing to do, so that a start needs no space on the disk.
  if (await deps.store.read(hasKeys)) return undefined;
  const secret = newSecret();
  return deps.store.commit(NO_PARTITION, (tx) => {
    if (hasKeys(tx)) return undefined;
    addNewKey(tx, caller, secret, { name: "first key", scopes: ["admin"], tier: "enterprise" });
    return secret;
  });
}

function hasKeys(reader: Reader): boolean {
  return !reader.isEmpty(apiKeys);
}

/**
 * Registers a key that the operator chose. Where the disk is full a start succeeds with the keys there are, and the task that
 * this gives registers it when there is space. A key that was deleted once is never a key again: who deleted it may not know
 * where else it is used.
 *
 * @throws {ApiError} `service_unavailable` when it cannot be registered and there is no other: nobody could ask for anything
 */
export async function keyRegistration(deps: Deps, caller: Caller, secret: string, log: Log): Promise<Task> {
  let isDone = false;
  try {
    await registerKey(deps, caller, secret, log);
    isDone = true;
  } catch (error) {
    if (!(error instanceof ApiError) || !(await deps.store.read(hasKeys))) throw error;
    log.error("CAIRN_API_KEY is not registered yet: trying again until it can be written", { reason: error.message });
  }
  return {
    name: "registration of CAIRN_API_KEY",
    async run() {
      // Once: it may be revoked meanwhile.
      if (!isDone) await registerKey(deps, caller, secret, log);
      isDone = true;
      return DAY_MS;
    },
  };
}

/** With all scopes, unless it is there already or was deleted. */
async function registerKey(deps: Deps, caller: Caller, secret: string, log: Log): Promise<void> {
  const { store } = deps;
  const hash = hashOf(secret);
  const isNew = (reader: Reader) => !reader.has(apiKeys, hash) && !reader.has(deletedKeys, hash);
  if (await store.read(isNew)) {
    await store.commit(NO_PARTITION, (tx) => {
      if (isNew(tx)) addNewKey(tx, caller, secret, { name: "from the environment", scopes: ["admin"], tier: "enterprise" });
    });
  }
  const { row, reason } = await store.read((reader) => {
    const found = reader.get(apiKeys, hash);
    return { row: found, reason: found === undefined ? "it was deleted" : hasEnded(found, reader.now) ? "it has ended" : undefined };
  });
  if (reason === undefined) return;
  log.warn("CAIRN_API_KEY is not registered: set another key", {
    reason,
    prefix: secret.slice(0, SHOWN_LENGTH),
    ...(row === undefined ? {} : { key: row.id }),
  });
}
