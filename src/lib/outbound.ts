/**
 * The only way out to servers that a client or the operator names: a POST, or a GET, to an address that was checked.
 *
 * ```
 * URL ─► addresses of its name ─► every one allowed? ─► dial the first; where nobody listens, the next ─► read up to a limit
 * ```
 *
 * The name is looked up once for each request, and what is dialled is an address that was checked, so that a name whose answer
 * changes in between gains nothing; the name is in the Host header, and over TLS the certificate has to be made out to it. No
 * proxy variable is obeyed and no redirect followed: `node:http` does neither, unlike `fetch`.
 *
 * @module
 */
import { lookup } from "node:dns/promises";
import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { addressKind, type AddressKind } from "./addresses.ts";
import { unlessAborted } from "./deadline.ts";

/** The addresses of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export const systemResolve: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

export interface Network {
  readonly resolve: Resolve;
  /** Addresses that may be called. A cloud's metadata service never is, whatever this says. */
  readonly isAllowed: (kind: AddressKind) => boolean;
  /** Without them every request makes a connection of its own. */
  readonly connections?: Connections | undefined;
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined;
  /** Address to connect to for another: itself, unless a test leads public addresses to this machine. */
  readonly dial?: ((address: string) => string | { host: string; port: number }) | undefined;
}

/** Connections kept open for the next request, by address and name. */
export class Connections {
  readonly plain: HttpAgent;
  readonly secure: HttpsAgent;

  constructor({ idleMs, idleMax }: { idleMs: number; idleMax: number }) {
    const options = { keepAlive: true, maxFreeSockets: idleMax, timeout: idleMs };
    this.plain = new HttpAgent(options);
    this.secure = new HttpsAgent(options);
  }

  close(): void {
    this.plain.destroy();
    this.secure.destroy();
  }
}

/**
 * - `dial`: every address is allowed; IPv4 first, since a server on IPv4 alone often has an IPv6 name all the same
 * - `forbidden`: this address is not allowed
 * - `unknown`: the name has no address now
 */
export type Target =
  | { kind: "dial"; addresses: readonly string[] }
  | { kind: "forbidden"; address: string }
  | { kind: "unknown"; code: string };

/** Looks the name in a URL up, once, and checks every address that it stands for. */
export async function findTarget(url: URL, { resolve, isAllowed }: Pick<Network, "resolve" | "isAllowed">): Promise<Target> {
  const host = hostOf(url);
  let addresses: readonly string[];
  try {
    addresses = isIP(host) === 0 ? await resolve(host) : [host];
  } catch (error) {
    return { kind: "unknown", code: codeOf(error) };
  }
  const forbidden = addresses.find((address) => addressKind(address) === "metadata" || !isAllowed(addressKind(address)));
  if (forbidden !== undefined) return { kind: "forbidden", address: forbidden };
  if (addresses.length === 0) return { kind: "unknown", code: "ENOTFOUND" };
  return { kind: "dial", addresses: addresses.toSorted((a, b) => isIP(a) - isIP(b)) };
}

/** The name or address in a URL, without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}

export interface Post {
  /** POST unless given. */
  readonly method?: "GET" | "POST";
  readonly url: URL;
  readonly headers: Record<string, string>;
  readonly body: string;
  /** Number of bytes of the answer that are read. */
  readonly readMax: (status: number) => number;
}

export interface Answered {
  kind: "answered";
  address: string;
  status: number;
  headers: IncomingHttpHeaders;
  /** As much as came before the end. */
  body: Buffer;
  end: "whole" | "limit" | "cut" | "aborted";
}

/** `failed`: no answer has begun; the code is the system's, or `ABORT_ERR`. */
export type Reply = Answered | { kind: "failed"; code: string } | Exclude<Target, { kind: "dial" }>;

