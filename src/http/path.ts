/**
 * The path of a request, with any `Host` or without one.
 *
 * @module
 */

/** Returns path and query without parsing the URL: for HTTP/1.0 without a Host it is only these. */
export function pathOf(url: string): string {
  if (url.startsWith("/")) return url;
  const start = url.indexOf("/", url.indexOf("//") + 2);
  return start === -1 ? "/" : url.slice(start);
}

export function pathWithoutQuery(url: string): string {
  const [path = ""] = pathOf(url).split("?");
  return path;
}

/** Elysia assumes that scheme and host have at least this many characters (seen with Elysia 1.4). */
const PATH_FROM = 11;

/** Returns the request, or a copy of it with a host that is long enough for Elysia to find its path. */
export function withLongHost(request: Request): Request {
  const { url } = request;
  // 8 characters on is the host of `http://` and of `https://`.
  if (!url.startsWith("/") && url.indexOf("/", 8) >= PATH_FROM) return request;
  const copy = new Request(`http://localhost${pathOf(url)}`, request);
  originals.set(copy, request);
  return copy;
}

const originals = new WeakMap<Request, Request>();

/** Returns the request that the server has received, for one that `withLongHost` returned: it knows no other. */
export function originalRequest(request: Request): Request {
  return originals.get(request) ?? request;
}
