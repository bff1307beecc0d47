/**
 * Records of a file of JSON, one after another: elements of the array that it is, or of an array in the object that it is. Only one record
 * is in memory at a time, and one that is not JSON is left out without those after it.
 *
 * @module
 */

const RECORD_BYTES_MAX = 64 * 1_048_576;
const DEPTH_MAX = 512;

/** A record, or the reason why it is none. */
export type JsonRecord = { readonly number: number } & ({ readonly value: unknown } | { readonly reason: string });

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const MARK_OF_BYTE_ORDER = [0xef, 0xbb, 0xbf];
const KEY_BYTES_MAX = 64;

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

export class JsonRecords {
  readonly #lists: ReadonlySet<string>;
  #number = 0;
  #depth = 0;
  /** Depth at which records are. */
  #base = 0;
  #isInString = false;
  #isEscaped = false;
  /** Set in an object with an array of records, whose other members are passed over. */
  #isWrapped = false;
  /** The last string in such an object: the key of what comes next. */
  #key: number[] = [];
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #isOpen = false;
  #isTooDeep = false;
  #offset = 0;
  #fault: string | undefined;

  /** @param lists - keys of arrays of records in an object around them */
  constructor(lists: readonly string[]) {
    this.#lists = new Set(lists);
  }

  /** Takes the next bytes. A record may share their memory until then. */
  *take(chunk: Uint8Array): Generator<JsonRecord> {
    let start = 0;
    for (let at = 0; at < chunk.length && this.#fault === undefined; at++) {
      const byte = chunk[at] as number;
      if (this.#isInString) {
        this.#inString(byte);
        if (!this.#isInString && this.#isOpen && this.#depth === this.#base) {
          yield this.#record(chunk.subarray(start, at + 1));
          start = at + 1;
        }
        continue;
      }
      const wasOpen = this.#isOpen;
      const ends = this.#structure(byte, at);
      if (!wasOpen && this.#isOpen) start = at;
      if (ends !== undefined && wasOpen) yield this.#record(chunk.subarray(start, ends === "with" ? at + 1 : at));
    }
    if (this.#isOpen) this.#keep(chunk.subarray(start));
    this.#offset += chunk.length;
  }

  /** Says what is wrong where the file ends. */
  *end(): Generator<JsonRecord> {
    if (this.#fault !== undefined) yield { number: this.#number + 1, reason: this.#fault };
    else if (this.#depth > 0 || this.#isOpen) yield { number: this.#number + 1, reason: "the file ends within it" };
  }

  #inString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) this.#isEscaped = true;
    else if (byte === QUOTE) this.#isInString = false;
    else if (this.#depth === 1 && this.#base === 0 && this.#key.length < KEY_BYTES_MAX) this.#key.push(byte);
  }

  /** @returns how a record ends here, if it does: with this byte or before it */
  #structure(byte: number, at: number): "with" | "before" | undefined {
    if (isSpace(byte) || byte === COMMA) return this.#isOpen && this.#depth === this.#base ? "before" : undefined;
    if (this.#depth === 0 && !this.#isOpen && byte !== OPENING_BRACE && byte !== OPENING_BRACKET) {
      if (this.#offset + at < MARK_OF_BYTE_ORDER.length && MARK_OF_BYTE_ORDER[this.#offset + at] === byte) return undefined;
      this.#fault = "the file is not JSON: neither [ nor { stands there";
      return undefined;
    }
    if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      this.#open(byte);
      return undefined;
    }
    if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) return this.#close();
    if (this.#depth === this.#base && !this.#isOpen && !this.#isBetween()) this.#isOpen = true;
    if (byte === QUOTE) [this.#isInString, this.#key] = [true, []];
    return undefined;
  }

  /** Checks whether it is in an object around records, and in none of these. */
  #isBetween(): boolean {
    return this.#isWrapped && this.#depth <= 1;
  }

  #open(byte: number): void {
    const isList = byte === OPENING_BRACKET;
    if (this.#depth === 0 && isList) [this.#base, this.#isOpen] = [1, false];
    else if (this.#depth === 1 && this.#base === 0 && isList && this.#lists.has(Buffer.from(this.#key).toString())) {
      // Taken for a record until now.
      [this.#chunks, this.#bytes, this.#isOpen, this.#isWrapped, this.#base] = [[], 0, false, true, 2];
    } else if (this.#depth === this.#base && !this.#isBetween()) this.#isOpen = true;
    this.#depth += 1;
    this.#isTooDeep ||= this.#depth > DEPTH_MAX;
  }

  #close(): "with" | "before" | undefined {
    this.#depth -= 1;
    if (this.#depth === 0) this.#isWrapped = false;
    if (this.#depth < this.#base) {
      this.#base = 0;
      return "before";
    }
    return this.#depth === this.#base ? "with" : undefined;
  }

  #keep(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    if (this.#bytes > RECORD_BYTES_MAX) this.#chunks = [];
    // Its reader uses the memory of a chunk again.
    else if (bytes.length > 0) this.#chunks.push(Uint8Array.from(bytes));
  }

  #record(rest: Uint8Array): JsonRecord {
    const [chunks, isTooLong, isTooDeep] = [this.#chunks, this.#bytes + rest.length > RECORD_BYTES_MAX, this.#isTooDeep];
    [this.#chunks, this.#bytes, this.#isOpen, this.#isTooDeep] = [[], 0, false, false];
    const number = ++this.#number;
    if (isTooLong) return { number, reason: `longer than ${RECORD_BYTES_MAX / 1_048_576} MiB` };
    if (isTooDeep) return { number, reason: `has objects or arrays more than ${DEPTH_MAX} deep` };
    try {
      return {
        number,
        value: JSON.parse(new TextDecoder().decode(chunks.length === 0 ? rest : Buffer.concat([...chunks, rest]))) as unknown,
      };
    } catch {
      return { number, reason: "is not JSON" };
    }
  }
}
