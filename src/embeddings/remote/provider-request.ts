/**
 * One request to the embedding provider.
 *
 * Private networks are where models of one's own run, so every address may be called but a cloud's metadata service.
 *
 * @module
 */
import { addressKind } from "../../lib/addresses.ts";
import { post, type Network, type Post } from "../../lib/outbound.ts";
import { badAnswer, ProviderError } from "./provider-error.ts";

/** 96 vectors of 4,096 decimal numbers take some 8 MB. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;
const ERROR_BYTES_MAX = 64 * 1024;

export interface ProviderAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** As text; of an error no more than its beginning. */
  readonly body: string;
  /** True if it came from a public address. */
  readonly isPublic: boolean;
}

/**
 * @throws {ProviderError} `unreachable` without an answer, `forbidden` for an address that is never asked, `bad_answer` for a
 *   redirection or too long an answer
 */
export async function postToProvider(
  network: Omit<Network, "isAllowed">,
  request: Omit<Post, "readMax">,
  signal: AbortSignal,
): Promise<ProviderAnswer> {
  const readMax = (status: number) => (isOk(status) ? ANSWER_BYTES_MAX : isRedirection(status) ? 0 : ERROR_BYTES_MAX);
  const reply = await post({ ...network, isAllowed: () => true }, { ...request, readMax }, signal);
  const who = `The embedding provider at ${request.url.host}`;
  const unreachable = (code: string) => new ProviderError("unreachable", `${who} cannot be reached: ${code}`, { isTransient: true });
  if (reply.kind === "forbidden")
    throw new ProviderError("forbidden", `${who} is not asked: ${reply.address} is a cloud's metadata service`);
  if (reply.kind !== "answered") throw unreachable(reply.code);
  const { status, end } = reply;
  if (isRedirection(status))
    throw badAnswer(`is a redirection (${status}), which is not followed: the key would go elsewhere. Set the final base URL`, { status });
  if (end === "limit" && isOk(status)) throw badAnswer(`is longer than ${ANSWER_BYTES_MAX / 1024 / 1024} MiB`);
  if (end === "cut" || end === "aborted") throw unreachable("ECONNRESET");
  const isPublic = addressKind(reply.address) === "public";
  return { status, retryAfter: reply.headers["retry-after"], body: new TextDecoder().decode(reply.body), isPublic };
}

function isOk(status: number): boolean {
  return status >= 200 && status <= 299;
}

function isRedirection(status: number): boolean {
  return status >= 300 && status <= 399;
}
