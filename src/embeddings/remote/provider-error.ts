/**
 * What can go wrong between us and a server that embeds, told apart by what is to be done about it.
 *
 * @module
 */
export type ProviderErrorKind =
  /** No connection, or a server that answers 5xx: it may pass. */
  | "unreachable"
  /** It did not answer in time. */
  | "timeout"
  /** It answers 429, or more is waiting for it than we keep. */
  | "rate_limited"
  /** It does not take the API key. */
  | "unauthorized"
  /** It is at an address that is never called. */
  | "forbidden"
  /** It will not do what is asked: an unknown model, a text it refuses, options that cannot be. */
  | "rejected"
  /** Its answer cannot be used. */
  | "bad_answer";

export interface ProviderErrorFacts {
  readonly status?: number;
  /** How long the server asked us to wait. */
  readonly retryAfterMs?: number | undefined;
  /** The same request may succeed a little later. */
  readonly isTransient?: boolean;
  /** It may lie in the texts that were sent, so that others would have been embedded. */
  readonly mayBeTheTexts?: boolean;
  /** It is said to be about the length of a text. */
  readonly isAboutLength?: boolean;
  readonly cause?: unknown;
}

/** What everybody may know of it: neither where the provider is nor what it says. */
export const SHOWN_TO_ALL: Record<ProviderErrorKind, string> = {
  unreachable: "cannot be reached, or fails",
  timeout: "did not answer in time",
  rate_limited: "is asked for more than it takes",
  unauthorized: "does not take its API key",
  forbidden: "is at an address that is never asked",
  rejected: "refuses what it is asked for",
  bad_answer: "gave an answer that cannot be used",
};

/** The message is for the operator, in the log and the settings: it never holds the API key, nor a text that was to be embedded. */
export class ProviderError extends Error {
  override name = "ProviderError";
  readonly kind: ProviderErrorKind;
  readonly facts: ProviderErrorFacts;

  constructor(kind: ProviderErrorKind, message: string, facts: ProviderErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.kind = kind;
    this.facts = facts;
  }
}

export function tooLate(ms: number): ProviderError {
  const seconds = Math.max(1, Math.round(ms / 1000));
  return new ProviderError("timeout", `The embedding provider did not answer within ${seconds} s`, { isTransient: true });
}

/** For what is asked of a client that was closed. */
export function closed(): ProviderError {
  return new ProviderError("unreachable", "The embedding provider is no longer used");
}