/** Posts to where the URL leads now. Never rejects. @param signal - ends the request; what has come of an answer by then counts */
export async function post(network: Network, request: Post, signal: AbortSignal): Promise<Reply> {
  const target = (await unlessAborted(findTarget(request.url, network), signal)) ?? { kind: "failed", code: "ABORT_ERR" };
  if (target.kind !== "dial") return target;
  let reply: Reply = { kind: "unknown", code: "ENOTFOUND" };
  for (const address of target.addresses) {
    let attempt = await postTo(address, network, request, signal);
    // The server closed an old connection just as it was used again.
    if (attempt.isStale && !signal.aborted) attempt = await postTo(address, { ...network, connections: undefined }, request, signal);
    ({ reply } = attempt);
    // Only where nobody listens may the next address be tried: any other server may have the request already.
    if (reply.kind !== "failed" || !NOBODY_THERE.has(reply.code) || signal.aborted) break;
  }
  return reply;
}

const NOBODY_THERE = new Set(["ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH"]);

/** @returns `isStale` when it failed on a connection from before, without an answer */
function postTo(address: string, network: Network, post: Post, signal: AbortSignal): Promise<{ reply: Reply; isStale: boolean }> {
  return new Promise((resolve) => {
    const request = openRequest(address, network, post);
    let response: IncomingMessage | undefined;
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isEnded = false;
    const end = (how: Answered["end"], code = "ECONNRESET", isStale = false) => {
      if (isEnded) return;
      isEnded = true;
      signal.removeEventListener("abort", onAbort);
      // A connection whose answer was not read to its end is of no use for another request.
      if (response?.complete !== true) request.destroy();
      if (response === undefined) return resolve({ reply: { kind: "failed", code }, isStale });
      const { statusCode: status = 0, headers } = response;
      resolve({ reply: { kind: "answered", address, status, headers, body: Buffer.concat(chunks), end: how }, isStale: false });
    };
    const onAbort = () => end("aborted", "ABORT_ERR");
    request.on("response", (message) => {
      response = message;
      const max = post.readMax(message.statusCode ?? 0);
      if (max === 0) return end("limit");
      message.on("data", (chunk: Buffer) => {
        chunks.push(chunk.subarray(0, max - bytes));
        bytes += chunk.length;
        if (bytes > max) end("limit");
      });
      message.on("end", () => end(message.complete ? "whole" : "cut"));
      for (const event of ["aborted", "error", "close"]) message.on(event, () => end("cut"));
    });
    request.on("error", (error) => end("cut", codeOf(error), request.reusedSocket));
    request.on("upgrade", (_, socket) => {
      socket.destroy();
      end("cut", "EPROTO");
    });
    request.on("close", () => end("cut"));
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    else request.end(post.body);
  });
}

/** Responses such as `103 Early Hints` before the one that counts: a server that sends them without end takes all of a core. */
const INTERIM_MAX = 100;

function openRequest(address: string, { connections, ca, dial }: Network, { method = "POST", url, headers, body }: Post): ClientRequest {
  const isSecure = url.protocol === "https:";
  const name = hostOf(url);
  const port = url.port === "" ? (isSecure ? 443 : 80) : Number(url.port);
  const dialled = dial?.(address) ?? address;
  const request = (isSecure ? httpsRequest : httpRequest)({
    method,
    ...(typeof dialled === "string" ? { host: dialled, port } : dialled),
    path: url.pathname + url.search,
    agent: (isSecure ? connections?.secure : connections?.plain) ?? false,
    // The certificate must be of the name in the URL, not of the address. An address is no name to ask for.
    ...(isSecure && isIP(name) === 0 ? { servername: name } : {}),
    ...(ca === undefined ? {} : { ca }),
    headers: { ...headers, Host: url.host, ...(method === "POST" ? { "Content-Length": String(Buffer.byteLength(body)) } : {}) },
  });
  let interim = 0;
  request.on("information", () => {
    if (++interim > INTERIM_MAX) request.destroy(Object.assign(new Error("too many interim responses"), { code: "TOO_MANY_1XX" }));
  });
  return request;
}

function codeOf(error: unknown): string {
  const { code, name } = error as { code?: unknown; name?: unknown };
  return typeof code === "string" ? code : String(name);
}
