/**
 * The server that a hook asks: one that the operator named, or that of the data directory, which proves itself first.
 *
 * @module
 */
import { announced } from "../announcement.ts";
import { send, type Answered } from "../http-client.ts";
import { ProvenServer } from "../proven-server.ts";
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

export class HookServer implements Disposable {
  readonly #send: (method: Method, path: string, body: string | undefined) => Promise<Answered>;
  readonly #close: () => void;

  private constructor(sender: (method: Method, path: string, body: string | undefined) => Promise<Answered>, close: () => void) {
    this.#send = sender;
    this.#close = close;
  }

  /** @returns undefined where none has announced itself */
  static find({ server, directory }: HookEnvironment): HookServer | undefined {
    const base = { timeoutMs: TIMEOUT_MS };
    if (server !== undefined) {
      const { url, key } = server;
      const sender = (method: Method, path: string, body: string | undefined) =>
        send(new URL(`${url.pathname.replace(/\/$/, "")}${path}`, url), {
          ...base,
          ...requestOf(method, key, body),
          anyCertificate: false,
          keepAlive: true,
        });
      return new HookServer(sender, () => undefined);
    }
    const place = announced(directory);
    if (place === undefined) return undefined;
    const proven = new ProvenServer(directory, place);
    const sender = (method: Method, path: string, body: string | undefined) =>
      proven.send(path, { ...base, ...requestOf(method, place.key, body), anyCertificate: true });
    return new HookServer(sender, () => proven[Symbol.dispose]());
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
