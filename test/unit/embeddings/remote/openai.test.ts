import { afterEach, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { DIMENSION } from "../../../../src/embeddings/embedder.ts";
import { memoryTerms, queryTerms } from "../../../../src/embeddings/local/local.ts";
import {
  apiKeyProblem,
  baseUrlProblem,
  openAiEmbedder,
  type OpenAiEmbedder,
  type OpenAiOptions,
} from "../../../../src/embeddings/remote/openai.ts";
import { ProviderError } from "../../../../src/embeddings/remote/provider-error.ts";
import {
  answers,
  type Behaviour,
  changes,
  floods,
  hangs,
  isCutOff,
  refuses,
  startEmbeddingServer,
  when,
  type EmbeddingServer,
} from "../../../support/embedding-server.ts";
import { FakeClock } from "../../../support/clock.ts";

const open: OpenAiEmbedder[] = [];
afterEach(() => {
  for (const embedder of open.splice(0)) embedder.close();
});

function client(server: EmbeddingServer | string, options: Partial<OpenAiOptions> = {}) {
  const clock = new FakeClock();
  const baseUrl = typeof server === "string" ? server : server.baseUrl;
  const embedder = openAiEmbedder({ baseUrl, clock, random: () => 1, resolve: unresolved, ...options });
  open.push(embedder);
  return { embedder, clock };
}

const unresolved = () => Promise.reject(new Error("nothing is looked up"));

/** What went wrong, as far as callers see it. */
async function failure(promise: Promise<unknown>): Promise<{ kind: string; message: string }> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ProviderError)) throw new Error(`no ProviderError but ${String(error)}`);
  return { kind: error.kind, message: error.message };
}

const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

describe("embedding", () => {
  test("a memory has the server's vector at unit length and the terms of the built-in provider", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    const { vector, terms } = await embedder.embedMemory("Caroline sees a doctor for skin.");
    expect(vector.length).toBe(DIMENSION);
    expect(dot(vector, vector)).toBeCloseTo(1, 5);
    expect(terms).toEqual(memoryTerms("Caroline sees a doctor for skin."));
    const query = await embedder.embedQuery("Caroline sees a doctor for skin.");
    expect(query.lexical).toEqual(queryTerms("Caroline sees a doctor for skin."));
    expect(dot(query.vector, vector)).toBeCloseTo(1, 5);
  });

  for (const length of [384, 768, 1024, 1536]) {
    test(`vectors of ${length} numbers keep their cosines, with zeros behind them`, async () => {
      await using server = startEmbeddingServer({ length, unrelated: 0.5 });
      const { embedder } = client(server, { model: "some-model" });
      const [cat, cats, tax] = await embedder.embed(["a cat", "my cat", "income tax"], "memory");
      expect(cat!.subarray(length).every((value) => value === 0)).toBe(true);
      expect(dot(cat!, cat!)).toBeCloseTo(1, 5);
      expect(dot(cat!, cats!)).toBeGreaterThan(dot(cat!, tax!));
      expect(embedder.vectorLength).toBe(length);
    });
  }

  test("a text without a letter, digit or sign is not sent", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    expect((await embedder.embedMemory(" ")).terms.length).toBe(0);
    expect((await embedder.embedQuery("\n")).lexical.size).toBe(0);
    expect(server.requests).toEqual([]);
  });

  test("prefixes go before queries and documents, and the halves of characters are mended", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server, { queryPrefix: "search_query: ", documentPrefix: "search_document: " });
    await embedder.embedQuery("tea");
    await embedder.embedMemory("coffee \ud83d");
    expect(server.batches).toEqual([["search_query: tea"], ["search_document: coffee \ufffd"]]);
  });

  test("a text that is longer than the model reads is cut between two code points", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server, { inputTokensMax: 10 });
    await embedder.embedMemory("tea 👋👋👋👋");
    expect(server.batches).toEqual([["tea 👋👋"]]);
  });
});

