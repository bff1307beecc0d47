/**
 * Which texts go into one request.
 *
 * A server counts tokens and each model counts them otherwise, so they are estimated from the characters, on the high
 * side of what common tokenizers make of ordinary text. What is refused all the same is cut again by who sent it.
 *
 * @module
 */
export interface BatchLimits {
  readonly textsMax: number;
  readonly tokensMax: number;
}

/**
 * Tokens of one character, by how many bytes it has in UTF-8. English takes 0.25, code and random letters up to 0.7;
 * Cyrillic and Greek about 0.6; Chinese and Japanese 1 to 1.3, Thai and Hindi more with older tokenizers; an emoji 2 to 3.
 */
const TOKENS_BY_BYTES = [0, 0.4, 0.8, 1.5, 3] as const;

/** Sums of decimal fractions are a hair off. */
const HAIR = 1e-6;

export function estimateTokens(text: string): number {
  let tokens = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.codePointAt(i)!;
    tokens += tokensOf(code);
    if (code > 0xffff) i++;
  }
  return Math.max(0, Math.ceil(tokens - HAIR));
}

/** The beginning of a text that is estimated at no more than `tokensMax` tokens, cut between two code points. */
export function firstTokens(text: string, tokensMax: number): string {
  let tokens = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.codePointAt(i)!;
    tokens += tokensOf(code);
    if (tokens > tokensMax + HAIR) return text.slice(0, i);
    if (code > 0xffff) i++;
  }
  return text;
}

function tokensOf(code: number): number {
  return TOKENS_BY_BYTES[code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4];
}

/** Takes the first texts of a queue that fit into one request, at least one. */
export function takeBatch<Item extends { readonly tokens: number }>(queue: Item[], limits: BatchLimits): Item[] {
  let count = 0;
  let tokens = 0;
  while (count < queue.length && count < limits.textsMax) {
    tokens += queue[count]!.tokens;
    if (count > 0 && tokens > limits.tokensMax) break;
    count++;
  }
  return queue.splice(0, count);
}

export function halves<Item>(items: readonly Item[]): [first: Item[], second: Item[]] {
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}
