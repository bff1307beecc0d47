/**
 * Which names a listener answers to.
 *
 * A page on the web can have its own name resolve to 127.0.0.1 and so reach a server that listens on loopback only (DNS
 * rebinding). Its requests carry that name as their Host; such a listener therefore answers to loopback names alone, and
 * to those that were configured. Any other listener is reached by names it cannot know: it checks the Host once some are
 * configured. Loopback names are always among them, for who asks from the same machine, as a container's health check does.
 *
 * @module
 */
import { isLoopback } from "../lib/addresses.ts";
import { ApiError } from "../lib/errors.ts";

const LOOPBACK_NAMES = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** @returns a test of the Host header; null is what HTTP/1.0 sends */
export function hostCheck(listening: string, configured: readonly string[]): (host: string | null) => boolean {
  if (!isLoopback(listening) && configured.length === 0) return () => true;
  const names = new Set([...LOOPBACK_NAMES, ...[listening, `[${listening}]`, ...configured].map((name) => name.toLowerCase())]);
  const isName = (host: string) => names.has(host.toLowerCase().replace(/:\d+$/, "")) || names.has(host.toLowerCase());
  // Nearly every request says what the one before it said.
  let last: string | undefined;
  return (host) => {
    if (host === null || host === last) return true;
    if (!isName(host)) return false;
    last = host;
    return true;
  };
}

export function foreignHost(): ApiError {
  return new ApiError(
    "permission_denied",
    "This server does not answer to the name in the Host header; its operator can allow it (CAIRN_ALLOWED_HOSTS).",
    {
      param: "Host",
    },
  );
}
