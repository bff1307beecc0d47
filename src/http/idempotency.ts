/**
 * One request with an `Idempotency-Key`, however often it is sent, is one change and one answer.
 *
 * The answer is committed in the transaction of the change, under the API key and the idempotency key, and kept for
 * 24 hours. A second request while the first is under way waits for it. Only answers of success are kept: after a failure
 * the same key may try again. A read (search, context) is not for this module: running it again does no harm, while keeping
 * its answer would let a key that may only read fill the disk, and give back what was deleted since.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { HOUR_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import type { JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { AFTER_ALL, hashKey, numberKey } from "../storage/keys.ts";
import type { Store, Tx } from "../storage/store.ts";
import { idempotency, idempotencyByTime, type IdempotencyRow } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { seal, unseal, type SealingKeys } from "./seal.ts";

const KEPT_MS = LIMITS.idempotencyHours * HOUR_MS;
const HASH_LENGTH = hashKey("").length;
const ROWS_PER_COMMIT = 500;
const IDLE_MS = 60_000;

export interface IdempotentRequest extends SealingKeys {
  /** Owner of the key: the same text under another API key is another key. */
  keyId: string;
  method: string;
  path: string;
  body: Uint8Array;
}

/** Writes the answer of a success down, inside the transaction of the change; encrypted when it shows a secret. */
export type Keep = (tx: Tx, answer: JsonText, how?: { hasSecret: boolean }) => void;

export class Idempotency {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #inFlight = new Map<string, Promise<unknown>>();

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Gives the kept answer, or has `work` make one.
   *
   * @param status - of a success, kept with the answer
   * @throws {ApiError} `invalid_request` when the key was used for another request
   */
  async run(
    request: IdempotentRequest,
    status: number,
    work: (keep: Keep) => JsonText | Promise<JsonText>,
  ): Promise<{ status: number; answer: JsonText; replayed: boolean }> {
    const row = hashKey(`${request.keyId} ${request.idempotencyKey}`);
    const fingerprint = fingerprintOf(request);
    for (;;) {
      const kept = this.#kept(row);
      if (kept !== undefined) {
        if (kept.fingerprint !== fingerprint) throw usedForAnother(request.idempotencyKey);
        const answer = kept.sealed === true ? unseal(kept.body, request, row) : kept.body;
        return { status: kept.status, answer, replayed: true };
      }
      const current = this.#inFlight.get(row);
      if (current === undefined) break;
      await current;
    }
    let written = false;
    const put: Keep = (tx, answer, how) => {
      const createdAt = this.#clock.now();
      const before = tx.get(idempotency, row);
      if (before !== undefined) tx.remove(idempotencyByTime, numberKey(before.createdAt) + row);
      const body = how?.hasSecret === true ? { body: seal(answer, request, row), sealed: true as const } : { body: answer };
      tx.put(idempotency, row, { fingerprint, status, createdAt, ...body });
      tx.put(idempotencyByTime, numberKey(createdAt) + row, "");
      written = true;
    };
    const working = (async () => {
      const answer = await work(put);
      // A change that found nothing to change has no transaction to join. Its answer is kept all the same: by the time it is
      // sent again somebody else may have changed what it would then change back.
      if (!written) await this.#store.commit((tx) => put(tx, answer));
      return answer;
    })();
    const settled = working.catch(() => undefined).finally(() => this.#inFlight.delete(row));
    this.#inFlight.set(row, settled);
    return { status, answer: await working, replayed: false };
  }

  /** Forgets answers older than 24 hours. */
  retention(): Task {
    return {
      name: "idempotency retention",
      run: async () => {
        const now = this.#clock.now();
        const keys = [
          { from: "", to: numberKey(Math.max(0, now - KEPT_MS)) },
          // From a clock that was ahead.
          { from: numberKey(now + KEPT_MS), to: AFTER_ALL },
        ].flatMap((range) => this.#store.keys(idempotencyByTime, { ...range, limit: ROWS_PER_COMMIT }));
        if (keys.length > 0) {
          await this.#store.commit((tx) => {
            for (const key of keys) {
              tx.remove(idempotencyByTime, key);
              tx.remove(idempotency, key.slice(-HASH_LENGTH));
            }
          });
        }
        return keys.length >= ROWS_PER_COMMIT ? 0 : IDLE_MS;
      },
    };
  }

  #kept(key: string): IdempotencyRow | undefined {
    const row = this.#store.get(idempotency, key);
    return row === undefined || Math.abs(this.#clock.now() - row.createdAt) >= KEPT_MS ? undefined : row;
  }
}

/** @throws {ApiError} `invalid_request` unless the key is 1 to 255 printable ASCII characters */
export function checkIdempotencyKey(key: string): void {
  if (key.length > LIMITS.idempotencyKeyLengthMax || !/^[\x20-\x7e]+$/.test(key)) {
    throw new ApiError("invalid_request", `Idempotency-Key must be 1 to ${LIMITS.idempotencyKeyLengthMax} printable ASCII characters.`, {
      param: "Idempotency-Key",
    });
  }
}

function fingerprintOf({ method, path, body }: IdempotentRequest): string {
  return new Bun.CryptoHasher("sha256").update(`${method} ${path}\n`).update(body).digest("base64url");
}

function usedForAnother(key: string): ApiError {
  return new ApiError("invalid_request", `Idempotency-Key ${JSON.stringify(key.slice(0, 80))} was used for another method, path or body.`, {
    param: "Idempotency-Key",
  });
}
