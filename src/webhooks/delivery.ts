/**
 * One attempt to deliver: a POST, and what came back.
 *
 * Of the answer at most 64 KiB are read and 2 KiB kept, and one deadline holds for everything. Of a receiver on this machine or
 * in a private network only the status is kept: a webhook must not let its owner read what such a service answers.
 *
 * @module
 */
import { addressKind } from "../lib/addresses.ts";
import { hostOf, post, type Network, type Post } from "../lib/outbound.ts";
import { errorOf, type Answer } from "./outcome.ts";
import { refusalOf } from "./target.ts";

/** An answer of up to this length leaves its connection open for the next delivery. */
const READ_BYTES_MAX = 64 * 1024;
const KEPT_BYTES_MAX = 2 * 1024;

/**
 * Posts to where the URL leads now. Never rejects.
 *
 * @param signal - ends the attempt; what has come of an answer by then counts
 */
export async function deliver(network: Network, request: Omit<Post, "readMax">, signal: AbortSignal): Promise<Answer> {
  const reply = await post(network, { ...request, readMax: () => READ_BYTES_MAX }, signal);
  switch (reply.kind) {
    case "answered": {
      const { address, status, headers } = reply;
      const body = addressKind(address) === "public" ? textOf(reply.body.subarray(0, KEPT_BYTES_MAX)) : null;
      return { status, retryAfter: headers["retry-after"], body, error: errorOf(status) };
    }
    case "forbidden":
      return unanswered(refusalOf(request.url, reply.address));
    case "unknown":
      return unanswered(`The name ${hostOf(request.url)} was not found.`);
    default:
      return unanswered(ERRORS[reply.code] ?? `The connection failed: ${reply.code}.`);
  }
}

export function unanswered(error: string): Answer {
  return { status: null, body: null, error };
}

const ERRORS: Readonly<Record<string, string>> = {
  ABORT_ERR: "No answer within the time limit.",
  EPROTO: "The receiver wanted to speak another protocol.",
};

/** Invalid UTF-8 and control characters, which a terminal would obey, become U+FFFD; a character cut through at the end goes. */
function textOf(bytes: Buffer): string {
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll(/(?![\t\n\r])\p{Cc}/gu, "\ufffd");
}
