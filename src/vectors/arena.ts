/**
 * Memory that WebAssembly can see, handed out in pieces: where the vectors of `scope.ts` stand.
 *
 * What is given back serves for pieces of the same size, rounded up. The memory itself never becomes smaller.
 *
 * @module
 */
const PAGE_BYTES = 65_536;
const STEP_BYTES = 256;
const GROWTH_PAGES = 16;

/** The same memory as numbers of each kind. */
export interface Views {
  readonly floats: Float32Array;
  readonly doubles: Float64Array;
  readonly words: Uint32Array;
  readonly shorts: Uint16Array;
}

export class Arena {
  readonly memory: WebAssembly.Memory;
  readonly #first: number;
  #end: number;
  /** Addresses of pieces that were given back, by size. */
  readonly #free = new Map<number, number[]>();
  #views: Views;

  /** @param reserved - bytes from address 0 on that are never handed out */
  constructor(reserved: number) {
    this.memory = new WebAssembly.Memory({ initial: Math.ceil(reserved / PAGE_BYTES) });
    this.#first = this.#end = roundedUp(reserved);
    this.#views = viewsOf(this.memory);
  }

  /** Good until the next piece is taken: then the memory may have grown. */
  get views(): Views {
    return this.#views;
  }

  /** What was handed out and not given back, and what waits to be handed out again. */
  get bytes(): number {
    return this.#end - this.#first;
  }

  /** @returns the address of a piece, a multiple of 256 */
  take(bytes: number): number {
    const size = roundedUp(bytes);
    const again = this.#free.get(size)?.pop();
    if (again !== undefined) return again;
    const address = this.#end;
    this.#end += size;
    const missing = this.#end - this.memory.buffer.byteLength;
    if (missing > 0) {
      this.memory.grow(Math.max(Math.ceil(missing / PAGE_BYTES), GROWTH_PAGES));
      this.#views = viewsOf(this.memory);
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

function viewsOf({ buffer }: WebAssembly.Memory): Views {
  return {
    floats: new Float32Array(buffer),
    doubles: new Float64Array(buffer),
    words: new Uint32Array(buffer),
    shorts: new Uint16Array(buffer),
  };
}
