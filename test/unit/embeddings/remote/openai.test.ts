import { afterEach, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { embeddedQuery } from "../../../support/meaning.ts";
import { memoryTerms } from "../../../../src/embeddings/words/terms.ts";
import { apiKeyProblem, baseUrlProblem, type EmbeddingSettings } from "../../../../src/embeddings/provider-settings.ts";
import { OpenAiEmbedder, type OpenAiDeps } from "../../../../src/embeddings/remote/openai.ts";
import { ProviderError } from "../../../../src/embeddings/remote/provider-error.ts";
import {
  answers,
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

interface Options extends EmbeddingSettings {
  vectorLength?: number;
  resolve?: OpenAiDeps["resolve"];
}

function client(server: EmbeddingServer | string, { vectorLength, resolve = unresolved, ...settings }: Options = {}) {
  const clock = new FakeClock();
  const base_url = typeof server === "string" ? server : server.baseUrl;
  const embedder = new OpenAiEmbedder({ base_url, ...settings }, vectorLength, { clock, random: () => 1, resolve });
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
    expect(vector.length).toBe(1536);
    expect(dot(vector, vector)).toBeCloseTo(1, 5);
    expect(terms).toEqual(memoryTerms("Caroline sees a doctor for skin."));
    const query = await embedder.embedQuery("Caroline sees a doctor for skin.");
    expect(query.lexical).toEqual(embeddedQuery("Caroline sees a doctor for skin.").lexical);
    expect(dot(query.vector, vector)).toBeCloseTo(1, 5);
  });

  for (const length of [384, 1536]) {
    test(`vectors of ${length} numbers keep their length and their cosines`, async () => {
      await using server = startEmbeddingServer({ length, unrelated: 0.5 });
      const { embedder } = client(server, { model: "some-model" });
      const [cat, cats, tax] = await embedder.embed(["a cat", "my cat", "income tax"], "memory");
      expect(cat!.length).toBe(length);
      expect(dot(cat!, cat!)).toBeCloseTo(1, 5);
      expect(dot(cat!, cats!)).toBeGreaterThan(dot(cat!, tax!));
      expect(embedder.vectorLength).toBe(length);
    });
  }

  test("a text without a letter, digit or sign is not sent", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server);
    expect((await embedder.embedMemory(" ")).terms.length).toBe(0);
    expect((await embedder.embedQuery("\n")).lexical.ids.length).toBe(0);
    expect(server.requests).toEqual([]);
  });

  test("prefixes go before queries and documents, and the halves of characters are repaired", async () => {
    await using server = startEmbeddingServer();
    const { embedder } = client(server, { query_prefix: "search_query: ", document_prefix: "search_document: " });
    await embedder.embedQuery("tea");
    await embedder.embedMemory("coffee \ud83d");
    expect(server.batches).toEqual([["search_query: tea"], ["search_document: coffee \ufffd"]]);
  });
});

