/**
 * One request to the embedding provider. The only place of this folder that reaches out.
 *
 * The name in the base URL is looked up and checked, and the addresses that were checked are the ones that are dialled. Private
 * networks are where models of one's own run; the metadata services of clouds never hold one.
 *
 * @module
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { placeOf } from "../../lib/addresses.ts";
import { addressesOf, type Resolve } from "../../lib/names.ts";
import { isRefused, pinnedRequest, type Means, type Post } from "../../lib/pinned-request.ts";
import { unlessAborted } from "../../lib/time-limit.ts";
import { badAnswer } from "./openai-wire.ts";
import { ProviderError } from "./provider-error.ts";

/** 96 vectors of 4,096 decimal numbers take some 8 MB. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;
const COMPLAINT_BYTES_MAX = 64 * 1024;

export interface ProviderAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** As text; of a refusal no more than its beginning. */
  readonly body: string;
}

/**
 * @throws {ProviderError} `forbidden` for an address that is never asked, `bad_answer` for a redirection or too long an answer
 * @throws {Error} with a `code` when there is no answer
 */
export async function postToProvider(post: Post, means: Means & { resolve: Resolve }, signal: AbortSignal): Promise<ProviderAnswer> {
  const addresses = await checkedAddresses(post.url, means.resolve, signal);
  let last: unknown;
  for (const address of addresses) {
    try {
      return await send(address, post, means, signal);
    } catch (error) {
      last = error;
      if (!isRefused(error) || signal.aborted) break;
    }
  }
  throw last;
}

/** IPv4 first: a server of one's own often listens on that alone. */
async function checkedAddresses(url: URL, resolve: Resolve, signal: AbortSignal): Promise<readonly string[]> {
  const addresses = await unlessAborted(addressesOf(url, resolve), signal);
  const refused = addresses?.find((address) => placeOf(address) === "metadata");
  if (refused !== undefined) {
    throw new ProviderError("forbidden", `The embedding provider at ${url.host} is not asked: ${refused} is a cloud's metadata service`);
  }
  if (addresses === undefined || addresses.length === 0) throw failure("ENOTFOUND", "The name has no address");
  return addresses.toSorted((a, b) => isIP(a) - isIP(b));
}

async function send(address: string, post: Post, means: Means, signal: AbortSignal): Promise<ProviderAnswer> {
  const attempt = { isStale: false };
  try {
    return await sendOnce(address, post, means, signal, attempt);
  } catch (error) {
    // The server closed an old connection just as it was used again.
    if (!attempt.isStale || signal.aborted) throw error;
    return sendOnce(address, post, { ...means, connections: undefined }, signal, attempt);
  }
}

function sendOnce(address: string, post: Post, means: Means, signal: AbortSignal, attempt: { isStale: boolean }): Promise<ProviderAnswer> {
  return new Promise((resolve, reject) => {
    const request = pinnedRequest(address, post, means);
    const end = (settle: () => void) => {
      signal.removeEventListener("abort", onAbort);
      settle();
    };
    const fail = (error: Error) =>
      end(() => {
        request.destroy();
        reject(error);
      });
    const onAbort = () => fail(failure("ABORT_ERR", "The time is over"));
    let isAnswered = false;
    request.on("response", (message) => {
      isAnswered = true;
      read(message).then(
        (answer) =>
          end(() => {
            // What is not read to its end is of no use for another request.
            if (!message.complete) request.destroy();
            resolve(answer);
          }),
        fail,
      );
    });
    request.on("error", (error) => {
      attempt.isStale = request.reusedSocket && !isAnswered;
      fail(error);
    });
    request.on("close", () => {
      if (!isAnswered) fail(failure("ECONNRESET", "The connection was closed without an answer"));
    });
    request.on("upgrade", (_, socket) => {
      socket.destroy();
      fail(failure("EPROTO", "It wants to speak another protocol"));
    });
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    else request.end(post.body);
  });
}

/** The whole answer, no more of it than is needed. */
function read(message: IncomingMessage): Promise<ProviderAnswer> {
  const { statusCode: status = 0, headers } = message;
  return new Promise((resolve, reject) => {
    if (status >= 300 && status <= 399) {
      reject(
        badAnswer(`is a redirection (${status}), which is not followed: the key would go elsewhere. Set the final base URL`, { status }),
      );
      return;
    }
    const isOk = status >= 200 && status <= 299;
    const decoder = new TextDecoder();
    let body = "";
    let bytes = 0;
    const done = () => resolve({ status, headers, body: body + decoder.decode() });
    message.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= (isOk ? ANSWER_BYTES_MAX : COMPLAINT_BYTES_MAX)) body += decoder.decode(chunk, { stream: true });
      else if (isOk) reject(badAnswer(`is longer than ${ANSWER_BYTES_MAX / 1024 / 1024} MiB`));
      else done();
    });
    message.on("end", () => {
      if (message.complete) done();
    });
    message.on("error", reject);
    for (const event of ["aborted", "close"]) message.on(event, () => reject(failure("ECONNRESET", "The answer was cut off")));
  });
}

function failure(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
