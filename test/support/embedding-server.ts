/**
 * An imitation of a server that speaks `/v1/embeddings`, on loopback. Its vectors are the built-in provider's, shifted and
 * brought to the length that is wished, so that what they say of two texts is true; it answers as real ones do, unless the
 * test tells it how to answer the next request or all of them.
 *
 * @module
 */
import { embeddedMemory } from "./meaning.ts";

export interface EmbeddingServerOptions {
  /** Length of its vectors. */
  length?: number;
  /** Cosine of texts that have nothing in common, 0 to 1; all others move up with it. */
  unrelated?: number;
  /** What it makes of the wish for another length; servers that do not know it ignore it. */
  dimensions?: "take" | "ignore" | "refuse";
  base64?: "take" | "ignore" | "refuse";
  /** The key it asks for. */
  apiKey?: string;
}

export interface EmbeddingRequest {
  path: string;
  headers: Headers;
  body: { model: string; input: string[]; dimensions?: number; encoding_format?: string };
}

export interface EmbeddingAnswer {
  object: string;
  data: Record<string, unknown>[];
  model: string;
  usage: { prompt_tokens: number; total_tokens: number };
}

/** Another way to answer; `usual` is what the server would say. */
export type Behaviour = (request: EmbeddingRequest, usual: () => Response) => Response | Promise<Response>;

/** An error as OpenAI writes it. */
export function refuses(
  status: number,
  message: string,
  more: { code?: string; param?: string; headers?: Record<string, string> } = {},
): Behaviour {
  const error = { message, type: "invalid_request_error", param: more.param ?? null, code: more.code ?? null };
  return () => Response.json({ error }, { status, headers: more.headers ?? {} });
}

/** Whatever it is, word for word. */
export function answers(body: string, init?: ResponseInit): Behaviour {
  return () => new Response(body, init);
}

/** The usual answer, changed. */
export function changes(change: (answer: EmbeddingAnswer) => unknown): Behaviour {
  return async (_request, usual) => {
    const response = usual();
    return response.ok ? Response.json(change((await response.json()) as EmbeddingAnswer)) : response;
  };
}

/** Never answers. */
export const hangs: Behaviour = () => new Promise(() => undefined);

/** Ends in the middle of its answer. */
export const isCutOff: Behaviour = async (_request, usual) => {
  const text = await usual().text();
  return new Response(text.slice(0, text.length / 2));
};

/** A flood of bytes that ends when the reader leaves. */
export const floods: Behaviour = () => {
  const chunk = new Uint8Array(1024 * 1024).fill(0x20);
  return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(chunk) }));
};

/** As `behaviour` where `concerns` says so, as usual otherwise. */
export function when(concerns: (request: EmbeddingRequest) => boolean, behaviour: Behaviour): Behaviour {
  return (request, usual) => (concerns(request) ? behaviour(request, usual) : usual());
}

export class EmbeddingServer implements AsyncDisposable {
  readonly requests: EmbeddingRequest[] = [];
  readonly #options: EmbeddingServerOptions;
  readonly #server: Bun.Server<undefined>;
  readonly #next: Behaviour[] = [];
  #always: Behaviour | undefined;
  #arrivals: { count: number; resolve: () => void }[] = [];

  constructor(options: EmbeddingServerOptions) {
    this.#options = options;
    this.#server = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: (request) => this.#answer(request) });
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#server.port}/v1`;
  }

  /** All texts it was asked for, request by request. */
  get batches(): string[][] {
    return this.requests.map(({ body }) => body.input);
  }

  /** How it answers the next requests, in turn, before it answers as ever again. */
  next(...behaviours: Behaviour[]): void {
    this.#next.push(...behaviours);
  }

  /** How it answers from now on. */
  always(behaviour: Behaviour | undefined): void {
    this.#always = behaviour;
  }

  /** Waits until that many requests have come since it was started. */
  async arrived(count: number): Promise<void> {
    if (this.requests.length >= count) return;
    await new Promise<void>((resolve) => this.#arrivals.push({ count, resolve }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const recorded: EmbeddingRequest = {
      path: new URL(request.url).pathname,
      headers: request.headers,
      body: (await request.json()) as EmbeddingRequest["body"],
    };
    this.requests.push(recorded);
    for (const { count, resolve } of this.#arrivals) if (this.requests.length >= count) resolve();
    const behaviour = this.#next.shift() ?? this.#always;
    const usual = () => this.#usual(recorded);
    return behaviour === undefined ? usual() : behaviour(recorded, usual);
  }

  #usual({ path, headers, body }: EmbeddingRequest): Response {
    const { length = 1536, dimensions = "ignore", base64 = "take", apiKey } = this.#options;
    const refuse = (status: number, message: string, param?: string) =>
      Response.json({ error: { message, type: "invalid_request_error", param: param ?? null, code: null } }, { status });
    if (path !== "/v1/embeddings") return refuse(404, `Invalid URL (POST ${path})`);
    const presented = headers.get("authorization");
    if (apiKey !== undefined && presented !== `Bearer ${apiKey}`) return refuse(401, `Incorrect API key provided: ${presented?.slice(7)}.`);
    if (dimensions === "refuse" && body.dimensions !== undefined)
      return refuse(400, `Model "${body.model}" does not support matryoshka representation`);
    if (base64 === "refuse" && body.encoding_format !== undefined)
      return refuse(400, "base64 encoding is not currently supported", "encoding_format");
    if (body.input.includes("")) return refuse(400, "Input cannot be an empty string.", "input");
    const given = dimensions === "take" ? (body.dimensions ?? length) : length;
    const isBase64 = base64 === "take" && body.encoding_format === "base64";
    const data = body.input.map((text, index) => {
      const vector = vectorOf(text, given, this.#options.unrelated ?? 0);
      return { object: "embedding", index, embedding: isBase64 ? new Uint8Array(vector.buffer).toBase64() : Array.from(vector) };
    });
    return Response.json({ object: "list", data, model: body.model, usage: { prompt_tokens: 0, total_tokens: 0 } });
  }
}

/**
 * The built-in vector folded into all places but the last, which is the same for every text: cosines become
 * `unrelated + (1 - unrelated) × cosine`.
 */
function vectorOf(text: string, length: number, unrelated: number): Float32Array<ArrayBuffer> {
  const folded = new Float64Array(length);
  embeddedMemory(text).vector.forEach((value, place) => {
    folded[place % (length - 1)] = folded[place % (length - 1)]! + value;
  });
  const norm = Math.sqrt(folded.reduce((sum, value) => sum + value * value, 0)) || 1;
  const vector = Float32Array.from(folded, (value) => (value / norm) * Math.sqrt(1 - unrelated));
  vector[length - 1] = Math.sqrt(unrelated);
  return vector;
}

export function startEmbeddingServer(options: EmbeddingServerOptions = {}): EmbeddingServer {
  return new EmbeddingServer(options);
}
