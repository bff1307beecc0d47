/**
 * One attempt to deliver: a POST to an address that was checked, and what came back. The only place that webhooks call out from.
 *
 * Each attempt dials the address it is given, or takes a connection to that address that is still open. Of the answer at most
 * 64 KiB are read and 2 KiB kept, and one deadline holds for everything. Of a receiver on this machine or in a private network
 * only the status is kept: a webhook must not let its owner read what such a service answers.
 *
 * @module
 */
import type { IncomingMessage } from "node:http";
import { placeOf } from "../lib/addresses.ts";
import type { Resolve } from "../lib/names.ts";
import { isRefused, pinnedRequest, type Connections, type Post } from "../lib/pinned-request.ts";
import { unlessAborted } from "../lib/time-limit.ts";
import { resolveTarget, type TargetRules } from "./target.ts";

const READ_BYTES_MAX = 64 * 1024;
const KEPT_BYTES_MAX = 2 * 1024;

export interface Network {
  readonly rules: TargetRules;
  readonly resolve: Resolve;
  /** Without them every attempt makes a connection of its own. */
  readonly connections?: Connections;
  /** Certificates to trust instead of the system's. */
  readonly ca?: string;
  /** What to connect to for an address: itself, unless a test leads public addresses to this machine. */
  readonly dial?: (address: string) => string;
}

export type Answer =
  /** `body` is how it began; null where the address is not public. */
  | { kind: "answered"; status: number; retryAfter: string | undefined; body: string | null }
  /** Without an answer: why, in words for the operator. */
  | { kind: "unanswered"; reason: string };

/**
 * Posts to where the URL leads now. Never rejects.
 *
 * @param signal - ends the attempt; what has come of an answer by then counts
 */
export async function deliver(network: Network, post: Post, signal: AbortSignal): Promise<Answer> {
  const target = await unlessAborted(resolveTarget(post.url, network.rules, network.resolve), signal);
  if (target === undefined) return { kind: "unanswered", reason: "No answer within the time limit: the name was not looked up in time." };
  if (target.kind !== "dial") return { kind: "unanswered", reason: target.reason };
  let last: Answer | undefined;
  for (const address of target.addresses) {
    let attempt = await postTo(address, network, post, signal);
    // The receiver closed an old connection just as it was used again.
    if (attempt.wasStale) attempt = await postTo(address, { ...network, connections: undefined }, post, signal);
    last = attempt.answer;
    // Only where nobody listens may the next address be tried: any other receiver may have the delivery already.
    if (!attempt.refused || signal.aborted) break;
  }
  return last ?? { kind: "unanswered", reason: "There was no address to dial." };
}

interface Attempted {
  answer: Answer;
  /** Nobody listens there. */
  refused: boolean;
  /** It failed on a connection from before, without an answer. */
  wasStale: boolean;
}

function postTo(
  address: string,
  network: Omit<Network, "connections"> & { connections?: Connections | undefined },
  post: Post,
  signal: AbortSignal,
): Promise<Attempted> {
  const isShown = placeOf(address) === "public";
  return new Promise((resolve) => {
    let response: IncomingMessage | undefined;
    let bytes = 0;
    let kept: Buffer = Buffer.alloc(0);
    const end = (reason: string, refused = false, wasStale = false) => {
      signal.removeEventListener("abort", onAbort);
      // What is not read to its end is of no use for another delivery.
      if (response?.complete !== true) request.destroy();
      const status = response?.statusCode;
      resolve({
        answer:
          response === undefined || status === undefined
            ? { kind: "unanswered", reason }
            : { kind: "answered", status, retryAfter: headerOf(response, "retry-after"), body: isShown ? textOf(kept) : null },
        refused,
        wasStale: wasStale && response === undefined && !signal.aborted,
      });
    };
    const onAbort = () => end("No answer within the time limit.");
    const request = pinnedRequest(network.dial?.(address) ?? address, post, network);
    request.on("response", (message) => {
      response = message;
      message.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (isShown && kept.length < KEPT_BYTES_MAX) kept = Buffer.concat([kept, chunk.subarray(0, KEPT_BYTES_MAX - kept.length)]);
        if (bytes >= READ_BYTES_MAX) end("");
      });
      for (const event of ["end", "aborted", "error", "close"]) message.on(event, () => end(""));
    });
    request.on("error", (error: Error & { code?: string }) => {
      end(`The connection failed: ${error.code ?? error.name}.`, isRefused(error), request.reusedSocket);
    });
    request.on("upgrade", (_, socket) => {
      socket.destroy();
      end("The receiver wanted to speak another protocol.");
    });
    request.on("close", () => end("The connection was closed without an answer."));
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    else request.end(post.body);
  });
}

function headerOf(message: IncomingMessage, name: string): string | undefined {
  const value = message.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/**
 * Bytes that are no UTF-8 become U+FFFD, and so do characters that would have a terminal do something; a character that was
 * cut through at the end goes.
 */
function textOf(bytes: Buffer): string {
  return new TextDecoder().decode(bytes, { stream: true }).replaceAll(/(?![\t\n\r])\p{Cc}/gu, "\ufffd");
}
