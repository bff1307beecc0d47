/**
 * One request with an `Idempotency-Key`, however often it is sent, is one change and one answer.
 *
 * The answer is committed in the transaction of the change, under the hash of the presented API key and the idempotency key,
 * and kept for 24 hours. Whether there is one is looked at before the work, and once more in that transaction: of several
 * requests at the same time one changes something, and the others drop their work and give its answer. Only answers of success
 * are kept: after a failure the same key may try again. A read (search, context) is not for this module: running it again does
 * no harm, while keeping its answer would let a key that may only read fill the disk, and give back what was deleted since.
 *
 * A kept answer is a copy of what it shows. So it is erased with its user, and it needs space like any record: a store at its limit
 * refuses the change before it is made, unless that makes space, and one key can have only so much kept (`kept-bytes.ts`).
 *
 * @module
 */
import { randomBytes } from "node:crypto";
import { statusAndJson, type Answered, type AnswerJson } from "../lib/answer.ts";
import type { Clock } from "../lib/clock.ts";
import { HOUR_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { NO_PARTITION } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Log } from "../lib/log.ts";
import { packed } from "../lib/packed-json.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { BadRows } from "../storage/bad-rows.ts";
import { isAnswerErased, keptJson } from "../storage/erasure.ts";
import { MAX_KEY, hashKey, numberKey } from "../storage/keys.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { idempotency, type IdempotencyRow } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import type { KeptBytes } from "./kept-bytes.ts";
import { NONCE_BYTES, seal, unseal, type SealingKeys } from "./seal.ts";

const { byTime } = idempotency.index;
const KEPT_MS = LIMITS.idempotencyHours * HOUR_MS;
const ROWS_PER_COMMIT = 500;
const IDLE_MS = 60_000;
/** An answer up to this is kept although the store is at its limit, if its change makes some space. */
const SMALL_BYTES = 4 * 1024;

export interface IdempotentRequest extends SealingKeys {
  /** Id of the API key whose limits count. */
  limitsId: string;
  method: string;
  path: string;
  body: Uint8Array;
}

/** Keeps a request from being done twice, inside the transaction of its change. */
export interface IdempotencyGuard {
  /** @throws when the request was answered before; nothing is changed then */
  claim(reader: Reader): void;
  /**
   * Saves the answer; encrypted when it shows a secret.
   *
   * @throws {ApiError} when there is no space for it; nothing is changed then
   */
  save(tx: Tx, answer: Answered<AnswerJson>, how: { hasSecret: boolean }): void;
}

/** The limit of the store's size. */
interface GrowthLimit {
  /** @throws {ApiError} `service_unavailable` when there is no space for them */
  refuseGrowth(bytes: number): void;
}

/** Thrown into a work whose request was answered before. */
class AnsweredBefore extends Error {
  readonly row: IdempotencyRow;

  constructor(row: IdempotencyRow) {
    super("The request was answered before");
    this.row = row;
  }
}

export class Idempotency {
  readonly #store: RecordStore;
  readonly #quotas: GrowthLimit;
  readonly #keptBytes: KeptBytes;

  constructor(store: RecordStore, quotas: GrowthLimit, keptBytes: KeptBytes) {
    this.#store = store;
    this.#quotas = quotas;
    this.#keptBytes = keptBytes;
  }

