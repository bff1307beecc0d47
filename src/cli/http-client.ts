/**
 * Requests of commands to a server, and the `fetch` by which the client of the API makes them. Proxies are ignored.
 *
 * @module
 */
import { Agent as HttpAgent, request as requestOverHttp, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as requestOverHttps } from "node:https";

export interface HttpRequest {
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array | undefined;
  /** Ends the request, and the reading of its answer. */
  signal: AbortSignal;
  /** True to take any certificate: for loopback addresses, which none names. */
  anyCertificate: boolean;
  /** Longest body that is read; any unless given. */
  bytesMax?: number;
  /** True to keep the connection for the next request. */
  keepAlive?: boolean;
  /** Agent that makes and keeps the connections, instead of the host and port of the URL. */
  agent?: HttpAgent;
}

export type RequestParts = Pick<HttpRequest, "method" | "headers" | "body" | "signal">;

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const HTTP_AGENT = new HttpAgent({ keepAlive: true });
const HTTPS_AGENT = new HttpsAgent({ keepAlive: true });

/** @throws {Error} the system's, when no answer comes */
export async function send(url: URL, sent: HttpRequest): Promise<Answered> {
  const { method = "GET", headers = {}, body, signal, anyCertificate, keepAlive = false, agent, bytesMax } = sent;
  const isHttps = url.protocol === "https:";
  const options = {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { "Content-Length": String(Buffer.byteLength(body)) }) },
    rejectUnauthorized: !anyCertificate,
    signal,
    agent: agent ?? (keepAlive ? (isHttps ? HTTPS_AGENT : HTTP_AGENT) : (false as const)),
  };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = (isHttps ? requestOverHttps : requestOverHttp)(url, options, resolve);
    request.on("error", reject);
    request.end(body);
  });
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await bodyOf(answer, bytesMax) };
}

/** `fetch` by connections of our own. */
export async function fetchBy(request: Request, anyCertificate: boolean): Promise<Response> {
  return responseOf(await send(new URL(request.url), { ...(await partsOf(request)), anyCertificate, keepAlive: true }));
}

/** Reads its body. */
export async function partsOf(request: Request): Promise<RequestParts> {
  const { method, headers, signal } = request;
  // As it is: a long one comes compressed.
  const body = request.body === null ? undefined : await request.bytes();
  return { method, headers: Object.fromEntries(headers), body, signal };
}

/** Returns an answer as `fetch` gives it, with the headers that the client of the API reads. */
export function responseOf({ status, headers, body }: Answered): Response {
  const kept = ["content-type", "retry-after", "x-request-id"].flatMap((name) => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value] as [string, string]] : [];
  });
  return new Response(body === "" ? null : body, { status, headers: kept });
}

async function bodyOf(answer: AsyncIterable<Buffer>, bytesMax = Infinity): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer) {
    length += chunk.length;
    // Leaving the loop closes the connection.
    if (length > bytesMax) throw new Error(`more than ${bytesMax} bytes came, and no client reads that much`);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}
