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

/**
 * A part of a path as a text, or undefined for one that is none. UTF-8 has no half of a surrogate pair, with which JSON can write a name:
 * these are read as generalized UTF-8 has them, so that nobody's name is out of reach.
 */
export function decodedPart(part: string): string | undefined {
  const halvesApart = part.split(/(%ED%[AB][\dA-F]%[89AB][\dA-F])/i);
  try {
    return halvesApart.map((text, i) => (i % 2 === 0 ? decodeURIComponent(text) : halfOf(text))).join("");
  } catch {
    return undefined;
  }
}

/** The half of a surrogate pair that `%ED%A0%80` stands for. */
function halfOf(escaped: string): string {
  const [, second = 0, third = 0] = escaped
    .slice(1)
    .split("%")
    .map((byte) => Number.parseInt(byte, 16));
  return String.fromCharCode(0xd000 | ((second & 0x3f) << 6) | (third & 0x3f));
}

/** The part of a path for a text. Of a text by code points, halves of pairs are alone. */
export function encodedPart(text: string): string {
  return Array.from(text, (point) => (point.isWellFormed() ? encodeURIComponent(point) : escapedHalf(point.charCodeAt(0)))).join("");
}

function escapedHalf(half: number): string {
  return `%ED%${(0x80 | ((half >> 6) & 0x3f)).toString(16)}%${(0x80 | (half & 0x3f)).toString(16)}`;
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