describe("a request", () => {
  test("goes to /embeddings under the base URL, with the key if there is one and what the model is known to take", async () => {
    await using server = startEmbeddingServer();
    await client(`${server.baseUrl}//`, { api_key: "sk-test-0123456789abcdef" }).embedder.embedMemory("tea");
    await client(server, { model: "nomic-embed-text" }).embedder.embedMemory("tea");
    expect(server.requests.map(({ path, headers, body }) => [path, headers.get("authorization"), body])).toEqual([
      [
        "/v1/embeddings",
        "Bearer sk-test-0123456789abcdef",
        { model: "text-embedding-3-small", input: ["tea"], dimensions: 1536, encoding_format: "base64" },
      ],
      ["/v1/embeddings", null, { model: "nomic-embed-text", input: ["tea"], encoding_format: "base64" }],
    ]);
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

describe("a length that is set", () => {
  test("is asked for, whatever the model", async () => {
    await using server = startEmbeddingServer({ length: 1024, dimensions: "take" });
    const { embedder } = client(server, { model: "some-model", dimensions: 256 });
    expect((await embedder.embedMemory("tea")).vector.length).toBe(256);
    expect(server.requests.map(({ body }) => body.dimensions)).toEqual([256]);
    expect(embedder.vectorLength).toBe(256);
  });

  for (const dimensions of ["ignore", "refuse"] as const) {
    test(`vectors of another length are refused, if the wish is ${dimensions}d`, async () => {
      await using server = startEmbeddingServer({ length: 1024, dimensions });
      const { embedder } = client(server, { model: "some-model", dimensions: 256 });
      expect(await failure(embedder.embedMemory("tea"))).toEqual({
        kind: "bad_answer",
        message: "The embedding provider's answer has vectors of 1024 numbers, not of the 256 that embedding.dimensions asks for",
      });
    });
  }
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
      expect(embedder.openCircuit).toBeDefined();
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

  for (const { name, behaviour, message } of [
    { name: "more than can be read", behaviour: floods, message: "is longer than 32 MiB" },
    {
      name: "a redirection",
      behaviour: answers("", { status: 307, headers: { location: "https://example.com/" } }),
      message: "is a redirection (307), which is not followed: the key would go elsewhere. Set the final base URL",
    },
    { name: "another list", behaviour: answers('{"data":[]}'), message: "has 0 embeddings for 1 text" },
  ]) {
    test(name, async () => {
      await using server = startEmbeddingServer();
      server.next(behaviour);
      const { embedder } = client(server);
      expect(await failure(embedder.embedMemory("tea"))).toEqual({
        kind: "bad_answer",
        message: `The embedding provider's answer ${message}`,
      });
      expect([server.requests.length, embedder.openCircuit === undefined]).toEqual([1, false]);
    });
  }

  test("a vector that is unusable fails its own text only", async () => {
    await using server = startEmbeddingServer();
    server.always(
      changes((answer) => ({ ...answer, data: answer.data.map((item, i) => (i === 1 ? { ...item, embedding: null } : item)) })),
    );
    const { embedder } = client(server);
    const [tea, coffee] = await Promise.all([embedder.embedMemory("tea"), failure(embedder.embedMemory("coffee"))]);
    expect([tea.vector.length, coffee.kind, embedder.openCircuit]).toEqual([1536, "bad_answer", undefined]);
  });
});

describe("queries", () => {
  test("are cached, those asked last within 3 MiB, however long they are", async () => {
    await using server = startEmbeddingServer();
    // Of these texts nothing matters but their number and length.
    const embedding = new Uint8Array(Float32Array.of(1, ...new Float32Array(1535)).buffer).toBase64();
    server.always(({ body }) => Response.json({ data: body.input.map((_, index) => ({ object: "embedding", index, embedding })) }));
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
    expect(embedder.queryVectorUses).toEqual({ hits: 1, misses: 3 });
  });
});

describe("trouble", () => {
  test("is retried, after the pause that the server asks for", async () => {
    for (const header of ["7", "Thu, 07 May 2026 08:00:07 GMT"]) {
      await using server = startEmbeddingServer();
      server.next(refuses(429, "slow down", { headers: { "retry-after": header } }));
      const { embedder, clock } = client(server);
      await embedder.embedMemory("tea");
      expect(clock.pauses).toEqual([7_000]);
    }
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
    expect(connections).toBe(4);
    server.close();
  });

  test("a name that is not found, or has no address, is unreachable", async () => {
    const notFound = () => Promise.reject(Object.assign(new Error("getaddrinfo"), { code: "ENOTFOUND" }));
    for (const resolve of [notFound, () => Promise.resolve([])]) {
      const { embedder } = client("http://models.example/v1", { resolve });
      expect(await failure(embedder.probe())).toEqual({
        kind: "unreachable",
        message: "The embedding provider at models.example cannot be reached: ENOTFOUND",
      });
    }
  });

  test("a request that is not answered in time is ended, and so is one in flight when the client is closed", async () => {
    await using server = startEmbeddingServer();
    server.always(hangs);
    const { embedder, clock } = client(server);
    const late = failure(embedder.embedQuery("tea"));
    await server.arrived(1);
    clock.advance({ seconds: 10 });
    expect(await late).toEqual({ kind: "timeout", message: "The embedding provider did not answer within 10 s" });
    const probe = failure(embedder.probe());
    await server.arrived(2);
    embedder.close();
    expect(await probe).toEqual({ kind: "unreachable", message: "The embedding provider is no longer used" });
  });

  test("still lets queries be answered that are cached, and a probe that succeeds says what the server's vectors are", async () => {
    await using server = startEmbeddingServer({ length: 384, apiKey: "right" });
    const { embedder } = client(server, { api_key: "right" });
    const { vector } = await embedder.embedQuery("tea");
    server.next(refuses(401, "Incorrect API key provided: right."));
    await failure(embedder.embedMemory("coffee"));
    expect((await embedder.embedQuery("tea")).vector).toBe(vector);
    expect(embedder.openCircuit?.error.message).toBe("The embedding provider answered 401 (invalid_request_error)");
    server.next(refuses(401, "Incorrect API key provided: right."));
    expect((await failure(embedder.probe())).message).toBe("The embedding provider answered 401: Incorrect API key provided: [key].");
    await embedder.probe();
    expect([embedder.openCircuit, embedder.vectorLength]).toEqual([undefined, 384]);
  });
});

test("the metadata service of a cloud is not asked, under an address or a name, whatever that stood for before", async () => {
  await using server = startEmbeddingServer();
  const refused = (host: string, address: string) => ({
    kind: "forbidden",
    message: `The embedding provider at ${host} is not asked: ${address} is a cloud's metadata service`,
  });
  const { port } = new URL(server.baseUrl);
  const found = [["127.0.0.1"], ["127.0.0.1", "169.254.169.254"], ["10.0.0.1", "fd00:ec2::254"]];
  const { embedder } = client(`http://localhost:${port}/v1`, { resolve: () => Promise.resolve(found.shift() ?? []) });
  await embedder.embedMemory("tea");
  expect(await failure(embedder.embedMemory("coffee"))).toEqual(refused(`localhost:${port}`, "169.254.169.254"));
  expect(await failure(embedder.probe())).toEqual(refused(`localhost:${port}`, "fd00:ec2::254"));
  expect(server.batches).toEqual([["tea"]]);
  for (const [url, host, address] of [
    ["http://2852039166/v1", "169.254.169.254", "169.254.169.254"],
    ["http://[::ffff:169.254.169.254]/v1", "[::ffff:a9fe:a9fe]", "::ffff:a9fe:a9fe"],
  ] as const) {
    expect(await failure(client(url).embedder.probe())).toEqual(refused(host, address));
  }
});

test("a base URL is one of HTTP, without user name, password or fragment", () => {
  for (const url of ["https://api.openai.com/v1", "http://localhost:11434/v1/", "https://example.com/openai/v1?api-version=preview"])
    expect([url, baseUrlProblem(url)]).toEqual([url, undefined]);
  expect(baseUrlProblem("localhost:11434")).toBe("It begins with neither http:// nor https://.");
  expect(baseUrlProblem("example.com/v1")).toBe("It is not a URL.");
  expect(baseUrlProblem("https://user:secret@example.com/v1")).toBe("It holds a user name or password; give the key on its own.");
  expect(baseUrlProblem("https://example.com/v1#x")).toBe("It holds a fragment (#…).");
});

test("a key that cannot be in a header is refused without being named", () => {
  for (const apiKey of ["", "two words", "line\nbreak", "schlüssel", "x".repeat(1025)]) {
    expect(apiKeyProblem(apiKey)).toBe("An API key is 1 to 1,024 printable ASCII characters without spaces.");
  }
});