describe("a request", () => {
  test("goes to /embeddings under the base URL, with the key, the model and what OpenAI's models take", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(`${server.baseUrl}//`, { apiKey: "sk-test-0123456789abcdef" });
    await embedder.embedMemory("tea");
    const { path, headers, body } = server.requests[0]!;
    expect({ path, authorization: headers.get("authorization"), body }).toEqual({
      path: "/v1/embeddings",
      authorization: "Bearer sk-test-0123456789abcdef",
      body: { model: "text-embedding-3-small", input: ["tea"], dimensions: 1536, encoding_format: "base64" },
    });
  });

  test("carries no key when there is none, and no dimensions for a model that is not known to take them", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server, { model: "nomic-embed-text" });
    await embedder.embedMemory("tea");
    expect(server.requests[0]!.headers.has("authorization")).toBe(false);
    expect(server.requests[0]!.body).toEqual({ model: "nomic-embed-text", input: ["tea"], encoding_format: "base64" });
  });

  test("a server that refuses both options is asked without them, and from then on at once", async () => {
    await using server = startEmbeddingServer({ dimensions: "refuse", base64: "refuse" });
    const { embedder } = client(server);
    await embedder.embedMemory("tea");
    await embedder.embedMemory("coffee");
    const forms = server.requests.map(({ body }) => [body.dimensions, body.encoding_format]);
    expect(forms).toEqual([
      [1536, "base64"],
      [undefined, "base64"],
      [undefined, undefined],
      [undefined, undefined],
    ]);
  });

  const complaints: { of: string; body: unknown }[] = [
    { of: "FastAPI", body: { detail: [{ loc: ["body", "dimensions"], msg: "Extra inputs are not permitted" }] } },
    { of: "vLLM", body: { object: "error", message: "dimensions is currently not supported", code: 400 } },
    { of: "a plain error", body: { error: "unknown field dimensions" } },
  ];
  for (const { of, body } of complaints) {
    test(`a complaint about dimensions is understood as ${of} writes it`, async () => {
      await using server = startEmbeddingServer();
      server.next(answers(JSON.stringify(body), { status: 422 }));
      const { embedder } = client(server);
      await embedder.embedMemory("tea");
      expect(server.requests.map((request) => request.body.dimensions)).toEqual([1536, undefined]);
    });
  }

  test("a text about dimensions that is refused does not change what is asked for later", async () => {
    await using server = startEmbeddingServer();
    server.always(when(({ body }) => body.input.includes("three dimensions"), refuses(400, "bad input: three dimensions")));
    const { embedder } = client(server);
    expect(await failure(embedder.embedMemory("three dimensions"))).toEqual({
      kind: "rejected",
      message: "The embedding provider answered 400 (invalid_request_error)",
    });
    await embedder.embedMemory("tea");
    expect(server.requests.at(-1)!.body.dimensions).toBe(1536);
  });

  test("a model whose vectors are too long is asked for shorter ones", async () => {
    await using server = startEmbeddingServer({ length: 3072, dimensions: "take" });
    const { embedder } = client(server, { model: "gemini-embedding-001" });
    await embedder.embedMemory("tea");
    await embedder.embedMemory("coffee");
    expect(server.requests.map(({ body }) => body.dimensions)).toEqual([undefined, 1536, 1536]);
    expect(embedder.vectorLength).toBe(1536);
  });
});

describe("an answer that cannot be used", () => {
  for (const dimensions of ["ignore", "refuse"] as const) {
    test(`vectors of 3072 numbers are refused by a message with both lengths, if shorter ones are ${dimensions}d`, async () => {
      await using server = startEmbeddingServer({ length: 3072, dimensions });
      const { embedder } = client(server, { model: "some-model" });
      expect(await failure(embedder.embedMemory("tea"))).toEqual({
        kind: "bad_answer",
        message:
          "The embedding provider's answer has vectors of 3072 numbers; at most 1536 can be stored. Choose a model with shorter ones",
      });
      expect(embedder.isDown).toBe(true);
    });
  }

  test("vectors of another length than before are refused by a message with both lengths", async () => {
    await using server = startEmbeddingServer({ length: 1024 });
    const { embedder } = client(server, { vectorLength: 768 });
    expect(await failure(embedder.embedMemory("tea"))).toEqual({
      kind: "bad_answer",
      message: "The embedding provider's answer has vectors of 1024 numbers, and before they had 768. Is it another model?",
    });
  });

  test("vectors of different lengths in one answer are refused", async () => {
    await using server = startEmbeddingServer();
    server.next(answers('{"data":[{"embedding":[1,2,3]},{"embedding":[1,2]}]}'));
    const { embedder } = client(server);
    expect(await failure(embedder.embed(["tea", "coffee"], "memory"))).toEqual({
      kind: "bad_answer",
      message: "The embedding provider's answer has vectors of 2 numbers, and before they had 3. Is it another model?",
    });
  });

  const data = (change: (items: Record<string, unknown>[]) => unknown): Behaviour =>
    changes((answer) => ({ ...answer, data: change(answer.data) }));
  const wrong: { name: string; behaviour: Behaviour; message: string }[] = [
    { name: "too few", behaviour: data(([first]) => [first]), message: "has 1 embeddings for 2 texts" },
    { name: "too many", behaviour: data((items) => [...items, items[0]]), message: "has 3 embeddings for 2 texts" },
    {
      name: "an index twice",
      behaviour: data((items) => items.map((item) => ({ ...item, index: 1 }))),
      message: "numbers its 2 embeddings wrongly (index 1)",
    },
    {
      name: "an index that is out of range",
      behaviour: data((items) => items.map((item, i) => ({ ...item, index: i + 1 }))),
      message: "numbers its 2 embeddings wrongly (index 2)",
    },
    {
      name: "an index on one alone",
      behaviour: data(([first, second]) => [first, { embedding: second!["embedding"] }]),
      message: "numbers its 2 embeddings wrongly (index missing)",
    },
    { name: "no list", behaviour: answers('{"object":"list"}'), message: "is not a list of embeddings" },
    { name: "more than can be read", behaviour: floods, message: "is longer than 32 MiB" },
    {
      name: "a redirection",
      behaviour: answers("", { status: 307, headers: { location: "https://example.com/" } }),
      message: "is a redirection (307), which is not followed: the key would go elsewhere. Set the final base URL",
    },
  ];
  for (const { name, behaviour, message } of wrong) {
    test(name, async () => {
      await using server = startEmbeddingServer();
      server.next(behaviour);
      const { embedder } = client(server);
      expect(await failure(embedder.embed(["tea", "coffee"], "memory"))).toEqual({
        kind: "bad_answer",
        message: `The embedding provider's answer ${message}`,
      });
      expect({ requests: server.requests.length, isDown: embedder.isDown }).toEqual({ requests: 1, isDown: true });
    });
  }

  test("embeddings in another order are put right by their index, and without any index stand as they come", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    const texts = ["tea", "income tax", "a cat"];
    const usual = await embedder.embed(texts, "memory");
    server.next(data((items) => items.toReversed()));
    expect(await embedder.embed(texts, "memory")).toEqual(usual);
    server.next(data((items) => items.map(({ embedding }) => ({ embedding }))));
    expect(await embedder.embed(texts, "memory")).toEqual(usual);
  });

  const floats = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer).toBase64();
  const bad: { name: string; embedding: unknown; message: string }[] = [
    { name: "NaN", embedding: floats(Number.NaN, ...Array<number>(1535).fill(1)), message: "holds a number that is not finite" },
    { name: "infinity", embedding: [1e308, 1e308, ...Array<number>(1534).fill(0)], message: "holds a number that is not finite" },
    { name: "zeros", embedding: Array(1536).fill(0), message: "is all zeros" },
    { name: "null among numbers", embedding: [null, ...Array<number>(1535).fill(1)], message: "holds something that is no number" },
    { name: "half a number", embedding: floats(1, 2).slice(0, 8), message: "is not base64 of 4-byte numbers" },
    { name: "no base64", embedding: "****", message: "is not base64 of 4-byte numbers" },
    { name: "nothing", embedding: null, message: "is missing" },
  ];
  for (const { name, embedding, message } of bad) {
    test(`a vector of ${name} fails its own text only`, async () => {
      await using server = startEmbeddingServer();
      server.always((request, usual) =>
        data((items) => items.map((item, i) => (request.body.input[i] === "coffee" ? { ...item, embedding } : item)))(request, usual),
      );
      const { embedder } = client(server);
      const [tea, coffee] = await Promise.all([
        embedder.embedMemory("tea").then(({ vector }) => vector.length),
        failure(embedder.embedMemory("coffee")),
      ]);
      expect(tea).toBe(1536);
      const expected = { kind: "bad_answer", message: `The embedding provider's answer cannot be used: an embedding ${message}` };
      expect(coffee).toEqual(expected);
      expect(await failure(embedder.embedMemory("coffee"))).toEqual(expected);
      expect(embedder.isDown).toBe(false);
    });
  }
});

