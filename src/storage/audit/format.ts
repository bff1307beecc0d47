/**
 * Texts and bytes that are hashed and signed: `docs/reference/audit-format.md` says the same to other programs.
 *
 * @module
 */
import type { AuditChainRow, AuditRemovalsRow, AuditSegmentRow } from "../tables/audit.ts";
import { numberKey } from "../keys.ts";

/** Traces of a segment, unless it is the last of its chain. */
export const SEGMENT_TRACES = 256;
export const HASH_BYTES = 32;
export const HASH_TEXT_LENGTH = 43;
export const SALT_BYTES = 16;

export const textOfBytes = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64url");
export const bytesOfText = (text: string): Buffer => Buffer.from(text, "base64url");

/** Place of a trace in a chain. */
export interface Link {
  readonly chain: string;
  /** Number in the chain, from 0. */
  readonly place: number;
  readonly salt: string;
  /** Digest of the chain up to it. */
  readonly digest: string;
}

export const linkText = ({ chain, place, salt, digest }: Link): string => `${chain}.${place}.${salt}.${digest}`;

/** The link of a row, of the form that its schema says. */
export function parseLink(text: string): Link {
  const [chain = "", place = "", salt = "", digest = ""] = text.split(".");
  return { chain, place: Number(place), salt, digest };
}

const START = '{"link":"';
/** JSON of a row, or the text that it is stored as, with its link. */
export const withLink = (json: string, link: string): string => `${START}${link}",${json.slice(1)}`;
/** The link of such a text, which is its first member, and the text without it; undefined for one without. */
export function splitLink(json: string): { link: string; rest: string } | undefined {
  const end = json.indexOf('",', START.length);
  return json.startsWith(START) && end !== -1 ? { link: json.slice(START.length, end), rest: `{${json.slice(end + 2)}` } : undefined;
}

function sha256(data: string | Uint8Array, into: Uint8Array = new Uint8Array(HASH_BYTES)): Uint8Array {
  Bun.SHA256.hash(data, into);
  return into;
}

/** The hash of a trace. @param json - of its row in an export, without its link */
export function leafOf(salt: string, key: string, json: string, into?: Uint8Array): Uint8Array {
  return sha256(`${salt}\n${key}\n${json}`, into);
}

/** The digest of a chain with one more leaf. @param both - the digest before and the leaf */
export function nextDigest(both: Uint8Array, into?: Uint8Array): Uint8Array {
  return sha256(both, into);
}

/** The digest with which a chain begins. */
export function startDigest(chain: string, { publicKey, startedAt, after, previous }: AuditChainRow): Uint8Array {
  const heads = previous.map((head) => `\n${head.chain} ${head.count} ${head.digest}`).join("");
  return sha256(`cairn audit chain 1\n${chain}\n${publicKey}\n${startedAt}\n${after}${heads}`);
}

export const segmentKey = (chain: string, segment: number): string => chain + numberKey(segment);

/** The text that is signed at the end of a segment. */
export const headText = (chain: string, { count, digest, names, at }: SignedHead): string =>
  `cairn audit head 1\n${chain}\n${count}\n${digest}\n${names}\n${at}`;

export type SignedHead = Pick<AuditSegmentRow, "count" | "digest" | "names" | "at">;

/** The digest of the keys of a segment's traces, side by side. */
export const namesDigest = (traces: string): string => textOfBytes(sha256(traces));

/** The text that is signed of what was removed of a segment. */
export const removalsText = (key: string, { removed, all }: Pick<AuditRemovalsRow, "removed" | "all">): string =>
  `cairn audit removals 1\n${key}\n${JSON.stringify(all ?? removed)}`;

/** The salt of a trace whose content is erased: it leads back to neither the salt before nor the content. */
export const nextSalt = (salt: string): string => textOfBytes(sha256(`erased\n${salt}`).subarray(0, SALT_BYTES));
