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

/** The same text in memory of its own: a slice of more than a few characters keeps alive all that it was cut from. */
export function copyOf(text: string): string {
  return text.split("").join("");
}

function isPairAt(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
}

/** `api_key` is `ApiKey`. */
export function pascalCase(snakeCase: string): string {
  return snakeCase.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
