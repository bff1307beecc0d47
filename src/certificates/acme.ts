/**
 * The protocol of certificate authorities (ACME): signed requests, and what their answers say.
 *
 * @see https://www.rfc-editor.org/rfc/rfc8555
 * @module
 */
import { createHash, createPublicKey, sign, type KeyObject } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "../lib/clock.ts";
import { DAY_MS, SECOND_MS } from "../lib/duration.ts";
import { toJson } from "../lib/json.ts";
import { post, type Network } from "../lib/outbound.ts";
import { retryAfterMs } from "../lib/retry-after.ts";
import { reasonFor } from "../lib/system-errors.ts";

const REQUEST_MS_MAX = 30 * SECOND_MS;
const ANSWER_BYTES_MAX = 1024 * 1024;
const SHOWN_LENGTH = 500;
/** A nonce that the authority does not know any more is replaced that often. */
const NONCES_MAX = 8;
const RETRY_AFTER_MS_MAX = 7 * DAY_MS;
const PROBLEM = "urn:ietf:params:acme:error:";

/** Failure of an order, in words for the operator. */
export class AcmeError extends Error {
  override name = "AcmeError";
  /** Time before which the authority wants no other attempt. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, wait?: number) {
    super(message.slice(0, SHOWN_LENGTH));
    this.retryAfterMs = wait;
  }
}

/** Problem document of an authority (RFC 7807). */
export interface Problem {
  readonly type?: string;
  readonly detail?: string;
}

export interface AcmeAnswer {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Time that the authority asks to wait. */
  readonly waitMs: number | undefined;
}

interface AcmeOptions {
  /** The address of the authority's directory. */
  readonly directory: URL;
  /** The account's, on P-256. */
  readonly key: KeyObject;
  readonly network: Network;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

type Directory = Readonly<Record<"newNonce" | "newAccount" | "newOrder", string>>;

export class AcmeClient {
  readonly #options: AcmeOptions;
  readonly #jwk: object;
  #directory: Directory | undefined;
  #nonce: string | undefined;
  /** The address of the account, once it is known. */
  #account: string | undefined;

  constructor(options: AcmeOptions) {
    this.#options = options;
    const { kty, crv, x, y } = createPublicKey(options.key).export({ format: "jwk" });
    // In the order of its hash (RFC 7638).
    this.#jwk = { crv, kty, x, y };
  }

  /** Finds the account of the key, or makes one, which agrees to the authority's terms. */
  async register(): Promise<void> {
    const { headers } = await this.ask((await this.#find()).newAccount, { termsOfServiceAgreed: true });
    this.#account = headers.location;
  }

  /** @returns the address of the order, and the order */
  async order(names: readonly string[]): Promise<{ url: string; answer: AcmeAnswer }> {
    const answer = await this.ask((await this.#find()).newOrder, { identifiers: names.map((value) => ({ type: "dns", value })) });
    return { url: answer.headers.location ?? "", answer };
  }

  /** The answer to a challenge of HTTP-01. */
  answerTo(token: string): string {
    return `${token}.${createHash("sha256").update(JSON.stringify(this.#jwk)).digest("base64url")}`;
  }

  /**
   * Sends a signed request.
   *
   * @param payload - undefined to read what is there
   * @throws {AcmeError} for every answer but one of success
   */
  async ask(url: string, payload?: object): Promise<AcmeAnswer> {
    for (let i = 1; ; i++) {
      const nonce = this.#nonce ?? (await this.#newNonce());
      this.#nonce = undefined;
      const answer = await this.#send(url, this.#signed(url, nonce, payload));
      if (answer.status < 300) return answer;
      const problem = problemIn(answer.text);
      if (problem.type !== `${PROBLEM}badNonce` || i === NONCES_MAX) throw refused(url, answer, problem);
    }
  }

  async #find(): Promise<Directory> {
    if (this.#directory !== undefined) return this.#directory;
    const url = this.#options.directory.href;
    const answer = await this.#send(url);
    if (answer.status !== 200) throw refused(url, answer, problemIn(answer.text));
    const found = objectIn(answer.text) as Partial<Directory>;
    const { newNonce, newAccount, newOrder } = found;
    if (newNonce === undefined || newAccount === undefined || newOrder === undefined)
      throw new AcmeError(`${url} is no directory of a certificate authority.`);
    return (this.#directory = { newNonce, newAccount, newOrder });
  }

  async #newNonce(): Promise<string> {
    const url = (await this.#find()).newNonce;
    const answer = await this.#send(url);
    const nonce = this.#nonce;
    if (nonce === undefined) throw refused(url, answer, problemIn(answer.text));
    return nonce;
  }

  #signed(url: string, nonce: string, payload: object | undefined): string {
    const encoded = (value: string) => Buffer.from(value).toString("base64url");
    const by = this.#account === undefined ? { jwk: this.#jwk } : { kid: this.#account };
    const head = encoded(JSON.stringify({ alg: "ES256", nonce, url, ...by }));
    const body = payload === undefined ? "" : encoded(toJson(payload));
    const signature = sign("sha256", Buffer.from(`${head}.${body}`), { key: this.#options.key, dsaEncoding: "ieee-p1363" });
    return JSON.stringify({ protected: head, payload: body, signature: signature.toString("base64url") });
  }

  /** @param body - undefined for a GET */
  async #send(address: string, body?: string): Promise<AcmeAnswer & { status: number }> {
    const { network, clock, signal } = this.#options;
    const url = URL.parse(address);
    if (url === null || !/^https?:$/.test(url.protocol)) throw new AcmeError("The certificate authority names an address that is none.");
    const reply = await post(
      network,
      {
        method: body === undefined ? "GET" : "POST",
        url,
        headers: { "User-Agent": "cairn", ...(body === undefined ? {} : { "Content-Type": "application/jose+json" }) },
        body: body ?? "",
        readMax: () => ANSWER_BYTES_MAX,
      },
      AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS_MAX)]),
    );
    if (reply.kind !== "answered" || reply.end !== "whole") throw new AcmeError(`${url.origin} cannot be asked: ${reasonOf(reply)}.`);
    const { status, headers } = reply;
    const nonce = headers["replay-nonce"];
    if (typeof nonce === "string") this.#nonce = nonce;
    const waitMs = retryAfterMs(headers["retry-after"], clock.now(), RETRY_AFTER_MS_MAX);
    return { status, headers, text: reply.body.toString(), waitMs };
  }
}

/** Object in an answer; an empty one where it has none. */
export function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}

const problemIn = (text: string): Problem => objectIn(text);

/** A problem in the authority's words. */
export function wordsOf({ type, detail }: Problem): string {
  const kind = typeof type === "string" ? type.replace(PROBLEM, "") : undefined;
  return [kind, detail].filter((part) => part !== undefined).join(": ") || "no reason given";
}

function refused(url: string, { status, waitMs }: { status: number; waitMs: number | undefined }, problem: Problem): AcmeError {
  return new AcmeError(`${new URL(url).origin} answered ${status}: ${wordsOf(problem)}`, waitMs);
}

function reasonOf(reply: Exclude<Awaited<ReturnType<typeof post>>, never>): string {
  if (reply.kind === "answered") return "its answer was cut off";
  if (reply.kind === "forbidden") return `${reply.address} is no address to ask`;
  if (reply.code === "ABORT_ERR") return "it did not answer in time";
  try {
    return reasonFor(reply.code as Parameters<typeof reasonFor>[0]) ?? reply.code;
  } catch {
    return reply.code;
  }
}
