/**
 * Paths of the encoder's add-on and its weights, when Cairn runs from source: what `scripts/build-native.ts` has compiled, and the files
 * in `weights/`. In the executable `scripts/native-plugin.ts` puts a module in the place of this one that loads the add-on and finds the
 * weights inside of it.
 *
 * @module
 */
import { join } from "node:path";
import { WEIGHTS_FILES } from "./weights.ts";

/** A file of weights, or the part of the executable that has its bytes. */
export interface FilePart {
  readonly path: string;
  readonly offset: number;
  readonly bytes: number;
}

/** Returns the exports of the add-on. */
export function loadEncoderAddon(): unknown {
  const loaded: { exports: unknown } = { exports: {} };
  process.dlopen(loaded, join(import.meta.dir, "../../../native/encoder.node"));
  return loaded.exports;
}

/** Returns where each file of weights is. */
export function findWeights(): FilePart[] {
  return WEIGHTS_FILES.map(({ name, bytes }) => ({ path: join(import.meta.dir, "weights", name), offset: 0, bytes }));
}
