/**
 * Shortens URLs to what may be shown of them without their secrets.
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
