/**
 * Documents of applications, at the URLs that are their ids: fetched when somebody with an admin key is asked for consent, never for a
 * stranger, from public addresses alone, by the way out that webhooks take. Where no answer comes, one that is built in counts.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { Deadline } from "../lib/deadline.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/duration.ts";
import { type ApiError } from "../lib/errors.ts";
import { hostOf, post, type Network, type Reply } from "../lib/outbound.ts";
import { version } from "../lib/version.ts";
import { CLIENT_ID_LENGTH_MAX, clientIn, unknownClient, type Client, type Documents } from "./clients.ts";
import { knownDocument } from "./known-clients.ts";

const BYTES_MAX = 5 * 1024;
const FETCH_MS = 3 * SECOND_MS;
const KEPT_MIN_MS = 5 * MINUTE_MS;
const KEPT_DEFAULT_MS = HOUR_MS;
const KEPT_MAX_MS = DAY_MS;
const FAILURE_KEPT_MS = MINUTE_MS;
/** Each has at most a few kilobytes. */
const KEPT_MAX = 200;

interface Kept {
  readonly found: Promise<Client>;
  /** `clock.elapsed()` from which on it is fetched again. */
  until: number;
}

export class ClientDocuments implements Documents {
  readonly #clock: Clock;
  readonly #network: Network;
  /** The oldest comes first. */
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Clock, network: Pick<Network, "resolve" | "ca" | "dial">) {
    this.#clock = clock;
    this.#network = { ...network, isAllowed: (kind) => kind === "public" };
  }

  /** @throws {ApiError} `invalid_request` that says why the document cannot be used */
  get(id: string): Promise<Client> {
    const problem = urlProblem(id);
    if (problem !== undefined) throw unknownClient(problem);
    const now = this.#clock.elapsed();
    const kept = this.#kept.get(id);
    if (kept !== undefined && kept.until > now) return kept.found;
    this.#kept.delete(id);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= KEPT_MAX) this.#kept.delete(oldest);
    const document = this.#read(id);
    // A failure is kept for a minute, and whatever asks meanwhile waits for the same answer.
    const entry: Kept = { found: document.then(({ client }) => client), until: now + FAILURE_KEPT_MS };
    this.#kept.set(id, entry);
    document.then(
      ({ keptMs }) => (entry.until = this.#clock.elapsed() + keptMs),
      () => undefined,
    );
    return entry.found;
  }

  async #read(id: string): Promise<{ client: Client; keptMs: number }> {
    const url = new URL(id);
    using deadline = new Deadline(this.#clock, FETCH_MS);
    const headers = { Accept: "application/json", "User-Agent": `Cairn/${version}` };
    const reply = await post(this.#network, { method: "GET", url, headers, body: "", readMax: () => BYTES_MAX }, deadline.signal);
    const builtIn = reply.kind === "answered" ? undefined : knownDocument(id);
    const client = clientIn(builtIn ?? documentOf(url, reply, id), id);
    if ("problem" in client) throw unusable(url, client.problem);
    return { client, keptMs: builtIn === undefined ? keptMsOf(reply) : FAILURE_KEPT_MS };
  }
}

/** Problem of a client's URL, in words that follow `client_id`. */
function urlProblem(id: string): string | undefined {
  const url = id.length <= CLIENT_ID_LENGTH_MAX ? URL.parse(id) : null;
  if (url === null || url.href !== id) return `must be a complete URL of at most ${CLIENT_ID_LENGTH_MAX} characters.`;
  if (url.protocol !== "https:" || url.port !== "") return "must be an https URL at the default port.";
  if (url.username !== "" || url.password !== "" || url.search !== "" || id.includes("#"))
    return "must have no user name, password, query or fragment.";
  return url.pathname === "/" ? "must have a path." : undefined;
}

/** The document, or an error that says of the reply no more than which step failed. */
function documentOf(url: URL, reply: Reply, id: string): unknown {
  if (reply.kind === "forbidden") throw unusable(url, "it does not lead to a public address.");
  if (reply.kind === "unknown") throw unusable(url, `the name ${hostOf(url)} was not found.`);
  if (reply.kind === "failed")
    throw unusable(url, reply.code === "ABORT_ERR" ? "no answer within 3 s." : `the connection failed: ${reply.code}.`);
  if (reply.status !== 200) throw unusable(url, `the answer has the status ${reply.status}, and redirects are not followed.`);
  if (reply.end !== "whole")
    throw unusable(url, reply.end === "limit" ? `it has more than ${BYTES_MAX} bytes.` : "the answer did not come whole within 3 s.");
  if (!/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(reply.headers["content-type"] ?? ""))
    throw unusable(url, "it is not served as JSON.");
  const document = parsed(reply.body);
  if (document?.["client_id"] !== id) throw unusable(url, "its client_id is not this URL.");
  if (document["client_name"] === undefined) throw unusable(url, "client_name is missing.");
  return document;
}

function parsed(body: Buffer): Record<string, unknown> | null | undefined {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as Record<string, unknown> | null;
  } catch {
    return undefined;
  }
}

function unusable(url: URL, problem: string): ApiError {
  return unknownClient(`leads to a document that cannot be used, at ${url.host}: ${problem}`);
}

function keptMsOf(reply: Reply): number {
  const header = reply.kind === "answered" ? reply.headers["cache-control"] : undefined;
  const seconds = /(?:^|[\s,])max-age=(\d{1,9})/i.exec(header ?? "")?.[1];
  const ms = seconds === undefined ? KEPT_DEFAULT_MS : Number(seconds) * SECOND_MS;
  return Math.min(KEPT_MAX_MS, Math.max(KEPT_MIN_MS, ms));
}
