/**
 * The documents that are packed with an executable.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BASE, withAddresses } from "../../src/docs/contents.ts";

const root = join(import.meta.dir, "../..");
const SERVER = "http://127.0.0.1:8700";

/** Returns a document as it is packed: pages to which it links are not in the package, but a server of the executable has them. */
export function documentBytes(path: string): Buffer {
  const bytes = readFileSync(join(root, path));
  if (!path.endsWith(".md")) return bytes;
  return Buffer.from(withAddresses(bytes.toString(), path, "").replaceAll(`](${BASE}`, `](${SERVER}${BASE}`));
}
