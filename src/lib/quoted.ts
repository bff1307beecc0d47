/**
 * Quotes a text as a JSON string that stays one line, wherever it is read: what is quoted cannot begin a line, nor end one.
 *
 * `JSON.stringify` escapes line feeds and other controls below U+0020. Further characters end a line for some readers, change the
 * direction of what follows, or begin a mark that a model's template gives a meaning (`<|im_end|>`): these are escaped, too.
 *
 * @module
 */
import { toJson } from "./json.ts";

const ESCAPED = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]|<(?=\|)/g;

export function quoted(text: string): string {
  return onOneLine(toJson(text));
}

/** The same for JSON that is there: all that is escaped can stand in its strings alone. */
export function onOneLine(json: string): string {
  return json.replace(ESCAPED, (character) => String.raw`\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
