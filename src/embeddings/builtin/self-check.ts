/**
 * Check that the encoder computes on this machine what it computes on every other: by all of its loops that the processor supports, the
 * same vectors to the last bit.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { encoderKernels, type EncodedKind, openEncoder } from "./encoder.ts";

const TEXTS: readonly (readonly [text: string, kind: EncodedKind])[] = [
  ["Does the user have any pets?", "query"],
  ["lives in Lisbon with two dogs 🐶, and works nights", "passage"],
  ["她住在里斯本，养了两只狗。", "passage"],
];
/** Checksum of the bytes of their vectors. */
const SHA256 = "ac5490387a7a2b96678d6b105a8335591d746e8802767a1e9050a9eac071b9b6";

/**
 * Computes a few vectors by each kind of loop.
 *
 * @returns the names of the loops, the fastest first
 * @throws {Error} where weights are missing or damaged, or a loop computes something else
 */
export function checkEncoder(): string[] {
  const names = encoderKernels();
  const wrong = names.filter((kernels) => hashBy(kernels) !== SHA256);
  if (wrong.length > 0) throw new Error(`The encoder computes other vectors than it should by ${wrong.join(", ")}.`);
  return names;
}

function hashBy(kernels: string): string {
  const encoder = openEncoder({ kernels });
  const hash = createHash("sha256");
  for (const [text, kind] of TEXTS) hash.update(encoder.encode(text, kind) ?? "");
  return hash.digest("hex");
}
