/**
 * Requests for certificates (PKCS #10), in DER: an empty subject, the names as alternative ones, signed with the key that the
 * certificate is for. Neither Bun nor Node writes them.
 *
 * @see https://www.rfc-editor.org/rfc/rfc2986
 * @module
 */
import { createPublicKey, sign, type KeyObject } from "node:crypto";

const INTEGER_0 = Buffer.from([0x02, 0x01, 0x00]);
/** 1.2.840.113549.1.9.14 */
const EXTENSION_REQUEST = Buffer.from("06092a864886f70d01090e", "hex");
/** 2.5.29.17 */
const SUBJECT_ALT_NAME = Buffer.from("0603551d11", "hex");
/** 1.2.840.10045.4.3.2 */
const ECDSA_WITH_SHA256 = Buffer.from("06082a8648ce3d040302", "hex");

const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const SEQUENCE = 0x30;
const SET = 0x31;
const DNS_NAME = 0x82;
const ATTRIBUTES = 0xa0;

/** @param key - a private key on P-256 */
export function certificateRequest(names: readonly string[], key: KeyObject): Buffer {
  const alternatives = element(SEQUENCE, ...names.map((name) => element(DNS_NAME, Buffer.from(name, "ascii"))));
  const extensions = element(SEQUENCE, element(SEQUENCE, SUBJECT_ALT_NAME, element(OCTET_STRING, alternatives)));
  const attributes = element(ATTRIBUTES, element(SEQUENCE, EXTENSION_REQUEST, element(SET, extensions)));
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
  const info = element(SEQUENCE, INTEGER_0, element(SEQUENCE), publicKey, attributes);
  const signature = element(BIT_STRING, Buffer.from([0]), sign("sha256", info, key));
  return element(SEQUENCE, info, element(SEQUENCE, ECDSA_WITH_SHA256), signature);
}

function element(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const bytes = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...bytes]), content]);
}
