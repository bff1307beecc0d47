/**
 * Names that a listener answers to.
 *
 * A web page can have its own name resolve to 127.0.0.1 and so reach a server that listens on loopback only (DNS rebinding).
 * Its requests carry that name as their Host, so such a listener answers to loopback names and to configured ones alone. Any
 * other listener cannot know its names: it checks the Host once some are configured. Loopback names are always allowed, for
 * callers on the same machine, such as a container's health check.
 *
 * @module
 */
import { isLoopback } from "../lib/addresses.ts";
import { ApiError } from "../lib/errors.ts";
import { LOOPBACK_NAMES } from "../lib/urls.ts";

export interface OwnNames {
  /** Address that is listened on. */
  readonly host: string;
  readonly allowedHosts: readonly string[];
  /** Address at which clients reach the server. Its host is a name of the server, and says nothing of others that it may have. */
  readonly publicUrl?: string | undefined;
}

/** @returns a test of the Host header; null is what HTTP/1.0 sends */
export function hostCheck(own: OwnNames): (host: string | null) => boolean {
  if (!isLoopback(own.host) && own.allowedHosts.length === 0) return () => true;
  const isName = nameCheck(own);
  return (host) => host === null || isName(host);
}

/** @returns a test of a host, with a port or without: whether it is a name that the server is known to have */
export function nameCheck({ host: listening, allowedHosts, publicUrl }: OwnNames): (host: string) => boolean {
  const configured = publicUrl === undefined ? allowedHosts : [...allowedHosts, new URL(publicUrl).hostname];
  const names = new Set([...LOOPBACK_NAMES, ...[listening, `[${listening}]`, ...configured].map((name) => name.toLowerCase())]);
  return (host) => names.has(host.toLowerCase().replace(/:\d+$/, "")) || names.has(host.toLowerCase());
}

export function foreignHost(header = "Host"): ApiError {
  return new ApiError(
    "permission_denied",
    `This server does not answer to the name in the ${header} header; its operator can allow it (CAIRN_ALLOWED_HOSTS).`,
    { param: header },
  );
}
