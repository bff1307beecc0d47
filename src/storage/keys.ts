/**
 * Construction of the store's keys.
 *
 * Every key is ASCII text of fixed-width parts laid end to end, so that byte order is the order wanted and a prefix is a
 * range. Texts that callers choose (agents, users, types, tags) can be longer than LMDB's 1,978 bytes: they are in keys
 * as a hash, 22 characters of SHA-256, so that nobody can make two of them meet.
 *
 * @module
 */
import { toBase62 } from "../lib/base62.ts";
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { memoize } from "../lib/memoize.ts";
import { normalized } from "../lib/text.ts";

/** Greater than every character of a key. */
export const MAX_KEY = "~";
/** Start of what follows a key: no character of a key is less than `!`. */
export function successor(key: string): string {
  return `${key}!`;
}
/** Matches any key. */
export const KEY = /^[!-}]+$/;

const HASH_BYTES = 16;
/** Number of characters that `hashKey` gives. */
export const HASH_KEY_LENGTH = 22;

/**
 * 22 characters for a text of any length. Hashed as JSON, which tells lone surrogates apart where UTF-8 would not; memoized: 0.1
 * µs instead of 1.4.
 */
export const hashKey = memoize(hashOf);

/** The same without its cache, for texts that hardly come again. */
export function hashOf(text: string): string {
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(text)).digest().subarray(0, HASH_BYTES).toString("base64url");
}

/** In the place of a user's hash for records that belong to no user; not in the alphabet of hashes. */
export const NOBODY = ".".repeat(HASH_KEY_LENGTH);

/** Prefix of the sessions of a name, those of any user or agent where it is undefined. */
export function externalIdKey(externalId: string, userId: string | undefined, agentId: string | undefined): string {
  return hashKey(JSON.stringify([externalId, userId ?? null, agentId ?? null]));
}

/** Prefix of the session that a user, or nobody (null), has by a name; with an agent that of this agent. */
export function ownNameKey(externalId: string, userId: string | null, agentId?: string): string {
  return hashKey(JSON.stringify(["own", externalId, userId, agentId ?? null]));
}

/** Owner of a memory, among whose memories it is looked for: its user's, or else its session's, or else its agent's. */
export interface OwnerOfMemory {
  readonly userId: string | null;
  readonly agentId: string | null;
  readonly sessionId?: string | undefined;
}

const keeperOf = ({ userId, sessionId, agentId }: OwnerOfMemory): (string | null)[] =>
  userId === null ? ["session", sessionId ?? null, sessionId === undefined ? agentId : null] : ["user", userId];

/** Prefix of the memories of an owner that are of one type and say the same, however they write it. */
export function contentKey(owner: OwnerOfMemory, type: string, content: string): string {
  return hashOf(JSON.stringify(["content", ...keeperOf(owner), type, normalized(content)]));
}

/** Prefix of the pinned memories of an owner. */
export function pinKey(owner: OwnerOfMemory): string {
  return hashKey(JSON.stringify(["pinned", ...keeperOf(owner)]));
}

/** Prefix of the memories of a user, or of nobody (null) with one agent, by when they happened. */
export function userTimeKey(userId: string | null, agentId: string | null): string {
  return hashKey(JSON.stringify(["time", userId, userId === null ? agentId : null]));
}

/** Bytes of a name that its entries begin with, in hex: those of longer ones that begin alike are in no order. */
const NAME_BYTES_MAX = 900;

/** Key that sorts like a name by its code points, and is a prefix like the name. */
export function nameKey(name: string): string {
  return Buffer.from(name).subarray(0, NAME_BYTES_MAX).toString("hex");
}

/** Width 7 holds 3.5 × 10^12: milliseconds until 2081, and more versions than any session will have. */
export const NUMBER_KEY_LENGTH = 7;

export function numberKey(number: number): string {
  return toBase62(number, NUMBER_KEY_LENGTH);
}

export function versionKey(session: BareId, version: number): string {
  return session + numberKey(version);
}

export function memoryVersionKey(memory: BareId, number: number): string {
  return memory + numberKey(number);
}

export function turnKey(session: BareId, turn: BareId): string {
  return session + turn;
}

/** Prefix of all documents of a user, those that are kept with an agent too; and those of nobody. */
export function documentsOfUser(userId: string | undefined): string {
  return hashKey(JSON.stringify(["documents", userId ?? null]));
}

/** Prefix of the turn of a session by an external id. */
export function turnNameKey(session: BareId, externalId: string): string {
  return session + hashKey(externalId);
}

/** The place of a time among those of turns; all before 1970 have the first one. */
const TIME_KEY_MAX = 62 ** NUMBER_KEY_LENGTH - 1;
export function timeKey(ms: number): string {
  return numberKey(Math.min(Math.max(0, ms), TIME_KEY_MAX));
}

/** Documents of one owner are together; no other owner's key leads to them. */
export function documentSpace(userId: string | undefined, agentId: string | undefined): string {
  return documentsOfUser(userId) + hashKey(JSON.stringify(["agent", agentId ?? null]));
}
export const DOCUMENT_SPACE_LENGTH = 2 * HASH_KEY_LENGTH;

/** In the order of code points, which UTF-8 keeps and its hex too. */
const hex = (text: string) => Buffer.from(text).toString("hex");
const ofHex = (text: string) => Buffer.from(text, "hex").toString();

/** Prefix of the documents of a namespace, and of all below it. `!` and `.` are less than any digit. */
export function namespaceKey(space: string, namespace: readonly string[]): string {
  return space + namespace.map((part) => `${hex(part)}!`).join("");
}

/** Prefix of the documents of a namespace alone: they come before those of the namespaces below it. */
export function ownDocuments(namespace: string): string {
  return `${namespace}.`;
}

export function documentKey(namespace: string, key: string): string {
  return ownDocuments(namespace) + hex(key);
}

/** Orders the documents of a namespace by the ids of their last changes. */
export function changeKey(document: string, change: BareId): string {
  const namespace = ownDocuments(namespaceOfDocument(document));
  return namespace + change + document.slice(namespace.length);
}

/** The document whose `changeKey` this is. */
export function documentOfChange(entry: string): string {
  const namespace = ownDocuments(namespaceOfDocument(entry));
  return namespace + entry.slice(namespace.length + BARE_ID_LENGTH);
}

/** The key of the namespace that a document's key is in. */
export function namespaceOfDocument(key: string): string {
  return key.slice(0, key.indexOf("."));
}

export function namespaceParts(namespace: string): string[] {
  return namespace.slice(DOCUMENT_SPACE_LENGTH).split("!").slice(0, -1).map(ofHex);
}

/** The caller's own key of a document. */
export function documentName(key: string): string {
  return ofHex(key.slice(key.indexOf(".") + 1));
}

/** The keys of all that its user has, of the space, of each namespace above and of a namespace itself, from the top down. */
export function namespacesAbove(namespace: string): string[] {
  const found = [namespace.slice(0, HASH_KEY_LENGTH)];
  if (namespace.length > HASH_KEY_LENGTH) found.push(namespace.slice(0, DOCUMENT_SPACE_LENGTH));
  for (let end = namespace.indexOf("!"); end !== -1; end = namespace.indexOf("!", end + 1)) found.push(namespace.slice(0, end + 1));
  return found;
}