describe("batches", () => {
  test("calls of one moment travel together, 96 at most, queries and documents apart", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    const memories = Array.from({ length: 200 }, (_, i) => embedder.embedMemory(`memory ${i}`));
    const queries = Array.from({ length: 3 }, (_, i) => embedder.embedQuery(`query ${i}`));
    await Promise.all([...memories, ...queries]);
    expect(server.batches.map((batch) => batch.length).sort((a, b) => a - b)).toEqual([3, 8, 96, 96]);
  });

  test("a request holds no more tokens than a server takes", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    // 5,000 characters of three bytes each are taken for 7,500 tokens; 20 of them are 150,000.
    await embedder.embed(
      Array.from({ length: 50 }, () => "茶".repeat(5000)),
      "memory",
    );
    expect(server.batches.map((batch) => batch.length).sort((a, b) => a - b)).toEqual([10, 20, 20]);
  });

  test("four requests are under way at most, three with documents, so that a query goes at once", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    const held = Promise.withResolvers<void>();
    const holds: Behaviour = async (_request, usual) => held.promise.then(usual);
    server.always(when(({ body }) => body.input[0]!.startsWith("memory"), holds));
    const memories = embedder.embed(
      Array.from({ length: 900 }, (_, i) => `memory ${i}`),
      "memory",
    );
    await server.arrived(3);
    await embedder.embedQuery("tea");
    expect(server.batches.map((batch) => batch[0])).toEqual(["memory 0", "memory 96", "memory 192", "tea"]);
    held.resolve();
    expect((await memories).length).toBe(900);
    expect(server.underWayMax).toBeLessThanOrEqual(4);
  });

  test("what does not fit into the queue fails at once, and the rest is embedded", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    // Three requests leave at once; a thousand may wait.
    const calls = Array.from({ length: 3 * 96 + 1001 }, (_, i) => embedder.embedMemory(`memory ${i}`));
    expect(await failure(calls.at(-1)!)).toEqual({
      kind: "rate_limited",
      message: "Too many texts are waiting for the embedding provider.",
    });
    expect((await Promise.all(calls.slice(0, -1))).length).toBe(3 * 96 + 1000);
    expect(embedder.isDown).toBe(false);
  });

  for (const status of [400, 413, 422, 500]) {
    test(`a text refused with ${status} fails alone`, async () => {
      await using server = startEmbeddingServer();
      server.always(when(({ body }) => body.input.includes("memory 5"), refuses(status, "I do not like this")));
      const { embedder } = client(server);
      const outcomes = await Promise.all(
        Array.from({ length: 9 }, (_, i) =>
          embedder.embedMemory(`memory ${i}`).then(
            () => "embedded",
            (error: ProviderError) => error.message,
          ),
        ),
      );
      const expected = Array(9).fill("embedded");
      expected[5] = `The embedding provider answered ${status} (invalid_request_error)`;
      expect(outcomes).toEqual(expected);
      expect(embedder.isDown).toBe(false);
    });
  }

  test("a text that makes the server fail is tried three times in all, and not again by itself", async () => {
    await using server = startEmbeddingServer();
    server.always(when(({ body }) => body.input.includes("bad"), refuses(500, "NaN")));
    const { embedder } = client(server);
    const outcomes = await Promise.allSettled([embedder.embedMemory("good"), embedder.embedMemory("bad")]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    const both = ["good", "bad"];
    expect(server.batches).toEqual([both, both, both, ["The quick brown fox jumps over the lazy dog."], ["good"], ["bad"]]);
  });

  test("a server that takes fewer texts at once gets fewer from then on", async () => {
    await using server = startEmbeddingServer({ textsMax: 32 });
    const { embedder } = client(server);
    const texts = Array.from({ length: 96 }, (_, i) => `memory ${i}`);
    await embedder.embed(texts, "memory");
    const before = server.requests.length;
    await embedder.embed(texts, "memory");
    expect(server.batches.slice(before).map((batch) => batch.length)).toEqual([24, 24, 24, 24]);
  });

  test("a text that is too long for the model is halved until it is taken", async () => {
    await using server = startEmbeddingServer({ textLengthMax: 512 });
    const { embedder } = client(server);
    await embedder.embed(["tea", "x".repeat(4000)], "memory");
    expect(server.batches.slice(-3)).toEqual([["x".repeat(2000)], ["x".repeat(1000)], ["x".repeat(500)]]);
    expect(embedder.isDown).toBe(false);
  });

  test("later texts as long as one that was refused for its length are cut before they are sent, shorter ones are not", async () => {
    await using server = startEmbeddingServer({ textLengthMax: 512 });
    const { embedder } = client(server);
    await embedder.embedMemory("x".repeat(4000));
    const before = server.requests.length;
    await embedder.embed(["y".repeat(1000), "z".repeat(500)], "memory");
    expect(server.batches.slice(before)).toEqual([["y".repeat(500), "z".repeat(500)]]);
  });

  test("a short text is not cut, whatever the server says of its length", async () => {
    await using server = startEmbeddingServer();
    server.always(when(({ body }) => body.input.includes("tea"), refuses(400, "the input exceeds the context length")));
    const { embedder } = client(server);
    expect((await failure(embedder.embedMemory("tea"))).kind).toBe("rejected");
    await embedder.embedMemory("coffee");
    expect(server.batches).toEqual([["tea"], ["The quick brown fox jumps over the lazy dog."], ["coffee"]]);
  });

  test("a 500 that passes does not make later requests smaller for good", async () => {
    await using server = startEmbeddingServer();
    server.next(...Array.from({ length: 3 }, () => refuses(500, "out of memory")));
    const { embedder } = client(server);
    const texts = Array.from({ length: 96 }, (_, i) => `memory ${i}`);
    await embedder.embed(texts, "memory");
    const before = server.requests.length;
    for (let i = 0; i < 14; i++) await embedder.embed(texts, "memory");
    const sizes = server.batches.slice(before).map((batch) => batch.length);
    expect([sizes[0], sizes.at(-1)]).toEqual([48, 96]);
  });
});

