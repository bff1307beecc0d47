/**
 * The server that a hook asks: one that the operator named, or that of the data directory. A socket file in that directory which is this
 * user's is asked at once; elsewhere the server proves itself first. What speaks TLS and TCP is loaded when it is needed: that takes as
 * long as all else.
 *
 * @module
 */
import { announced, socketIn } from "../announcement.ts";
import type { ProvenServer } from "../proven-server.ts";
import type { HookEnvironment } from "./environment.ts";

/** The deadline of the event comes first. */
const TIMEOUT_MS = 5_000;

/** An answer that is no success. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly status: number;

  constructor(status: number) {
    super(`the server answered ${status}`);
    this.status = status;
  }
}

type Method = "GET" | "POST";
type Sender = (method: Method, path: string, body: string | undefined) => Promise<{ readonly status: number; readonly body: string }>;

export class HookServer implements Disposable {
  readonly #send: Sender;
  readonly #close: () => void;

  private constructor(sender: Sender, close: () => void = () => undefined) {
    this.#send = sender;
    this.#close = close;
  }

  /** @returns undefined where none has announced itself */
  static async find({ server, directory }: HookEnvironment): Promise<HookServer | undefined> {
    if (server !== undefined) return new HookServer(await named(server));
    const place = announced(directory);
    if (place === undefined) return undefined;
    let proven: ProvenServer | undefined;
    const sender: Sender = async (method, path, body) => {
      const request = requestOf(method, place.key, body);
      const socket = place.socket && proven === undefined ? socketIn(directory) : undefined;
      const answer = socket === undefined ? undefined : await overSocket(socket, path, request);
      if (answer !== undefined) return answer;
      proven ??= new (await import("../proven-server.ts")).ProvenServer(directory, place);
      return proven.send(path, { signal: AbortSignal.timeout(TIMEOUT_MS), ...request, anyCertificate: true });
    };
    return new HookServer(sender, () => proven?.[Symbol.dispose]());
  }

  async isThere(): Promise<boolean> {
    try {
      return (await this.#send("GET", "/health/live", undefined)).status === 200;
    } catch {
      return false;
    }
  }

  /** @throws {Refusal} unless it is a success */
  async ask(method: Method, path: string, body?: object): Promise<Readonly<Record<string, unknown>>> {
    const { status, body: text } = await this.#send(method, path, body === undefined ? undefined : JSON.stringify(body));
    if (status < 200 || status > 299) throw new Refusal(status);
    return JSON.parse(text) as Record<string, unknown>;
  }

  [Symbol.dispose](): void {
    this.#close();
  }
}

function requestOf(method: Method, key: string, body: string | undefined) {
  return { method, headers: { "X-API-Key": key, ...(body === undefined ? {} : { "Content-Type": "application/json" }) }, body };
}

async function named({ url, key }: { readonly url: URL; readonly key: string }): Promise<Sender> {
  const { send } = await import("../http-client.ts");
  return (method, path, body) =>
    send(new URL(`${url.pathname.replace(/\/$/, "")}${path}`, url), {
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...requestOf(method, key, body),
      anyCertificate: false,
      keepAlive: true,
    });
}

/** @returns undefined where nobody listens on it, such as after a server was killed */
async function overSocket(unix: string, path: string, { method, headers, body }: ReturnType<typeof requestOf>) {
  try {
    const answer = await fetch(`http://localhost${path}`, { method, headers, body: body ?? null, unix, redirect: "manual" });
    return { status: answer.status, body: await answer.text() };
  } catch {
    return undefined;
  }
}
