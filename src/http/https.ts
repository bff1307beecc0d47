/**
 * Redirects plain HTTP to HTTPS.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { foreignHost } from "./host.ts";

/**
 * Returns where to redirect a request that reached a proxy over plain HTTP; undefined for one over HTTPS, or through no proxy.
 *
 * @param isOwnName - whether the server is configured to have a name: the client may have written X-Forwarded-Host itself
 * @throws {ApiError} `invalid_request` when its Host is no host to redirect to, `permission_denied` when X-Forwarded-Host is another server
 */
export function httpsLocation(headers: Headers, path: string, isOwnName: (host: string) => boolean): string | undefined {
  const [protocol] = (headers.get("x-forwarded-proto") ?? "").split(",");
  if (protocol?.trim().toLowerCase() !== "http") return undefined;
  const [own, forwarded] = [headers.get("host"), headers.get("x-forwarded-host")];
  const host = forwarded ?? own;
  if (host === null || !HOST.test(host)) throw notOverHttps();
  if (forwarded !== null && forwarded !== own && !isOwnName(forwarded)) throw foreignHost("X-Forwarded-Host");
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
