/**
 * Removes deliveries after 7 days, made or not, and those of webhooks that are gone.
 *
 * A bounded number per commit. What was posted goes with the last delivery that could still need it, and by its age.
 *
 * Ids tell how old they are, unless the clock was set back: then they stay ahead of it until it has caught up. Once an hour
 * the task looks at the rows of such ids, a few at a time; there are none as a rule.
 *
 * @module
 */
import { DAY_MS, HOUR_MS } from "../lib/duration.ts";
import { BARE_ID_LENGTH, firstBareIdAt, NO_PARTITION } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Log } from "../lib/log.ts";
import { BadRows, readable } from "../storage/bad-rows.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import { eachFetched, type Tx } from "../storage/access.ts";
import { deliveries, payloads, webhooks, type DeliveryRow } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import type { Deps } from "../traces/record.ts";
import { payloadTime } from "./outbox.ts";
import { putDelivery, removeDeliveries } from "./queue.ts";

const ROWS_PER_COMMIT = 200;
/** For each a look at what every other webhook was sent. */
const ROWS_OF_GONE_PER_COMMIT = 50;
/** Webhooks that still have deliveries, gone or not; beyond that what was posted stays for its time. */
const WEBHOOKS_LOOKED_AT = 2 * LIMITS.webhooksMax;
const IDLE_MS = 60_000;
/** Ids of one event are drawn at once, but the last of them may be of the next millisecond: a payload stays a little longer. */
const PAYLOAD_MARGIN_MS = 60_000;
const SWEEP_EVERY_MS = HOUR_MS;
const SWEPT_PER_COMMIT = 50;
/** An id that is further ahead of the clock was made when the clock showed another time. */
const AHEAD_MS = DAY_MS;
/** No wait is longer, with its jitter: a schedule is at most as long as deliveries are kept. */
const WAIT_MS_MAX = 2 * LIMITS.deliveryDays * DAY_MS;

const NAME = "webhook retention";

export function deliveryRetention(deps: Deps, log: Log): Task {
  const retention = new DeliveryRetention(deps, log);
  return { name: NAME, run: () => retention.run() };
}

class DeliveryRetention {
  readonly #deps: Deps;
  readonly #bad: BadRows;
  #sweepAt = 0;
  /** Cursor of the sweep: a key of `deliveries`, then one of `payloads`. */
  #position: { table: "deliveries" | "payloads"; from: string } | undefined;

  constructor(deps: Deps, log: Log) {
    this.#deps = deps;
    this.#bad = new BadRows(deps.store, log, NAME);
  }

