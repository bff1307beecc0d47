/**
 * The key that signs chains of traces (Ed25519), in the data directory.
 *
 * @module
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify, type KeyObject } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { memoize } from "../../lib/memoize.ts";
import { systemReason } from "../../lib/system-errors.ts";
import { StoreError } from "../store-error.ts";

export const AUDIT_KEY_FILE = "audit.key";

export interface AuditKey {
  /** 32 bytes in base64url. */
  readonly publicKey: string;
  /** The signature of a text, 64 bytes in base64url. */
  sign(text: string): string;
}

/** The public key of a data directory; undefined where it has none yet. @throws {StoreError} for a file that is none */
export function publicKeyIn(directory: string): string | undefined {
  return existsSync(join(directory, AUDIT_KEY_FILE)) ? publicOf(readKey(directory)) : undefined;
}

/** Reads the key of a data directory, or makes one. @throws {StoreError} where neither can be done */
export function openAuditKey(directory: string): AuditKey {
  const path = join(directory, AUDIT_KEY_FILE);
  if (!existsSync(path)) {
    const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
    try {
      writeFileSync(path, pem, { mode: 0o600, flag: "wx", flush: true });
      const names = openSync(directory, "r");
      fsyncSync(names);
      closeSync(names);
    } catch (error) {
      // Another process may have made it meanwhile.
      if (!existsSync(path)) throw new StoreError(`The key ${path} cannot be made: ${systemReason(error)}.`, { cause: error });
    }
  }
  const key = readKey(directory);
  return { publicKey: publicOf(key), sign: (text) => sign(null, Buffer.from(text), key).toString("base64url") };
}

function readKey(directory: string): KeyObject {
  const path = join(directory, AUDIT_KEY_FILE);
  try {
    const key = createPrivateKey(readFileSync(path));
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch (error) {
    throw new StoreError(`The file ${path} is not a key of Ed25519 that can be read. Without it, traces cannot be signed.`, {
      cause: error,
    });
  }
  throw new StoreError(`The file ${path} is not a key of Ed25519. Without one, traces cannot be signed.`);
}

const publicOf = (key: KeyObject): string => createPublicKey(key).export({ format: "jwk" })["x"] as string;

const publicKeyObject = memoize((x: string) => createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" }));

/** Checks a signature of a text, which is the one text of its bytes. */
export function isSigned(publicKey: string, text: string, signature: string): boolean {
  const bytes = Buffer.from(signature, "base64url");
  try {
    return bytes.toString("base64url") === signature && verify(null, Buffer.from(text), publicKeyObject(publicKey), bytes);
  } catch {
    // Not every text of that length is a public key.
    return false;
  }
}
