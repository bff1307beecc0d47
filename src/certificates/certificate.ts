/**
 * A certificate with its key, and the times that follow from how long it is valid. Pure.
 *
 * ```
 * from ──────────── two thirds ────────────► renewal ─────► overdue ─────► until
 *                                            a third left   20 days, or 2/9 of a shorter one
 * ```
 * @module
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { DAY_MS } from "../lib/duration.ts";

const OVERDUE_MS = 20 * DAY_MS;
/** A share of 90 days that is 20 of them. */
const OVERDUE_SHARE = 2 / 9;
const RENEWAL_SHARE = 1 / 3;

export interface Certificate {
  /** PEM, its issuers after it. */
  readonly chain: string;
  /** PEM. */
  readonly key: string;
  readonly from: number;
  readonly until: number;
}

/** @throws {Error} for texts that are no certificate of these names with its key */
export function certificateOf(chain: string, key: string, names: readonly string[]): Certificate {
  const first = new X509Certificate(chain);
  const missing = names.find((name) => first.checkHost(name) === undefined);
  if (missing !== undefined) throw new Error(`The certificate does not name ${missing}.`);
  if (!first.checkPrivateKey(createPrivateKey(key))) throw new Error("The key is not that of the certificate.");
  return { chain, key, from: Date.parse(first.validFrom), until: Date.parse(first.validTo) };
}

export function renewalOf({ from, until }: Certificate): number {
  return until - (until - from) * RENEWAL_SHARE;
}

/** Checks whether a certificate should have been renewed long before. */
export function isOverdue({ from, until }: Certificate, now: number): boolean {
  return until - now < Math.min(OVERDUE_MS, (until - from) * OVERDUE_SHARE);
}
