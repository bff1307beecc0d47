/**
 * Lengths of text count Unicode code points, as people count characters outside the basic plane: once.
 *
 * @module
 */
export function codePointLength(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    if (isPairAt(text, i)) {
      length--;
      i++;
    }
  }
  return length;
}

/** No unit of UTF-16, such as `length` counts, takes more bytes of UTF-8. */
export const UTF8_BYTES_PER_UNIT_MAX = 3;

/** The beginning of a text, never half of a surrogate pair. */
export function firstCodePoints(text: string, count: number): string {
  if (text.length <= count) return text;
  let end = 0;
  for (let left = count; left > 0 && end < text.length; left--) end += isPairAt(text, end) ? 2 : 1;
  return text.slice(0, end);
}

/** A slice of up to this many characters has memory of its own (seen with Bun 1.4: 60 of 15,000 characters kept all of them). */
const OWN_MEMORY_LENGTH_MAX = 12;

/** Copies a text into memory of its own: a long slice keeps alive the text that it was cut from. */
export function copyOf(text: string): string {
  return text.length <= OWN_MEMORY_LENGTH_MAX ? text : (JSON.parse(JSON.stringify(text)) as string);
}

/** One character may stand for 18 (U+FDFA). A long text that grows beyond this is compared as it is. */
const COMPATIBLE_GROWTH_MAX = 3;
const GROWTH_LOOKED_AT_FROM = 1_000;

/** A text without what does not tell two apart for a reader: forms of a character, case, and how much space is where. */
export function normalized(text: string): string {
  const compatible = text.normalize("NFKC");
  const grows = text.length >= GROWTH_LOOKED_AT_FROM && compatible.length > COMPATIBLE_GROWTH_MAX * text.length;
  const form = grows ? "NFC" : "NFKC";
  return (grows ? text : compatible).toLowerCase().normalize(form).replaceAll(/\s+/gu, " ").trim();
}

function isPairAt(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
}

/** `api_key` is `ApiKey`. */
export function pascalCase(snakeCase: string): string {
  return snakeCase.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** `state_before` as `stateBefore`, in types too. */
export type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<CamelCase<Rest>>}` : Name;

export function camelCase<const Name extends string>(snakeCase: Name): CamelCase<Name> {
  return snakeCase.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) as CamelCase<Name>;
}

/** `stateBefore` as `state_before`. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Reason why a text can be no user's id, in words that follow the name of a field: no path names these, so that none could be erased. */
export function userIdProblem(text: string): string | undefined {
  return text === "." || text === ".." ? `must not be "." or "..", which clients take out of a URL.` : undefined;
}
