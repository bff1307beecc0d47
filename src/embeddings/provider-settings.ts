/**
 * The settings of an embedding provider: their defaults, what is valid, and which of them make another provider. Pure.
 *
 * @module
 */
import { BUILTIN_VERSION } from "./builtin/version.ts";
import { TERMS_VERSION } from "./words/terms.ts";

/** As in the API; what is left out has its default. */
export interface EmbeddingSettings {
  provider?: string;
  base_url?: string;
  model?: string;
  /** The only secret that the store has in clear: it has to be sent. Local servers need none. */
  api_key?: string;
  query_prefix?: string;
  document_prefix?: string;
  dimensions?: number;
  relevant_cosine?: number;
}

export const PROVIDER_DEFAULTS = {
  provider: "builtin",
  base_url: "https://api.openai.com/v1",
  model: "text-embedding-3-small",
  query_prefix: "",
  document_prefix: "",
} as const;

/**
 * Reason why a base URL cannot be used, or undefined.
 *
 * @example baseUrlProblem("http://localhost:11434/v1") === undefined
 */
export function baseUrlProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null) return "It is not a URL.";
  if (url.protocol !== "http:" && url.protocol !== "https:") return "It begins with neither http:// nor https://.";
  if (url.username !== "" || url.password !== "") return "It holds a user name or password; give the key on its own.";
  return url.hash === "" ? undefined : "It holds a fragment (#…).";
}

/** Reason why an API key cannot be used, or undefined. Never says what the key is. */
export function apiKeyProblem(apiKey: string): string | undefined {
  return /^[\x21-\x7e]{1,1024}$/.test(apiKey) ? undefined : "An API key is 1 to 1,024 printable ASCII characters without spaces.";
}

/** Names what decides the meaning of a vector. Another key for the same server is no other provider. */
export function identityOf(settings: EmbeddingSettings): string {
  const { provider, base_url, model, query_prefix, document_prefix, dimensions } = { ...PROVIDER_DEFAULTS, ...settings };
  if (provider === "builtin") return BUILTIN_VERSION;
  if (provider === "words") return `words-1-${TERMS_VERSION}`;
  // Without the query string: it can hold a key, and has no part in what a vector means.
  const { origin, pathname } = new URL(base_url);
  const server = `${origin}${withoutSlashes(pathname)}`;
  // Absent where nothing is said of it, as in stores of before there was such a setting.
  const asked = dimensions === undefined ? [] : [dimensions];
  return JSON.stringify(["openai", TERMS_VERSION, server, model, query_prefix, document_prefix, ...asked]);
}

/** A path without slashes at its end. */
export function withoutSlashes(path: string): string {
  return path.replace(/(?<!\/)\/+$/, "");
}
