/**
 * Places that an application may be sent back to: https, or this machine, where a program listens on a port that it took a moment ago.
 * Pure.
 *
 * @module
 */
import { LOOPBACK_NAMES } from "../lib/urls.ts";

export const URI_LENGTH_MAX = 2048;

/** Problem of a redirect URI, in words that follow its name. */
export function redirectProblem(text: string): string | undefined {
  const url = text.length <= URI_LENGTH_MAX ? URL.parse(text) : null;
  if (url === null) return `must be a complete URL of at most ${URI_LENGTH_MAX} characters.`;
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopbackUrl(url))) return "must be https, or http to this machine.";
  if (url.username !== "" || url.password !== "") return "must not contain a user name or a password.";
  return text.includes("#") ? "must not have a fragment." : undefined;
}

export function isLoopbackUrl({ hostname }: URL): boolean {
  return LOOPBACK_NAMES.has(hostname);
}

/** Checks whether a redirect URI is one of those registered: the same text, but for the port of one on this machine (RFC 8252, 7.3). */
export function isRegistered(redirectUri: string, registered: readonly string[]): boolean {
  return redirectProblem(redirectUri) === undefined && registered.some((one) => one === redirectUri || isSameBesidesPort(one, redirectUri));
}

function isSameBesidesPort(one: string, other: string): boolean {
  const [a, b] = [URL.parse(one), URL.parse(other)];
  if (a === null || b === null || a.protocol !== "http:" || !isLoopbackUrl(a) || redirectProblem(one) !== undefined) return false;
  a.port = "";
  b.port = "";
  return a.href === b.href;
}

/** The redirect URI with what the application gets to know. */
export function redirectWith(redirectUri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const url = new URL(redirectUri);
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
}
