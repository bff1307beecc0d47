/**
 * The traces of a store by their places in chains, as verification needs them: a hundred bytes for each.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { HASH_BYTES, HASH_TEXT_LENGTH, leafOf, parseLink, splitLink } from "../storage/audit/format.ts";

export interface TraceAt {
  readonly place: number;
  readonly key: string;
  readonly leaf: Uint8Array;
  /** Digest of the chain that its link says. */
  readonly digest: string;
}

const ENTRY_BYTES = HASH_BYTES + HASH_TEXT_LENGTH;
const ENTRIES_FIRST = 64;

/** Traces of one chain: hashes side by side, and what else there is of each. */
class Entries {
  readonly places: number[] = [];
  readonly keys: string[] = [];
  #bytes = Buffer.alloc(ENTRIES_FIRST * ENTRY_BYTES);

  add(place: number, key: string, leaf: Uint8Array, digest: string): void {
    const at = this.places.length * ENTRY_BYTES;
    if (at === this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(at)]);
    this.#bytes.set(leaf, at);
    this.#bytes.write(digest.slice(0, HASH_TEXT_LENGTH).padEnd(HASH_TEXT_LENGTH), at + HASH_BYTES, "latin1");
    this.places.push(place);
    this.keys.push(key);
  }

  sorted(): TraceAt[] {
    const order = Array.from(this.places, (_, i) => i).sort((a, b) => this.places[a]! - this.places[b]!);
    return order.map((i) => {
      const at = i * ENTRY_BYTES;
      return {
        place: this.places[i]!,
        key: this.keys[i]!,
        leaf: this.#bytes.subarray(at, at + HASH_BYTES),
        digest: this.#bytes.toString("latin1", at + HASH_BYTES, at + ENTRY_BYTES),
      };
    });
  }
}

export class LinkedTraces {
  readonly #chains = new Map<string, Entries>();
  #unlinked: string[] = [];
  #newest: BareId | undefined;

  /** @param json - of its row as an export has it, byte for byte */
  add(key: string, json: string): void {
    const id = key.slice(1);
    if (this.#newest === undefined || id > this.#newest) this.#newest = id;
    const split = splitLink(json);
    if (split === undefined) {
      this.#unlinked.push(key);
      return;
    }
    const { chain, place, salt, digest } = parseLink(split.link);
    let entries = this.#chains.get(chain);
    if (entries === undefined) this.#chains.set(chain, (entries = new Entries()));
    entries.add(place, key, leafOf(salt, key, split.rest), digest);
  }

  chains(): Iterable<string> {
    return this.#chains.keys();
  }

  /** Traces of a chain in the order of their places. */
  of(chain: string): TraceAt[] {
    return this.#chains.get(chain)?.sorted() ?? [];
  }

  get newest(): BareId | undefined {
    return this.#newest;
  }

  /** Number of traces in no chain. */
  get unlinked(): number {
    return this.#unlinked.length;
  }

  /** Takes those out of these that are after an id. */
  takeUnlinkedAfter(id: BareId): string[] {
    const after = this.#unlinked.filter((key) => key.slice(1) > id);
    this.#unlinked = this.#unlinked.filter((key) => key.slice(1) <= id);
    return after;
  }
}