  /**
   * Gives the kept answer, or has `work` make one.
   *
   * @param status - of a success that is no `Existing`, kept with the answer
   * @throws {ApiError} `invalid_request` when the key was used for another request
   */
  async run(
    request: IdempotentRequest,
    status: number,
    work: (guard: IdempotencyGuard) => AnswerJson | Promise<AnswerJson>,
  ): Promise<{ status: number; answer: JsonText; replayed: boolean }> {
    const key = rowKeyOf(request);
    const fingerprint = fingerprintOf(request);
    const nonce = randomBytes(NONCE_BYTES);
    let isSaved = false;
    // By the last run of the work: it can be run several times.
    let taken = 0;
    const takeBytes = (bytes: number) => {
      this.#keptBytes.giveBack(request.limitsId, taken);
      taken = 0;
      this.#keptBytes.take(request.limitsId, bytes);
      taken = bytes;
    };
    const guard: IdempotencyGuard = {
      claim(reader) {
        const kept = keptAnswer(reader, key);
        if (kept !== undefined) throw new AnsweredBefore(kept);
      },
      save: (tx, { json: answer, users, asksForRoom }, { hasSecret }) => {
        const { status: kept, json } = statusAndJson(answer, status);
        const form = hasSecret ? { body: seal(json, request, key, nonce), sealed: true as const } : formOf(json);
        const bytes = form.body.length;
        if (asksForRoom === "always" || (asksForRoom === "if large" && bytes > SMALL_BYTES)) this.#quotas.refuseGrowth(bytes);
        if (asksForRoom !== "never") takeBytes(Math.max(0, bytes - tx.bytesWritten));
        tx.put(idempotency, key, { fingerprint, status: kept, createdAt: tx.now, users: [...users], ...form });
        isSaved = true;
      },
    };
    try {
      await this.#store.read((reader) => guard.claim(reader));
      const answer = await work(guard);
      // A change that found nothing to change has no transaction to join. Its answer is kept all the same: by the time it is
      // sent again somebody else may have changed what it would then change back.
      if (!isSaved) {
        await this.#store.commit(NO_PARTITION, (tx) => {
          guard.claim(tx);
          guard.save(tx, { json: answer, users: [], asksForRoom: "if large" }, { hasSecret: false });
        });
      }
      const { status: given, json } = statusAndJson(answer, status);
      return { status: given, answer: json, replayed: false };
    } catch (error) {
      this.#keptBytes.giveBack(request.limitsId, taken);
      if (!(error instanceof AnsweredBefore)) throw error;
      const { row } = error;
      if (row.fingerprint !== fingerprint) throw usedForAnother(request.idempotencyKey);
      return { status: row.status, answer: row.sealed === true ? unseal(row.body, request, key) : keptJson(row), replayed: true };
    }
  }
}

function formOf(json: JsonText): Pick<IdempotencyRow, "body" | "packed"> {
  const body = packed(json);
  return body === undefined ? { body: json } : { body, packed: true };
}

/** Forgets answers older than 24 hours. */
export function idempotencyRetention({ store, clock }: { store: RecordStore; clock: Clock }, log: Log): Task {
  const name = "idempotency retention";
  const bad = new BadRows(store, log, name);
  return {
    name,
    run: async () => {
      const now = clock.now();
      const keysIn = (from: string, to: string) => bad.keysOfOthers(byTime, { from, to, limit: ROWS_PER_COMMIT });
      const old = await keysIn("", numberKey(Math.max(0, now - KEPT_MS)));
      // From a clock that was ahead.
      const entries = [...old, ...(await keysIn(numberKey(now + KEPT_MS), MAX_KEY))];
      // A key that was used again since has a new answer, which stays.
      if (entries.length > 0) await bad.removeRowsOf(entries, idempotency, byTime);
      return entries.length >= ROWS_PER_COMMIT ? 0 : IDLE_MS;
    },
  };
}

function keptAnswer(reader: Reader, key: string): IdempotencyRow | undefined {
  const row = reader.get(idempotency, key);
  if (row === undefined || Math.abs(reader.now - row.createdAt) >= KEPT_MS) return undefined;
  return isAnswerErased(reader, row) ? undefined : row;
}

/** Looks for the kept answer to a request. */
export function readKept(presentedKey: string, idempotencyKey: string): (reader: Reader) => unknown {
  const key = rowKeyOf({ presentedKey, idempotencyKey });
  return (reader) => reader.get(idempotency, key);
}

/** The same text under another API key is another key. */
function rowKeyOf({ presentedKey, idempotencyKey }: SealingKeys): string {
  return hashKey(`${Bun.CryptoHasher.hash("sha256", presentedKey, "hex")} ${idempotencyKey}`);
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