describe("queries", () => {
  test("are cached, those asked last within 3 MiB, however long they are", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    const asked = async (text: string) => {
      const before = server.requests.length;
      await embedder.embedQuery(text);
      return server.requests.length > before;
    };
    const ask = (from: number, count: number, filler = "") =>
      Promise.all(Array.from({ length: count }, (_, i) => embedder.embedQuery(`query ${from + i} ${filler}`)));
    expect([await asked("tea"), await asked("tea")]).toEqual([true, false]);
    await ask(0, 190);
    expect(await asked("tea")).toBe(false);
    await ask(1_000, 300);
    await ask(2_000, 300);
    expect(await asked("tea")).toBe(true);
    // 20 KB each in memory: far fewer of them take as much.
    await ask(3_000, 130, "—".repeat(9_900));
    expect(await asked("tea")).toBe(true);
  });

  test("asked twice at the same time are sent once; one that failed is sent again", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    await Promise.all([embedder.embedQuery("tea"), embedder.embedQuery("tea")]);
    expect(server.batches).toEqual([["tea"]]);
    server.next(refuses(404, "no such model"));
    await failure(embedder.embedQuery("coffee"));
    await embedder.probe();
    await embedder.embedQuery("coffee");
    expect(server.batches.slice(1)).toEqual([["coffee"], ["The quick brown fox jumps over the lazy dog."], ["coffee"]]);
  });
});

