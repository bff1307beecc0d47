/**
 * Applications that may ask for access by OAuth. Pure.
 *
 * @module
 */

/** Applications whose documents are built in. */
export const KNOWN = "known";

export type OAuthClients = "any" | readonly string[];

/** Syntax of `parseOAuthClients`, in words. */
export const OAUTH_CLIENTS_FORM = "any, or known and hosts such as notes.example.com, separated by commas";

const HOST = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/;

/** The applications that an operator names: any, or each `known` or the host of documents; undefined for any other text. */
export function parseOAuthClients(text: string): OAuthClients | undefined {
  const names = text.split(",").map((name) => name.trim().toLowerCase());
  if (names.includes("any")) return names.length === 1 ? "any" : undefined;
  return names.every((name) => HOST.test(name)) ? names : undefined;
}
