/**
 * Paths of OAuth at the root, which need no key, and the challenge that leads clients of `/mcp` to them.
 *
 * @module
 */
import type { Elysia } from "elysia";
import { presentedKey } from "../http/admission.ts";
import type { Answer, Exchange } from "../http/exchange.ts";
import type { Pipeline } from "../http/pipeline.ts";
import { parametersOf } from "../http/query.ts";
import { ApiError } from "../lib/errors.ts";
import { challengeOf, issuerOf } from "../oauth/issuer.ts";
import { grantNamedIn } from "../oauth/grants.ts";
import type { OAuthDeps } from "../oauth/requests.ts";
import { authorizeAnswer, METADATA, metadataAnswer, preflightAnswer, registerAnswer, revokeAnswer, tokenAnswer } from "../oauth/routes.ts";
import type { Caller } from "../traces/record.ts";

interface OAuthPathsDeps extends OAuthDeps {
  /** Makes the changes that nobody with a key asks for. */
  readonly system: Caller;
}

/**
 * Serves OAuth for `/mcp`, at a configured address or at one of this machine; there is nothing elsewhere. The paths are at the root, for
 * clients that do not read where they are.
 */
export function serveOAuth(app: Elysia, pipeline: Pipeline, deps: OAuthPathsDeps): void {
  const { clock, system } = deps;
  const issuer = ({ request }: Exchange) => issuerOf(request, deps.oauth.publicUrl);
  const at = (path: string, method: "GET" | "POST", work: (exchange: Exchange, issuer: string) => Answer | Promise<Answer>) => {
    app.route(method, path, ({ request, server }) =>
      pipeline.exchange(path, request, server, (exchange) => {
        const own = issuer(exchange);
        if (own === undefined) throw oauthIsOff(path);
        return work(exchange, own);
      }),
    );
    app.all(path, ({ request, server }) =>
      pipeline.exchange("other", request, server, () => {
        const allow = method === "GET" ? "GET, HEAD" : "POST";
        if (request.method === "OPTIONS") return preflightAnswer(allow);
        throw wrongMethod(request, allow);
      }),
    );
  };
  for (const path of Object.keys(METADATA)) at(path, "GET", (_, own) => metadataAnswer(path, own, deps.oauth.clients() === "any"));
  at("/authorize", "GET", ({ request }) => authorizeAnswer(parametersOf(request.url)));
  at("/register", "POST", (exchange) =>
    refusing("invalid_client_metadata", () =>
      pipeline.strangers.answer(exchange, ({ value }) => registerAnswer(value, deps.oauth.clients(), clock.now())),
    ),
  );
  const keyNamedIn = (form: URLSearchParams) => deps.store.read((reader) => grantNamedIn(reader, form));
  for (const [path, answer] of [
    ["/token", tokenAnswer],
    ["/revoke", revokeAnswer],
  ] as const)
    at(path, "POST", (exchange) =>
      refusing("invalid_request", () => pipeline.strangers.answerHolder(exchange, keyNamedIn, (form) => answer(deps, system, form))),
    );
}

/** Has errors say what RFC 6749 calls them, which clients of OAuth read. @param fault - one of what was sent */
async function refusing(fault: string, work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const oauthError = error.code === "invalid_request" || error.code === "payload_too_large" ? fault : "temporarily_unavailable";
    throw new ApiError(error.code, error.message, { ...error.detail, oauthError });
  }
}

function oauthIsOff(path: string): ApiError {
  return new ApiError(
    "resource_not_found",
    `There is nothing at ${path}: OAuth is off, which CAIRN_PUBLIC_URL switches on. Send an API key as the header X-API-Key, or as Authorization: Bearer.`,
  );
}

/** Has a 401 say where to get a token. */
export async function challenging(
  exchange: Exchange,
  { oauth }: Pick<OAuthDeps, "oauth">,
  work: () => Answer | Promise<Answer>,
): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    const issuer = issuerOf(exchange.request, oauth.publicUrl);
    if (!(error instanceof ApiError) || error.code !== "authentication_failed" || issuer === undefined) throw error;
    const challenge = challengeOf(issuer, presentedKey(exchange.request.headers) !== null);
    throw new ApiError(error.code, error.message, { ...error.detail, challenge });
  }
}

export function wrongMethod(request: Request, allow: string): ApiError {
  return new ApiError("method_not_allowed", `${request.method} is not allowed here; allowed are ${allow}.`, { allow });
}
