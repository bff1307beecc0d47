/**
 * The listener for plain HTTP next to one for HTTPS: it redirects there, and answers the challenges of certificate authorities.
 *
 * @module
 */
import type { Server } from "bun";
import { tokenIn } from "../certificates/challenge-answers.ts";
import type { Certificates } from "../certificates/certificates.ts";
import type { Config } from "../config.ts";
import { errorJson, statusOf } from "../http/errors.ts";
import { foreignHost, hostCheck } from "../http/host.ts";
import { redirectTo } from "../http/https.ts";
import { pathOf, pathWithoutQuery } from "../http/path.ts";
import { requestIdOf } from "../http/request-id.ts";
import { systemClock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { IdSource } from "../lib/ids.ts";

/** The longest body that it takes; it reads none. */
const BODY_BYTES_MAX = 1024;
const NO_CERTIFICATE_SECONDS = 10;

/**
 * Redirects those who type an address without https. While there is no certificate yet it answers 503.
 *
 * @param httpsPort - the port that clients reach HTTPS at
 */
export function plainListener(config: Config, port: number, httpsPort: () => number, certificates?: Certificates): Server<undefined> {
  const isOwnHost = hostCheck(config);
  const requestIds = new IdSource(systemClock);
  const locationOf = (request: Request): string => {
    const host = request.headers.get("host");
    const location = redirectTo(host, httpsPort(), pathOf(request.url));
    if (!isOwnHost(host)) throw foreignHost();
    if (certificates === undefined || certificates.current !== undefined) return location;
    throw new ApiError("service_unavailable", "This server waits for its first certificate.", {
      retryAfterSeconds: NO_CERTIFICATE_SECONDS,
    });
  };
  return Bun.serve({
    hostname: config.host,
    port,
    development: false,
    maxRequestBodySize: BODY_BYTES_MAX,
    fetch: async (request) => {
      const requestId = requestIdOf(request.headers, requestIds);
      const headers = { "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "X-Request-Id": requestId };
      try {
        const answer = await answerTo(request, certificates);
        if (answer !== undefined) return new Response(answer, { headers: { ...headers, "Content-Type": "text/plain" } });
        return new Response(null, { status: 308, headers: { ...headers, Location: locationOf(request) } });
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const body = errorJson(error, requestId);
        const retry = error.detail.retryAfterSeconds === undefined ? {} : { "Retry-After": String(error.detail.retryAfterSeconds) };
        return new Response(body, { status: statusOf(error), headers: { ...headers, ...retry, "Content-Type": "application/json" } });
      }
    },
  });
}

/** The answer to a challenge. @throws {ApiError} where it cannot be looked for */
async function answerTo(request: Request, certificates: Certificates | undefined): Promise<string | undefined> {
  const token = certificates === undefined ? undefined : tokenIn(pathWithoutQuery(request.url));
  if (token === undefined) return undefined;
  try {
    return await certificates?.answers.find(token);
  } catch (cause) {
    throw new ApiError("service_unavailable", "The answers to challenges cannot be read now.", { cause });
  }
}