describe("trouble that passes", () => {
  for (const status of [408, 429, 500, 502, 503, 504]) {
    test(`${status} is tried again, after a longer pause each time`, async () => {
      await using server = startEmbeddingServer();
      server.next(refuses(status, "busy"), refuses(status, "busy"));
      const { embedder, clock } = client(server);
      await embedder.embedMemory("tea");
      expect(clock.pauses).toEqual([500, 1000]);
    });
  }

  test("chance shortens a pause by up to a half", async () => {
    await using server = startEmbeddingServer();
    server.next(refuses(503, "busy"), refuses(503, "busy"), refuses(503, "busy"));
    const { embedder, clock } = client(server, { random: () => 0 });
    await embedder.embedMemory("tea");
    expect(clock.pauses).toEqual([250, 500, 1000]);
  });

  test("after five attempts the last answer stands", async () => {
    await using server = startEmbeddingServer();
    server.always(refuses(503, "busy"));
    const { embedder, clock } = client(server);
    expect(await failure(embedder.embedMemory("tea"))).toEqual({
      kind: "unreachable",
      message: "The embedding provider answered 503 (invalid_request_error)",
    });
    expect(clock.pauses).toEqual([500, 1000, 2000, 4000]);
    expect(server.requests.length).toBe(5);
  });

  for (const [name, header] of [
    ["seconds", "7"],
    ["an HTTP date", "Thu, 07 May 2026 08:00:07 GMT"],
  ] as const) {
    test(`Retry-After in ${name} is kept to`, async () => {
      await using server = startEmbeddingServer();
      server.next(refuses(429, "slow down", { headers: { "retry-after": header } }));
      const { embedder, clock } = client(server);
      await embedder.embedMemory("tea");
      expect(clock.pauses.map((ms) => Math.round(ms / 100))).toEqual([70]);
    });
  }

  test("a Retry-After beyond the deadline fails the call and says when to look again", async () => {
    await using server = startEmbeddingServer();
    server.next(refuses(429, "slow down", { headers: { "retry-after": "120" } }));
    const { embedder, clock } = client(server);
    expect(await failure(embedder.embedMemory("tea"))).toEqual({
      kind: "rate_limited",
      message: "The embedding provider answered 429 (invalid_request_error)",
    });
    expect({ requests: server.requests.length, retryAtMs: embedder.retryAtMs }).toEqual({
      requests: 1,
      retryAtMs: clock.elapsed() + 120_000,
    });
  });

  test("an answer that is cut off is fetched again", async () => {
    await using server = startEmbeddingServer();
    server.next(isCutOff);
    const { embedder } = client(server);
    await embedder.embedMemory("tea");
    expect(server.requests.length).toBe(2);
  });

  test("a connection that ends in the middle of an answer is unreachable", async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.once("data", () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"data":['));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const { embedder } = client(`http://127.0.0.1:${port}/v1`);
    expect(await failure(embedder.embedMemory("tea"))).toEqual({
      kind: "unreachable",
      message: `The embedding provider at 127.0.0.1:${port} cannot be reached: ECONNRESET`,
    });
    expect(connections).toBe(5);
    server.close();
  });

  test("nobody listening is unreachable", async () => {
    const server = startEmbeddingServer();
    const { baseUrl } = server;
    await server[Symbol.asyncDispose]();
    const { embedder } = client(baseUrl);
    expect(await failure(embedder.embedQuery("tea"))).toEqual({
      kind: "unreachable",
      message: `The embedding provider at ${new URL(baseUrl).host} cannot be reached: ECONNREFUSED`,
    });
  });

  test("a query ends 10 s after it was asked, whatever the server does", async () => {
    await using server = startEmbeddingServer();
    server.always(hangs);
    const { embedder, clock } = client(server);
    const failed = failure(embedder.embedQuery("tea"));
    await server.arrived(1);
    clock.advance({ ms: 9_900 });
    expect(await Promise.race([failed, Promise.resolve("waiting")])).toBe("waiting");
    clock.advance({ ms: 100 });
    expect(await failed).toEqual({ kind: "timeout", message: "The embedding provider did not answer within 10 s" });
    expect(server.requests.length).toBe(1);
  });

  test("a memory's request is given up after 20 s and made again, until 30 s are over", async () => {
    await using server = startEmbeddingServer();
    server.always(hangs);
    const { embedder, clock } = client(server);
    const failed = failure(embedder.embedMemory("tea"));
    await server.arrived(1);
    clock.advance({ ms: 20_000 });
    await server.arrived(2);
    clock.advance({ ms: 9_400 });
    expect(await Promise.race([failed, Promise.resolve("waiting")])).toBe("waiting");
    clock.advance({ ms: 100 });
    expect(await failed).toEqual({ kind: "timeout", message: "The embedding provider did not answer within 30 s" });
    expect(clock.pauses).toEqual([500]);
  });

  test("a server that was too slow gets half as many texts, and more again as it keeps up", async () => {
    await using server = startEmbeddingServer();
    const { embedder, clock } = client(server);
    const texts = Array.from({ length: 96 }, (_, i) => `memory ${i}`);
    server.next(hangs);
    const failed = failure(embedder.embed(texts, "memory"));
    await server.arrived(1);
    clock.advance({ ms: 30_000 });
    await failed;
    await embedder.probe();
    await embedder.embed(texts.slice(0, 48), "memory");
    await embedder.embed(texts.slice(0, 52), "memory");
    expect(server.batches.map((batch) => batch.length)).toEqual([96, 1, 48, 52]);
  });
});

describe("trouble that stays", () => {
  const cases: { status: number; message: string; code?: string; kind: string }[] = [
    { status: 401, message: "Incorrect API key provided", kind: "unauthorized" },
    { status: 403, message: "Country not supported", kind: "unauthorized" },
    { status: 404, message: "model not found", kind: "rejected" },
    { status: 429, message: "You exceeded your current quota", code: "insufficient_quota", kind: "rate_limited" },
  ];
  for (const { status, message, code, kind } of cases) {
    test(`${status} ${code ?? ""} is not tried again`, async () => {
      await using server = startEmbeddingServer();
      server.always(refuses(status, message, code === undefined ? {} : { code }));
      const { embedder } = client(server);
      expect(await failure(embedder.embedMemory("tea"))).toEqual({
        kind,
        message: `The embedding provider answered ${status} (${code ?? "invalid_request_error"})`,
      });
      expect({ requests: server.requests.length, isDown: embedder.isDown }).toEqual({ requests: 1, isDown: true });
    });
  }

  test("a 400 that a plain text gets as well is no text's fault: all fail after one more request", async () => {
    await using server = startEmbeddingServer();
    server.always(refuses(400, "invalid model"));
    const { embedder } = client(server);
    const failed = await Promise.all([failure(embedder.embedMemory("tea")), failure(embedder.embedMemory("coffee"))]);
    const expected = { kind: "rejected", message: "The embedding provider answered 400: invalid model" };
    expect(failed).toEqual([expected, expected]);
    expect({ requests: server.requests.length, isDown: embedder.isDown }).toEqual({ requests: 2, isDown: true });
  });

  const KEY = "sk-proj-Zm9vYmFyYmF6cXV4cXV1eA_0123";
  const echoes: { name: string; said: string; shown: string }[] = [
    { name: "whole", said: `bad key ${KEY}.`, shown: "bad key [key]" },
    { name: "with stars", said: "bad key sk-proj-********0123 given", shown: "bad key [key] given" },
    { name: "with stars in front", said: "bad key ****0123 given", shown: "bad key [key] given" },
    { name: "its beginning", said: `bad key ${KEY.slice(0, 20)}... given`, shown: "bad key [key] given" },
    { name: "across the place where the message is cut", said: `${"x".repeat(190)} ${KEY}`, shown: `${"x".repeat(190)} [key]` },
  ];
  for (const { name, said, shown } of echoes) {
    test(`a key that the server repeats is not shown: ${name}`, async () => {
      await using server = startEmbeddingServer();
      server.always(refuses(401, said));
      const { embedder } = client(server, { apiKey: KEY });
      const { message } = await failure(embedder.probe());
      expect(message.replace(/\.$/, "")).toBe(`The embedding provider answered 401: ${shown}`);
    });
  }

  test("what the server says is shortened to a line, and a page of HTML left out", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    server.next(answers(`a\n\0b ${"x".repeat(5000)}`, { status: 404 }));
    expect((await failure(embedder.probe())).message).toBe(`The embedding provider answered 404: a b ${"x".repeat(196)}…`);
    server.next(answers("<html><h1>Not found</h1></html>", { status: 404 }));
    expect((await failure(embedder.probe())).message).toBe("The embedding provider answered 404");
  });
});

