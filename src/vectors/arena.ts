/**
 * Memory that WebAssembly can see, handed out in pieces: where `resident-set.ts` has its vectors.
 *
 * A piece that is given back serves for another of the same size, rounded up. The memory itself never becomes smaller.
 *
 * @module
 */
const PAGE_BYTES = 65_536;
const STEP_BYTES = 64;
const GROWTH_PAGES = 16;

export class Arena {
  readonly memory: WebAssembly.Memory;
  readonly #first: number;
  #end: number;
  /** Addresses of pieces that were given back, by size. */
  readonly #free = new Map<number, number[]>();
  #bytes: Uint8Array;

  /** @param reserved - bytes from address 0 on that are never handed out */
  constructor(reserved: number) {
    this.memory = new WebAssembly.Memory({ initial: Math.ceil(reserved / PAGE_BYTES) });
    this.#first = this.#end = roundedUp(reserved);
    this.#bytes = new Uint8Array(this.memory.buffer);
  }

  /** The memory, valid until the next piece is taken: then it may have grown. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** The bytes in use, and those given back that wait to be used again. */
  get size(): number {
    return this.#end - this.#first;
  }

  /** @returns the address of a piece, a multiple of 64 */
  take(bytes: number): number {
    const size = roundedUp(bytes);
    const again = this.#free.get(size)?.pop();
    if (again !== undefined) return again;
    const address = this.#end;
    this.#end += size;
    const missing = this.#end - this.memory.buffer.byteLength;
    if (missing > 0) {
      this.memory.grow(Math.max(Math.ceil(missing / PAGE_BYTES), GROWTH_PAGES));
      this.#bytes = new Uint8Array(this.memory.buffer);
    }
    return address;
  }

  /** @param bytes - as it was taken */
  give(address: number, bytes: number): void {
    const size = roundedUp(bytes);
    const free = this.#free.get(size);
    if (free === undefined) this.#free.set(size, [address]);
    else free.push(address);
  }

  /** Takes all pieces back at once. */
  reset(): void {
    this.#end = this.#first;
    this.#free.clear();
  }
}

/** The bytes that a piece of this size takes. */
export function roundedUp(bytes: number): number {
  return Math.ceil(bytes / STEP_BYTES) * STEP_BYTES;
}
