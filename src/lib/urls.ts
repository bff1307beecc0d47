/**
 * What of a URL may be shown where its secrets must not be.
 *
 * @module
 */

/** The origin alone: the path of a webhook's URL is often its password. `https://hooks.example/…` */
export function originOnly(url: string): string {
  const { origin, pathname, search } = new URL(url);
  return pathname === "/" && search === "" ? origin : `${origin}/…`;
}

/** Whether `originOnly` or `withoutQuery` has left something out. */
export function isShortened(url: string): boolean {
  return url.endsWith("/…") || url.endsWith("?…");
}

/** Origin and path, for URLs whose query can hold a key. `https://api.example/v1?…` */
export function withoutQuery(url: string): string {
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname}${search === "" ? "" : "?…"}`;
}