describe("what a server says of a text is not repeated, since it may quote it", () => {
  const quoting = (status: number, error: (input: string) => unknown): Behaviour => {
    return ({ body }) => Response.json(error(body.input.join()), { status });
  };
  const cases: { name: string; behaviour: Behaviour; shown: string }[] = [
    {
      name: "OpenAI's form",
      behaviour: quoting(404, (input) => ({ error: { message: input, code: "gone", type: "x" } })),
      shown: " (gone)",
    },
    {
      name: "a code that is none",
      behaviour: quoting(404, (input) => ({ error: { code: input, type: "api_error" } })),
      shown: " (api_error)",
    },
    { name: "a type that is none", behaviour: quoting(429, (input) => ({ type: input, message: input })), shown: "" },
    { name: "FastAPI's form", behaviour: quoting(404, (input) => ({ detail: [{ loc: [input], msg: input, input }] })), shown: "" },
    { name: "a number for a code", behaviour: quoting(501, (input) => ({ message: input, code: 501 })), shown: "" },
    { name: "a text", behaviour: quoting(401, (input) => input), shown: "" },
  ];
  for (const { name, behaviour, shown } of cases) {
    test(name, async () => {
      await using server = startEmbeddingServer();
      server.always(behaviour);
      const { embedder } = client(server, { queryPrefix: "search: " });
      const { message } = await failure(embedder.embedQuery("a private thing"));
      expect(message.replace(/answered \d+/, "answered")).toBe(`The embedding provider answered${shown}`);
      expect(await failure(embedder.embedMemory("tea"))).toMatchObject({ message });
    });
  }

  test("what it says of our own plain text is", async () => {
    await using server = startEmbeddingServer();
    server.always(quoting(400, (input) => ({ error: { message: `No model for ${input}` } })));
    const { embedder } = client(server);
    expect((await failure(embedder.embedQuery("a private thing"))).message).toBe(
      "The embedding provider answered 400: No model for The quick brown fox jumps over the lazy dog.",
    );
  });
});

