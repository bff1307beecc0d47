/**
 * Files with the weights of the built-in embedding. `scripts/encoder/convert.py` has made them, and a build checks that they
 * are these.
 *
 * @module
 */

/** A file in `weights/`. */
export interface WeightsFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** The network, then the rows of tokens in their order. */
export const WEIGHTS_FILES: readonly WeightsFile[] = [
  { name: "network.bin", bytes: 18_744_920, sha256: "c5616b0bf276461d35a4592ce588c8cbeb38e3d37b0d2c71d0fec890735991b8" },
  { name: "tokens-1.bin", bytes: 27_000_216, sha256: "3d607a9a64a3b125f112247f705e077491a0ea579ccb20ccca38808e04aca577" },
  { name: "tokens-2.bin", bytes: 27_000_000, sha256: "012dda9dce3f4a2f9334137c296ff40b772b6b1d2d59c5ad61e303bd61074d1d" },
];

const HASH_CHARACTERS = 8;

/** Name and hash: vectors made with other weights cannot be compared with those made with these. */
export const WEIGHTS_VERSION = `multilingual-e5-small-q4-${WEIGHTS_FILES.map(({ sha256 }) => sha256.slice(0, HASH_CHARACTERS)).join("")}`;
