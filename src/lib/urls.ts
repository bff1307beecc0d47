/**
 * Shortens URLs to what may be shown of them without their secrets, and tells those of this machine.
 *
 * @module
 */

/** `https://hooks.example/…`: the path of a webhook's URL is often its password. */
export function originOnly(url: string): string {
  const { origin, pathname, search } = new URL(url);
  return pathname === "/" && search === "" ? origin : `${origin}/…`;
}

/** Checks whether `originOnly` or `withoutQuery` left something out. */
export function isShortened(url: string): boolean {
  return url.endsWith("/…") || url.endsWith("?…");
}

/** `https://api.example/v1?…`: the query can hold a key. */
export function withoutQuery(url: string): string {
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname}${search === "" ? "" : "?…"}`;
}

/** Problem of the address of this server, in words that follow its name: it is an origin, over TLS unless it is of this machine. */
export function publicUrlProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || url.origin !== text.toLowerCase().replace(/\/$/, ""))
    return "It must be an origin, such as https://cairn.example.com.";
  if (url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK_NAMES.has(url.hostname))) return undefined;
  return "It must begin with https://, or be http:// at a loopback address.";
}

/** Problem of the address of a certificate authority's directory, in words that follow its name. */
export function directoryUrlProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK_NAMES.has(url.hostname))) return undefined;
  return "It must be an address that begins with https://.";
}

/** Names of this machine, as a URL or the Host header has them. */
export const LOOPBACK_NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);