  async run(): Promise<number> {
    const { store, clock } = this.#deps;
    const keptFrom = clock.now() - LIMITS.deliveryDays * DAY_MS;
    const old = await this.#oldDeliveries(firstBareIdAt(keptFrom));
    // Not before all the deliveries that have it are found.
    const limit = old.length < ROWS_PER_COMMIT ? ROWS_PER_COMMIT : 0;
    const span = { from: "", to: firstBareIdAt(keptFrom - PAYLOAD_MARGIN_MS), limit };
    const unneeded = limit === 0 ? [] : await store.read((reader) => reader.keys(payloads, span));
    if (old.length > 0 || unneeded.length > 0) {
      await this.#bad.commit((tx, isolate) => {
        for (const key of old) isolate(key, () => removeDelivery(tx, key));
        for (const key of unneeded) tx.remove(payloads, key);
      });
    }
    if (clock.elapsed() >= this.#sweepAt) {
      this.#position ??= { table: "deliveries", from: "" };
      const { table, from } = this.#position;
      this.#position = await (table === "deliveries" ? this.#sweepDeliveries(from) : this.#sweepPayloads(from));
      if (this.#position !== undefined) return 0;
      this.#sweepAt = clock.elapsed() + SWEEP_EVERY_MS;
    }
    return old.length >= ROWS_OF_GONE_PER_COMMIT || unneeded.length >= ROWS_PER_COMMIT ? 0 : IDLE_MS;
  }

  /**
   * Removes those of ids ahead that are old, and has those made now that a clock ahead has put off for years.
   *
   * @returns where to continue
   */
  async #sweepDeliveries(from: string): Promise<{ table: "deliveries" | "payloads"; from: string }> {
    const found = await this.#deps.store.read((reader) => {
      const [first] = reader.keys(deliveries, { from, to: MAX_KEY, limit: 1 });
      if (first === undefined) return undefined;
      const webhook = first.slice(0, BARE_ID_LENGTH);
      const start = webhook + firstBareIdAt(reader.now + AHEAD_MS);
      const span = { from: start > from ? start : from, to: webhook + MAX_KEY, limit: SWEPT_PER_COMMIT };
      return { webhook, keys: reader.keys(deliveries, span) };
    });
    if (found === undefined) return { table: "payloads", from: "" };
    const { webhook, keys } = found;
    if (keys.length > 0) {
      await this.#bad.commit((tx, isolate) => {
        for (const key of keys) isolate(key, () => settle(tx, key));
      });
    }
    const last = keys.at(-1);
    return { table: "deliveries", from: keys.length < SWEPT_PER_COMMIT || last === undefined ? webhook + MAX_KEY : successor(last) };
  }

  /** @returns where to continue; undefined at the end */
  async #sweepPayloads(from: string): Promise<{ table: "payloads"; from: string } | undefined> {
    const { store } = this.#deps;
    const { rows, old } = await store.read((reader) => {
      const start = firstBareIdAt(reader.now + AHEAD_MS);
      const found = reader.rows(payloads, { from: start > from ? start : from, to: MAX_KEY, limit: SWEPT_PER_COMMIT });
      const keptFrom = reader.now - LIMITS.deliveryDays * DAY_MS - PAYLOAD_MARGIN_MS;
      return { rows: found, old: found.filter(({ row }) => payloadTime(row) < keptFrom) };
    });
    if (old.length > 0) {
      await store.commit(NO_PARTITION, (tx) => {
        for (const { key } of old) tx.remove(payloads, key);
      });
    }
    const last = rows.at(-1);
    return rows.length < SWEPT_PER_COMMIT || last === undefined ? undefined : { table: "payloads", from: successor(last.key) };
  }

  /** Webhook by webhook: the first ones of each, or all of one that is gone. */
  async #oldDeliveries(keptFrom: string): Promise<string[]> {
    const found: string[] = [];
    let from = "";
    while (found.length < ROWS_PER_COMMIT) {
      const next = await this.#deps.store.read((reader) => {
        const [first] = reader.keys(deliveries, { from, to: MAX_KEY, limit: 1 });
        if (first === undefined) return undefined;
        const webhook = first.slice(0, BARE_ID_LENGTH);
        return { webhook, to: webhook + (reader.has(webhooks, webhook) ? keptFrom : MAX_KEY) };
      });
      if (next === undefined) break;
      const { webhook, to } = next;
      const limit = to === webhook + MAX_KEY ? ROWS_OF_GONE_PER_COMMIT : ROWS_PER_COMMIT;
      found.push(
        ...(await this.#bad.keysOfOthers(deliveries, { from: webhook, to, limit: Math.min(limit, ROWS_PER_COMMIT - found.length) })),
      );
      from = webhook + MAX_KEY;
    }
    return found;
  }
}

/** Removes a delivery; one of a webhook that is gone with what was posted, unless another webhook was sent it too. */
function removeDelivery(tx: Tx, key: string): void {
  const row = tx.get(deliveries, key);
  removeDeliveries(tx, [key]);
  if (row !== undefined && !tx.has(webhooks, key.slice(0, BARE_ID_LENGTH)) && !isShared(tx, row)) tx.remove(payloads, row.payload);
}

/**
 * Checks whether another delivery has the same payload: its id lies between those of the event and the payload, which were drawn with it.
 */
function isShared(tx: Tx, { eventId, payload }: DeliveryRow): boolean {
  const others = tx.lastOfEach(deliveries, BARE_ID_LENGTH, { from: "", to: MAX_KEY, limit: WEBHOOKS_LOOKED_AT });
  const found = eachFetched(others, (last) => {
    const webhook = last.slice(0, BARE_ID_LENGTH);
    const keys = tx.keys(deliveries, { from: webhook + eventId, to: webhook + payload });
    return eachFetched(keys, (key) => readable(() => tx.get(deliveries, key))?.payload === payload);
  });
  return others.length === WEBHOOKS_LOOKED_AT || found.flat().includes(true);
}

/** Removes a delivery whose time has passed; one of a time that a clock ahead has shown becomes one of now. */
function settle(tx: Tx, key: string): void {
  const { now } = tx;
  const row = tx.get(deliveries, key);
  if (row === undefined) return;
  if (isAhead(row, now)) {
    const [webhook, delivery] = [key.slice(0, BARE_ID_LENGTH), key.slice(BARE_ID_LENGTH)];
    const nextAttemptAt = row.nextAttemptAt === null ? null : Math.min(row.nextAttemptAt, now);
    putDelivery(tx, { webhook, delivery, row: { ...row, createdAt: Math.min(row.createdAt, now), nextAttemptAt } });
  } else if (row.createdAt < now - LIMITS.deliveryDays * DAY_MS) {
    removeDeliveries(tx, [key]);
  }
}

/** Made, or to be tried again, at times that a clock ahead has shown. */
function isAhead({ createdAt, nextAttemptAt }: DeliveryRow, now: number): boolean {
  return createdAt > now + AHEAD_MS || (nextAttemptAt ?? 0) > now + WAIT_MS_MAX;
}
