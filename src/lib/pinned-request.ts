/**
 * A POST to an address that was looked up and checked before: what a name stands for now is what is dialled.
 *
 * The name in the URL is not looked up again, so that one whose answer changes in between gains nothing; it is in the Host
 * header, and over TLS the certificate has to be made out to it. No proxy variable is obeyed and no redirect followed:
 * `node:http` does neither, unlike `fetch`.
 *
 * @module
 */
import { Agent as HttpAgent, request as httpRequest, type ClientRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { hostOf } from "./names.ts";

/** Connections that are kept open, by address and name: what follows soon needs no new one. */
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

export interface Post {
  readonly url: URL;
  readonly headers: Record<string, string>;
  readonly body: string;
}

export interface Means {
  /** Without them the request makes a connection of its own. */
  readonly connections?: Connections | undefined;
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined;
}

/** Not sent yet: `end(post.body)` does that. */
export function pinnedRequest(address: string, { url, headers, body }: Post, { connections, ca }: Means): ClientRequest {
  const isSecure = url.protocol === "https:";
  const name = hostOf(url);
  const request = (isSecure ? httpsRequest : httpRequest)({
    method: "POST",
    host: address,
    port: url.port === "" ? (isSecure ? 443 : 80) : Number(url.port),
    path: url.pathname + url.search,
    agent: (isSecure ? connections?.secure : connections?.plain) ?? false,
    // The certificate must be of the name in the URL, not of the address. An address is no name to ask for.
    ...(isSecure && isIP(name) === 0 ? { servername: name } : {}),
    ...(ca === undefined ? {} : { ca }),
    headers: { ...headers, Host: url.host, "Content-Length": String(Buffer.byteLength(body)) },
  });
  let interim = 0;
  request.on("information", () => {
    if (++interim > INTERIM_MAX) request.destroy(Object.assign(new Error("too many interim responses"), { code: "TOO_MANY_1XX" }));
  });
  return request;
}

/** Responses such as `103 Early Hints` before the one that counts: a server that sends them without end takes all of a core. */
const INTERIM_MAX = 100;

/** Whether nobody got the request, so that another address may be tried. */
export function isRefused(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === "ECONNREFUSED" || code === "ENETUNREACH" || code === "EHOSTUNREACH";
}
