/**
 * Failures between Cairn and a server that embeds, told apart by what is to be done about them.
 *
 * @module
 */
/** Every kind, with what callers of the API may read of it: neither where the provider is nor what it says. */
export const PUBLIC_REASON = {
  /** No connection, or a server that answers 5xx: it may pass. */
  unreachable: "cannot be reached, or fails",
  timeout: "did not answer in time",
  /** It answers 429, or too many texts wait for it. */
  rate_limited: "is asked for more than it takes",
  unauthorized: "does not take its API key",
  forbidden: "is at an address that is never asked",
  /** An unknown model, a text it does not take, options that cannot be. */
  rejected: "refuses what it is asked for",
  bad_answer: "gave an answer that cannot be used",
} as const;

export type ProviderErrorKind = keyof typeof PUBLIC_REASON;

export interface ProviderErrorFacts {
  readonly status?: number;
  /** Time that the server asked to wait. */
  readonly retryAfterMs?: number | undefined;
  /** The same request may succeed a little later. */
  readonly isTransient?: boolean;
  /** The cause may lie in the texts that were sent, so that others would have been embedded. */
  readonly inputRejected?: boolean;
  /** The server complains of the length of a text. */
  readonly isTooLong?: boolean;
}

/** The message is for the operator, in the log and the settings: it never holds the API key, nor a text that was to be embedded. */
export class ProviderError extends Error {
  override name = "ProviderError";
  readonly kind: ProviderErrorKind;
  readonly facts: ProviderErrorFacts;

  constructor(kind: ProviderErrorKind, message: string, facts: ProviderErrorFacts = {}) {
    super(message);
    this.kind = kind;
    this.facts = facts;
  }
}

export function badAnswer(what: string, facts: ProviderErrorFacts = {}): ProviderError {
  return new ProviderError("bad_answer", `The embedding provider's answer ${what}`, facts);
}

export function tooLate(ms: number): ProviderError {
  const seconds = Math.max(1, Math.round(ms / 1000));
  return new ProviderError("timeout", `The embedding provider did not answer within ${seconds} s`, { isTransient: true });
}

/** Every call of a closed client fails with it. */
export function closed(): ProviderError {
  return new ProviderError("unreachable", "The embedding provider is no longer used");
}
