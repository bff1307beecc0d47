/**
 * Token of a dry run of forgetting (pure).
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";

/** The memories that a dry run counted. */
export interface Counted {
  readonly newest: BareId;
  readonly count: number;
  /** Digest of their ids and what they said. */
  readonly digest: string;
}

const TOKEN = /^([0-9A-Za-z]{12})\.([1-9]\d{0,3})\.([\w-]{22})$/;

export function forgetToken({ newest, count, digest }: Counted): string {
  return `${newest}.${count}.${digest}`;
}

/** @returns undefined where no dry run has given it */
export function parseForgetToken(token: string): Counted | undefined {
  const [, newest, count, digest] = TOKEN.exec(token) ?? [];
  if (newest === undefined || digest === undefined || Number(count) > LIMITS.forgottenMax) return undefined;
  return { newest, count: Number(count), digest };
}
