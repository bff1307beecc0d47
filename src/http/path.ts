/**
 * The path of a request, whatever its `Host` is, and whether there is one.
 *
 * @module
 */

/** Path and query, without parsing the address: HTTP/1.0 without a Host gives no more than these. */
export function pathOf(url: string): string {
  if (url.startsWith("/")) return url;
  const start = url.indexOf("/", url.indexOf("//") + 2);
  return start === -1 ? "/" : url.slice(start);
}

/** Elysia assumes that scheme and host have at least this many characters (seen with Elysia 1.4). */
const PATH_FROM = 11;

/** For a request that Elysia would look for the wrong path of: the same one, of a host that is long enough. */
export function routable(request: Request): Request {
  const { url } = request;
  // 8 characters on is the host of `http://` and of `https://`.
  if (!url.startsWith("/") && url.indexOf("/", 8) >= PATH_FROM) return request;
  const standIn = new Request(`http://localhost${pathOf(url)}`, request);
  arrived.set(standIn, request);
  return standIn;
}

const arrived = new WeakMap<Request, Request>();

/** The request that the server knows, of one that `routable` gave. */
export function asArrived(request: Request): Request {
  return arrived.get(request) ?? request;
}
