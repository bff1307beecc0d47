/**
 * Tokens of an application. Pure.
 *
 * ```
 * crn_ac_ FAMILY SECRET   code, good once within a minute       FAMILY: 24 characters, the same in all tokens of a grant
 * crn_at_ FAMILY SECRET   access token, an hour                 SECRET: 43 characters
 * crn_rt_ FAMILY SECRET   refresh token, good once
 * ```
 * The store has their hashes alone. The family finds the grant, and tells a token that was once given out from one that was made up. The
 * next secrets follow from the presented token and a salt that the store keeps for a minute: a reply that was lost can be given again,
 * though nobody has kept it.
 *
 * @module
 */
import { createHash, createHmac } from "node:crypto";
import { hashOf } from "../keys/stored-key.ts";

export type TokenKind = "ac" | "at" | "rt";
const FORM = /^crn_(ac|at|rt)_([0-9A-Za-z]{24})([\w-]{43})$/;

export interface Token {
  readonly kind: TokenKind;
  readonly family: string;
  /** SHA-256 of the whole token. */
  readonly hash: string;
  readonly text: string;
}

export function parseToken(text: string): Token | undefined {
  const [, kind, family = ""] = FORM.exec(text) ?? [];
  return kind === undefined ? undefined : { kind: kind as TokenKind, family, hash: hashOf(text), text };
}

/** Hash under which the grant of a family is stored: none that a presented API key can have. */
export function grantKeyOf({ family }: Pick<Token, "family">): string {
  return hashOf(`oauth ${family}`);
}

/** The token of this kind that follows from another secret. */
export function tokenOf(kind: TokenKind, family: string, secret: string, salt: string): string {
  return `crn_${kind}_${family}${createHmac("sha256", secret).update(`${kind} ${salt}`).digest("base64url")}`;
}

const VERIFIER = /^[\w.~-]{43,128}$/;

/** Checks a verifier against the challenge of its request (PKCE, S256). */
export function isVerified(verifier: string, challenge: string): boolean {
  return VERIFIER.test(verifier) && hashOf(createHash("sha256").update(verifier).digest("base64url")) === hashOf(challenge);
}