describe("a server that is down", () => {
  test("is not asked again until a probe finds it well, and what waits fails with the reason", async () => {
    await using server = startEmbeddingServer({ apiKey: "right" });
    const { embedder, clock } = client(server, { apiKey: "wrong" });
    const reason = { kind: "unauthorized", message: "The embedding provider answered 401 (invalid_request_error)" };
    expect(await failure(embedder.embedMemory("tea"))).toEqual(reason);
    expect(await failure(embedder.embedQuery("tea"))).toEqual(reason);
    expect(server.requests.length).toBe(1);
    expect({ isDown: embedder.isDown, message: embedder.lastError?.message, retryAtMs: embedder.retryAtMs }).toEqual({
      isDown: true,
      message: reason.message,
      retryAtMs: clock.elapsed() + 5_000,
    });
    const words = { kind: "unauthorized", message: "The embedding provider answered 401: Incorrect API key provided: [key]." };
    expect(await failure(embedder.probe())).toEqual(words);
    expect(await failure(embedder.embedQuery("tea"))).toEqual(words);
    expect(embedder.retryAtMs).toBe(clock.elapsed() + 10_000);
    server.next((_request, usual) => (usual(), Response.json({ data: [{ index: 0, embedding: [1, 2, 3] }] })));
    await embedder.probe();
    expect(embedder.vectorLength).toBe(3);
    expect({ isDown: embedder.isDown, lastError: embedder.lastError, retryAtMs: embedder.retryAtMs }).toEqual({
      isDown: false,
      lastError: undefined,
      retryAtMs: undefined,
    });
  });

  test("is looked at every five minutes at the latest", async () => {
    await using server = startEmbeddingServer();
    server.always(refuses(404, "gone"));
    const { embedder, clock } = client(server);
    const waits: number[] = [];
    for (let i = 0; i < 9; i++) {
      await failure(embedder.probe());
      waits.push((embedder.retryAtMs! - clock.elapsed()) / 1000);
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300]);
    server.always(undefined);
    await embedder.probe();
    await embedder.embedMemory("tea");
    server.next(refuses(404, "gone"));
    await failure(embedder.embedMemory("coffee"));
    expect((embedder.retryAtMs! - clock.elapsed()) / 1000).toBe(5);
  });

  test("still answers for the queries it has embedded", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    const { vector } = await embedder.embedQuery("tea");
    server.next(refuses(404, "gone"));
    await failure(embedder.embedMemory("coffee"));
    expect((await embedder.embedQuery("tea")).vector).toBe(vector);
  });

  test("fails those that waited behind the request that failed", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    const held = Promise.withResolvers<void>();
    server.always(async (request, usual) => {
      await held.promise;
      return refuses(404, "gone")(request, usual);
    });
    const calls = Array.from({ length: 500 }, (_, i) => failure(embedder.embedMemory(`memory ${i}`)));
    await server.arrived(3);
    held.resolve();
    const kinds = (await Promise.all(calls)).map(({ kind }) => kind);
    expect(kinds).toEqual(Array(500).fill("rejected"));
    expect(server.requests.length).toBe(3);
  });
});

test("closing ends what is under way, what waits and what comes later", async () => {
  await using server = startEmbeddingServer();
  server.always(hangs);
  const { embedder } = client(server);
  const calls = Array.from({ length: 500 }, (_, i) => failure(embedder.embedMemory(`memory ${i}`)));
  await server.arrived(3);
  embedder.close();
  const expected = { kind: "unreachable", message: "The embedding provider is no longer used" };
  expect(await Promise.all(calls)).toEqual(Array.from({ length: 500 }, () => expected));
  expect(await failure(embedder.embedQuery("tea"))).toEqual(expected);
  expect(await failure(embedder.probe())).toEqual(expected);
});

describe("the metadata service of a cloud", () => {
  const apiKey = "sk-test-0123456789abcdef";
  const refused = (host: string, address: string) => ({
    kind: "forbidden",
    message: `The embedding provider at ${host} is not asked: ${address} is a cloud's metadata service`,
  });

  for (const [url, address] of [
    ["http://169.254.169.254/v1", "169.254.169.254"],
    ["http://2852039166/v1", "169.254.169.254"],
    ["https://[fd00:ec2::254]:8080/v1", "fd00:ec2::254"],
    ["http://[::ffff:169.254.169.254]/v1", "::ffff:a9fe:a9fe"],
  ] as const) {
    test(`${url} is never asked`, async () => {
      const { embedder } = client(url, { apiKey });
      expect(await failure(embedder.probe())).toEqual(refused(new URL(url).host, address));
      expect(embedder.isDown).toBe(true);
    });
  }

  test("is not asked under a name either, whatever that stood for before, and gets no key", async () => {
    await using server = startEmbeddingServer();
    const { port } = new URL(server.baseUrl);
    const answers = [["127.0.0.1"], ["127.0.0.1", "169.254.169.254"], ["10.0.0.1", "fd00:ec2::254"]];
    const resolve = () => Promise.resolve(answers.shift() ?? []);
    const { embedder } = client(`http://localhost:${port}/v1`, { apiKey, resolve });
    await embedder.embedMemory("tea");
    expect(await failure(embedder.embedMemory("coffee"))).toEqual(refused(`localhost:${port}`, "169.254.169.254"));
    expect(await failure(embedder.probe())).toEqual(refused(`localhost:${port}`, "fd00:ec2::254"));
    expect(server.batches).toEqual([["tea"]]);
  });

  test("a look-up that never ends, ends with the request", async () => {
    const { embedder, clock } = client("http://models.example/v1", { resolve: () => new Promise(() => undefined) });
    const failed = failure(embedder.embedQuery("tea"));
    await Bun.sleep(0);
    clock.advance({ ms: 10_000 });
    expect(await failed).toEqual({ kind: "timeout", message: "The embedding provider did not answer within 10 s" });
  });
});

