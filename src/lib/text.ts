/**
 * Lengths of text count Unicode code points, as people count characters outside the basic plane: once.
 *
 * @module
 */
export function codePointLength(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      length--;
      i++;
    }
  }
  return length;
}

/** The beginning of a text, never half of a surrogate pair. */
export function firstCodePoints(text: string, count: number): string {
  return text.length <= count
    ? text
    : Array.from(text.slice(0, count * 2))
        .slice(0, count)
        .join("");
}

/** `api_key` is `ApiKey`. */
export function pascalCase(snakeCase: string): string {
  return snakeCase.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
