/**
 * The built-in embedding: a text to a vector, in any of a hundred languages, by the network multilingual-e5-small.
 *
 * The work is done by our own native add-on (`src/native/`), on the thread that calls. A text has one vector, to the last bit, on every
 * processor and system. Weights are mapped and read where they lie, and shared by all threads of the process.
 *
 * Nothing here is centred or compared: that is for the users of the vectors.
 *
 * @module
 */
import { type FilePart, findWeights, loadEncoderAddon } from "./native.ts";
import { WEIGHTS_VERSION } from "./weights.ts";

export type EncodedKind = "query" | "passage";

/** Positions of the pieces of a text, as the network's tokenizer cuts it. */
export interface WordPieces {
  /**
   * First code unit of each piece, and the one behind it, in the prepared text. Characters that the tokenizer drops, such as spaces,
   * belong to none; a character that it replaces by several belongs to each piece that has some of these.
   */
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  /** Rarity of each: minus the natural logarithm of its probability. A run of unknown characters counts as one, the rarest of all. */
  readonly costs: Float32Array;
}

export interface Encoder {
  readonly dimension: 384;
  /** Name and hash of the weights: a part of the generation of vectors. */
  readonly version: string;
  /** Name of the loops that are used on this processor, the fastest that it supports; they differ in speed alone. */
  readonly kernels: string;
  /**
   * Encodes a text on the calling thread: 1 to 200 ms, by its length. What is beyond 512 tokens has no part in it.
   *
   * @returns a vector of 384 numbers and length 1, not centred; undefined where the text is empty or has none but unknown characters
   */
  encode(text: string, kind: EncodedKind): Float32Array | undefined;
  /** The same in twelve steps, so that others get their turn in between. Several may be under way. */
  begin(text: string, kind: EncodedKind): EncodingRun | undefined;
  /** Cuts a text, of any length, into pieces. */
  pieces(text: string): WordPieces;
  /** The numbers of the pieces that the network gets for a text, with those of its prefix and of begin and end: at most 512. */
  tokens(text: string, kind: EncodedKind): Uint32Array;
}

/** A text on its way through the layers of the network. It takes up to 800 KB until it is closed. */
export interface EncodingRun {
  /** Goes through one layer. @returns whether that was the last one */
  step(): boolean;
  /** Returns the vector, after the last step. */
  result(): Float32Array;
  close(): void;
}

/** Exports of the add-on. */
interface Addon {
  readonly Encoder: new (weights: readonly FilePart[], kernels: string | undefined) => NativeEncoder;
  kernelNames(): string[];
}

interface NativeEncoder {
  readonly kernels: string;
  encode(text: string, isQuery: boolean): Float32Array | undefined;
  begin(text: string, isQuery: boolean): EncodingRun | undefined;
  pieces(text: string): WordPieces;
  tokens(text: string, isQuery: boolean): Uint32Array;
}

const DIMENSION = 384;

/** Options of tests: other weights, or loops that are not the fastest. */
export interface EncoderOptions {
  readonly weights?: readonly FilePart[];
  /** One of `encoderKernels()`. */
  readonly kernels?: string | undefined;
}

/**
 * Opens the encoder for the calling thread.
 *
 * @throws {Error} naming the file of weights that is missing or damaged
 */
export function openEncoder({ weights = findWeights(), kernels }: EncoderOptions = {}): Encoder {
  const native = new (addon().Encoder)(weights, kernels);
  return {
    dimension: DIMENSION,
    version: WEIGHTS_VERSION,
    kernels: native.kernels,
    encode: (text, kind) => native.encode(preparedText(text), kind === "query"),
    begin: (text, kind) => native.begin(preparedText(text), kind === "query"),
    pieces: (text) => native.pieces(preparedText(text)),
    tokens: (text, kind) => native.tokens(preparedText(text), kind === "query"),
  };
}

/** Returns the names of the loops that this processor supports, the fastest first. */
export function encoderKernels(): string[] {
  return addon().kernelNames();
}

function addon(): Addon {
  return loadEncoderAddon() as Addon;
}

/** Characters that nobody sees: NUL, soft hyphens, zero-width spaces, marks of direction. The tokenizer would cut a word there. */
const INVISIBLE = /[\0\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]/g;
/** In the scripts from Arabic to Burmese joiners are part of how a word is written, and the network has learned words with them. */
const JOINERS = /(?<![\u0600-\u109f\u1780-\u17ff])[\u200c\u200d]/g;

/**
 * Returns what the network reads of a text: composed (NFC), without characters that nobody sees and spaces around it. The places of
 * pieces are places in it. Preparing it again changes nothing.
 */
export function preparedText(text: string): string {
  return text.replace(INVISIBLE, "").replace(JOINERS, "").normalize("NFC").trim();
}
