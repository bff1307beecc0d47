/**
 * The writes of the transaction under way, which LMDB takes many at a time: to hand over each by itself took longer than the write.
 *
 * @module
 */
import { UTF8_BYTES_PER_UNIT_MAX } from "../lib/text.ts";
import { KEY_ENCODER } from "./keys.ts";

/** What our build of lmdb-js has besides its own (`scripts/lmdb/writes.patch`, which says how they are laid out). */
export interface NativeWriter {
  writeMany(source: Uint8Array, length: number): void;
  /**
   * Overwrites what free pages hold, in a transaction that has written nothing (`scripts/lmdb/wipe.patch`).
   *
   * @param state - zeros at first; the second one is zero at the end
   * @returns false while a reader may still see such pages
   */
  wipeFree(state: Float64Array, pagesMax: number): boolean;
}

const ROOM_BYTES = 256 * 1024;
/** Three words: the table, the length of the key and that of the value. */
const HEAD_BYTES = 12;
const REMOVED = 0xffffffff;
/** Zeros behind a key, and what is left of a word behind key and value. */
const PADDING_BYTES_MAX = 4 + 3 + 3;

export class TransactionWrites {
  readonly #writer: NativeWriter;
  #bytes = Buffer.allocUnsafeSlow(ROOM_BYTES);
  #words = new Uint32Array(this.#bytes.buffer);
  #length = 0;
  /** Why LMDB did not take some of them: then nothing of the transaction may be kept, even if a work has caught the error. */
  #failure: { reason: unknown } | undefined;

  constructor(writer: NativeWriter) {
    this.#writer = writer;
  }

  begin(): void {
    this.#length = 0;
    this.#failure = undefined;
  }

  /** As `NativeWriter`; to be called before anything is written. */
  wipeFree(state: Float64Array, pagesMax: number): boolean {
    return this.#writer.wipeFree(state, pagesMax);
  }

  /** @param value - undefined removes */
  add(table: number, key: string, value: string | Uint8Array | undefined): void {
    this.#makeRoom(key, value);
    const [bytes, words] = [this.#bytes, this.#words];
    const head = this.#length >> 2;
    const keyAt = this.#length + HEAD_BYTES;
    const keyLength = KEY_ENCODER.writeKey(key, bytes, keyAt) - keyAt;
    const valueAt = inWords(keyAt + keyLength + 4);
    let valueLength = 0;
    if (typeof value === "string" && value.length > 0) valueLength = bytes.write(value, valueAt);
    else if (typeof value === "object") {
      bytes.set(value, valueAt);
      valueLength = value.length;
    }
    words[head] = table;
    words[head + 1] = keyLength;
    words[head + 2] = value === undefined ? REMOVED : valueLength;
    this.#length = inWords(valueAt + valueLength);
  }

  /** Has LMDB take all that were added. @throws {Error} of LMDB, again and again until the next transaction begins */
  flush(): void {
    if (this.#failure !== undefined) throw this.#failure.reason;
    if (this.#length === 0) return;
    const length = this.#length;
    this.#length = 0;
    try {
      this.#writer.writeMany(this.#bytes, length);
    } catch (reason) {
      this.#failure = { reason };
      throw reason;
    }
  }

  #makeRoom(key: string, value: string | Uint8Array | undefined): void {
    const valueMax = value === undefined ? 0 : typeof value === "string" ? value.length * UTF8_BYTES_PER_UNIT_MAX : value.length;
    // A key is never empty as it is stored.
    const needed = HEAD_BYTES + Math.max(1, key.length) + PADDING_BYTES_MAX + valueMax;
    if (this.#length + needed <= this.#bytes.length) return;
    this.flush();
    const length = Math.max(ROOM_BYTES, inWords(needed));
    if (length === this.#bytes.length) return;
    this.#bytes = Buffer.allocUnsafeSlow(length);
    this.#words = new Uint32Array(this.#bytes.buffer);
  }
}

/** The next multiple of four. */
function inWords(length: number): number {
  return (length + 3) & ~3;
}