describe("a connection", () => {
  const apiKey = "sk-test-0123456789abcdef";
  const named = (server: EmbeddingServer) => server.baseUrl.replace("127.0.0.1", "models.example");

  test("goes to the address that was checked, which is looked up once for each request", async () => {
    await using server = startEmbeddingServer();
    const asked: string[] = [];
    // The second answer must never be asked for while the first request is made.
    const found = [["127.0.0.1"], ["169.254.169.254"]];
    const resolve = (name: string) => {
      asked.push(name);
      return Promise.resolve(found[asked.length - 1] ?? []);
    };
    const { embedder } = client(named(server), { apiKey, resolve });
    await embedder.embedMemory("tea");
    expect({ asked, hosts: server.requests.map(({ headers }) => headers.get("host")) }).toEqual({
      asked: ["models.example"],
      hosts: [new URL(named(server)).host],
    });
    expect(await failure(embedder.embedMemory("coffee"))).toMatchObject({ kind: "forbidden" });
    expect([asked.length, server.requests.length]).toEqual([2, 1]);
  });

  test("goes to the next address where nobody listens at the first, IPv4 before IPv6", async () => {
    await using server = startEmbeddingServer();
    const { embedder, clock } = client(named(server), { resolve: () => Promise.resolve(["::1", "127.0.0.9", "127.0.0.1"]) });
    await embedder.embedMemory("tea");
    expect([server.batches, clock.pauses]).toEqual([[["tea"]], []]);
  });

  test("to a name that is not found, or has no address, is unreachable", async () => {
    const notFound = () => Promise.reject(Object.assign(new Error("getaddrinfo"), { code: "ENOTFOUND" }));
    for (const resolve of [notFound, () => Promise.resolve([])]) {
      const { embedder } = client("http://models.example/v1", { resolve });
      expect(await failure(embedder.probe())).toEqual({
        kind: "unreachable",
        message: "The embedding provider at models.example cannot be reached: ENOTFOUND",
      });
    }
  });

  test("over TLS needs a certificate that is trusted", async () => {
    const file = (name: string) => Bun.file(`${import.meta.dir}/../../../support/tls/${name}`).text();
    const tls = { cert: await file("certificate.pem"), key: await file("key.pem") };
    let requests = 0;
    using server = Bun.serve({ port: 0, hostname: "127.0.0.1", tls, fetch: () => (requests++, new Response("{}")) });
    for (const host of ["127.0.0.1", "models.example"]) {
      const { embedder } = client(`https://${host}:${server.port}/v1`, { apiKey, resolve: () => Promise.resolve(["127.0.0.1"]) });
      const { kind, message } = await failure(embedder.probe());
      expect([kind, message]).toEqual(["unreachable", expect.stringMatching(/cannot be reached: .*(CERT|SELF_SIGNED)/)]);
    }
    expect(requests).toBe(0);
  });

  test("is used again, and made again at once where the server has closed it meanwhile", async () => {
    const usual = JSON.stringify({ data: [{ index: 0, embedding: [1, 0] }] });
    const answer = `HTTP/1.1 200 OK\r\ncontent-length: ${usual.length}\r\n\r\n${usual}`;
    const requests: number[] = [];
    // A request is one piece here; the first connection is closed by its third.
    const server = createServer((socket) => {
      const connection = requests.push(0) - 1;
      socket.on("error", () => undefined);
      let received = "";
      socket.on("data", (chunk) => {
        received += String(chunk);
        if (!/\r\n\r\n.+\}$/s.test(received)) return;
        received = "";
        const count = (requests[connection] ?? 0) + 1;
        requests[connection] = count;
        if (connection === 0 && count === 3) socket.destroy();
        else socket.write(answer);
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const { embedder, clock } = client(`http://127.0.0.1:${port}/v1`, { model: "m" });
    for (const text of ["tea", "coffee", "water"]) await embedder.embedMemory(text);
    expect([requests, clock.pauses]).toEqual([[3, 1], []]);
    embedder.close();
    server.close();
  });
});

describe("a base URL", () => {
  const cases: [url: string, problem: string | undefined][] = [
    ["https://api.openai.com/v1", undefined],
    ["http://localhost:11434/v1/", undefined],
    ["https://example.com/openai/v1?api-version=preview", undefined],
    ["localhost:11434", "It begins with neither http:// nor https://."],
    ["file:///etc/passwd", "It begins with neither http:// nor https://."],
    ["example.com/v1", "It is not a URL."],
    ["https://user:secret@example.com/v1", "It holds a user name or password; give the key on its own."],
    ["https://example.com/v1#x", "It holds a fragment (#…)."],
  ];
  for (const [url, problem] of cases) {
    test(`${url} ${problem === undefined ? "is taken" : "is refused"}`, () => {
      expect(baseUrlProblem(url)).toBe(problem);
    });
  }
});

test("a key that cannot be in a header is refused without being named", () => {
  for (const apiKey of ["", "two words", "line\nbreak", "schlüssel", "x".repeat(1025)]) {
    expect(apiKeyProblem(apiKey)).toBe("An API key is 1 to 1,024 printable ASCII characters without spaces.");
    expect(() => client("http://localhost/v1", { apiKey })).toThrow("The embedding provider cannot be used. An API key is 1 to 1,024");
  }
});
