/**
 * Redirects plain HTTP to HTTPS.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";

/**
 * Returns where to redirect a request that reached a proxy over plain HTTP; undefined for one over HTTPS, or through no proxy.
 *
 * @throws {ApiError} `invalid_request` when its Host is no host to redirect to
 */
export function httpsLocation(headers: Headers, path: string): string | undefined {
  const [protocol] = (headers.get("x-forwarded-proto") ?? "").split(",");
  if (protocol?.trim().toLowerCase() !== "http") return undefined;
  const host = headers.get("x-forwarded-host") ?? headers.get("host");
  if (host === null || !HOST.test(host)) throw notOverHttps();
  return `https://${host}${path}`;
}

/** A name or address with an optional port, and nothing that could change the rest of the location. */
const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:\d{1,5})?$/i;

/**
 * Returns where to redirect a request to the listener for plain HTTP: the same host, on the port for HTTPS.
 *
 * @throws {ApiError} `invalid_request` when its Host is no host to redirect to
 */
export function redirectTo(host: string | null, httpsPort: number, path: string): string {
  if (host === null || !HOST.test(host)) throw notOverHttps();
  const name = host.replace(/:\d+$/, "");
  return `https://${name}${httpsPort === 443 ? "" : `:${httpsPort}`}${path}`;
}

function notOverHttps(): ApiError {
  return new ApiError("invalid_request", "This server answers over HTTPS only.", { param: "Host" });
}
