/**
 * Texts of any length as documents: what is larger than a request has its parts in a namespace of their own.
 *
 * @module
 */
import type { DocumentChange, Documents, JsonObject } from "../../client/index.ts";
import { getAll } from "./documents.ts";

/** Bytes of a piece of text as JSON, which fits into a request of 1 MiB. */
const PIECE_BYTES_MAX = 850_000;
const NUMBER_DIGITS = 6;

/** Value of a document that has a text. */
type TextValue = { text: string } | { parts: string; count: number };

/** Raised when a text was deleted while it was read. */
export class PartMissing extends Error {}

/** Returns the changes that put the parts of a text, which come first, and the value of its document. */
export function split(parts: string[], text: string): { puts: DocumentChange[]; value: TextValue } {
  const cut = pieces(text);
  if (cut.length === 1) return { puts: [], value: { text } };
  const name = crypto.randomUUID();
  const puts = cut.map((piece, i): DocumentChange => ({ op: "put", namespace: parts, key: keyOf(name, i), value: { text: piece } }));
  return { puts, value: { parts: name, count: cut.length } };
}

/** Returns the text of a document. @throws {PartMissing} */
export async function textOf(documents: Documents, parts: string[], value: JsonObject): Promise<string> {
  const stored = value as TextValue;
  if ("text" in stored) return stored.text;
  const places = Array.from({ length: stored.count }, (_, i) => ({ namespace: parts, key: keyOf(stored.parts, i) }));
  const found = await getAll(documents, places);
  return found
    .map((part) => {
      if (part === null) throw new PartMissing("A part of a text is gone: it was deleted while it was read.");
      return part.value["text"] as string;
    })
    .join("");
}

function keyOf(name: string, i: number): string {
  return `${name}/${String(i).padStart(NUMBER_DIGITS, "0")}`;
}

/** Returns a text cut where a request would be too large, and between no halves of a character. */
function pieces(text: string): string[] {
  const cut: string[] = [];
  for (let from = 0; from < text.length || cut.length === 0;) {
    let to = Math.min(text.length, from + PIECE_BYTES_MAX);
    while (bytesOf(text.slice(from, to)) > PIECE_BYTES_MAX) to = from + Math.ceil(((to - from) * 3) / 4);
    if (to < text.length && /[\ud800-\udbff]/.test(text.charAt(to - 1))) to--;
    cut.push(text.slice(from, to));
    from = to;
  }
  return cut;
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(JSON.stringify(text)).length;
}
