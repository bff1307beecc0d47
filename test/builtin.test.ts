import { describe, expect, test } from "bun:test";
import { NO_PARTITION } from "../src/lib/ids.ts";
import { pendingEmbeddings, provider, PROVIDER_KEY, settings, vectors } from "../src/storage/tables.ts";
import { MAX_KEY } from "../src/storage/keys.ts";
import { refusal } from "./support/answers.ts";
import { BusyEncoder } from "./support/busy-encoder.ts";
import { startCairn, type Cairn, type Options } from "./support/cairn.ts";
import { startEmbeddingServer } from "./support/embedding-server.ts";
import { ENDS_THREAD } from "./support/held-encoder.ts";
import {
  addAll,
  CHESS,
  EMBEDDINGS,
  log,
  makeVectors,
  NOTES,
  RENT,
  setEmbedding,
  setProvider,
  TEA,
  vectorsOf,
} from "./support/providers.ts";

const DOGS = "Lives in Lisbon with two dogs.";
const RAIN = "The quokka of Rottnest is called Bert. It rained all day, and nobody went out.";
const LONG = `The quokka of Rottnest is called Bert. ${"It rained all day, and nobody went out. ".repeat(40)}`;

const FRAGILE: Options = {
  newEncoder: () => new Worker(new URL("./support/held-encoder.ts", import.meta.url).href),
};

const best = async (cairn: Cairn, query: string) => (await cairn.search(query, { threshold: 0, limit: 1 })).data[0]?.content;
const contentsOf = async (cairn: Cairn, query: string) =>
  (await cairn.search(query, { threshold: 0 })).data.map(({ content }: any) => content);

describe("the built-in encoder", () => {
  test("finds what is meant, without a word in common and in other languages", async () => {
    await using cairn = await startCairn();
    const memories = await addAll(cairn, [TEA, CHESS, RENT, DOGS]);
    expect(memories.map((memory) => memory.vector_available)).toEqual([true, true, true, true]);
    expect(await best(cairn, "Does the user have any pets?")).toBe(DOGS);
    expect(await best(cairn, "A-t-il des animaux ?")).toBe(DOGS);
    expect(await best(cairn, "ペットを飼っていますか")).toBe(DOGS);
    expect(await best(cairn, "Какую игру любит Лука?")).toBe(CHESS);
    expect(await best(cairn, "Was kostet die Wohnung?")).toBe(RENT);
    expect((await cairn.settings()).embedding).toMatchObject({
      provider: { value: "builtin" },
      vector_length: 384,
      separation: null,
      relevant_cosine: { value: null },
      state: { available: true },
      vectors: { ready: 4, pending: 0 },
    });
  });

  test("counts numbers of two digits as half a rare word, and longer ones as more", async () => {
    await using cairn = await startCairn();
    await addAll(cairn, ["Room 12 holds 1,000 books.", TEA]);
    const [found] = (await cairn.search("12, 1000", { explain: true })).data;
    expect(found).toMatchObject({
      content: "Room 12 holds 1,000 books.",
      explanation: {
        lexical: 1,
        matches: [
          { word: "12", matched_by: "word", share: 0.3846 },
          { word: "1000", matched_by: "word", matched_word: "1,000", share: 0.6154 },
        ],
      },
    });
  });

  test("a text scores 1 for itself, whoever asks and whenever", async () => {
    await using cairn = await startCairn();
    await addAll(cairn, [TEA, DOGS]);
    expect((await cairn.search(DOGS)).data[0]).toMatchObject({ content: DOGS, score: 1 });
    expect((await cairn.search(DOGS)).data).toEqual((await cairn.search(DOGS)).data);
  });

  test("says why: meaning and words apart", async () => {
    await using cairn = await startCairn();
    await addAll(cairn, [TEA, DOGS]);
    const { data } = await cairn.search("two dogs", { threshold: 0, explain: true });
    expect(data[0]).toMatchObject({
      content: DOGS,
      explanation: {
        semantic: expect.any(Number),
        lexical: 1,
        matches: ["two", "dogs"].map((word) => ({ word, matched_by: "word", share: expect.any(Number) })),
      },
    });
    const [other] = (await cairn.search("pets", { threshold: 0, explain: true, limit: 1 })).data;
    expect(other).toMatchObject({ content: DOGS, explanation: { lexical: 0, matches: [] } });
  });

  test("a text without a word that it knows has no vector, and is found by its signs", async () => {
    await using cairn = await startCairn();
    const [memory] = await addAll(cairn, ["\u{10900}\u{10901}\u{10902}", TEA]);
    expect(memory).toMatchObject({ vector_available: false });
    expect(memory).not.toHaveProperty("embedding_id");
    expect(await vectorsOf(cairn)).toEqual({ ready: 2, pending: 0 });
    expect((await cairn.search("\u{10900}\u{10901}\u{10902}")).data).toMatchObject([{ score: 1 }]);
  });

  test("finds documents, too", async () => {
    await using cairn = await startCairn();
    const namespace = ["notes"];
    const put = (key: string, text: string) => ({ op: "put", namespace, key, value: { text }, index: true });
    await cairn.ok(cairn.post("/v1/documents/batch", { operations: [put("a", TEA), put("b", DOGS), put("c", LONG)] }));
    expect(await vectorsOf(cairn)).toEqual({ ready: 3, pending: 0 });
    const search = async (query: string) =>
      (await cairn.ok(cairn.post("/v1/documents/query", { operations: [{ op: "search", namespace, query, threshold: 0 }] }))).data[0]
        .data[0].key;
    expect(await search("Does the user have any pets?")).toBe("b");
    expect(await search("quokka")).toBe("c");
    expect(await search("Was it wet outside, and did people stay in?")).toBe("c");
  });
});

describe("a memory whose vector is still to be made", () => {
  test("is one that came while others waited, however short it is; without any a write waits for its vector, however long it is", async () => {
    const encoder = new BusyEncoder();
    await using cairn = await startCairn(encoder);
    expect(await addAll(cairn, [LONG])).toMatchObject([{ vector_available: true }]);
    expect(await encoder.during(cairn, () => addAll(cairn, [TEA]))).toMatchObject([{ vector_available: false }]);
    expect(await addAll(cairn, [CHESS])).toMatchObject([{ vector_available: true }]);
  });

  test("is found by its words at once, and by its meaning later", async () => {
    const encoder = new BusyEncoder();
    await using cairn = await startCairn(encoder);
    await addAll(cairn, [TEA]);
    const [memory] = await encoder.during(cairn, () => addAll(cairn, [RAIN]));
    expect(memory).toMatchObject({ vector_available: false });
    expect(memory).not.toHaveProperty("embedding_id");
    expect(await vectorsOf(cairn)).toEqual({ ready: 1, pending: 1 });
    expect((await cairn.ok(cairn.get("/v1/stats"))).vectors).toEqual({ stored: 1, pending: 1 });
    const [found] = (await cairn.search("Rottnest quokka")).data;
    expect(found).toMatchObject({ content: RAIN, score: expect.any(Number) });
    expect(await best(cairn, "What is the name of the animal on the island?")).toBe(TEA);
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: 2, pending: 0 });
    expect(await cairn.ok(cairn.get(`/v1/memory/${memory.id}`))).toMatchObject({
      vector_available: true,
      embedding_id: expect.stringMatching(/^emb_/),
    });
    expect(await best(cairn, "Was it wet and did people stay at home?")).toBe(RAIN);
    expect((await cairn.search("Rottnest quokka")).data[0].score).not.toBe(found.score);
  });

  test("is found by its new words once it was changed, and no longer by those before", async () => {
    const encoder = new BusyEncoder();
    await using cairn = await startCairn(encoder);
    const [memory] = await addAll(cairn, [RAIN]);
    const changed = RAIN.replace("quokka", "numbat");
    await encoder.during(cairn, () => cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: changed })));
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, pending: 1 });
    expect(await contentsOf(cairn, "numbat")).toEqual([changed]);
    expect((await cairn.search("quokka", { threshold: 0.1 })).data).toEqual([]);
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: 1, pending: 0 });
    expect(await contentsOf(cairn, "numbat")).toEqual([changed]);
  });

  test("leaves nothing behind when it is deleted first, nor when its session is, nor its user", async () => {
    const encoder = new BusyEncoder();
    await using cairn = await startCairn(encoder);
    const addPending = () => encoder.during(cairn, () => addAll(cairn, [RAIN]));
    const nothing = { ready: 0, pending: 0 };
    const [memory] = await addPending();
    await cairn.ok(cairn.delete(`/v1/memory/${memory.id}`));
    await makeVectors(cairn);
    expect([await vectorsOf(cairn), await contentsOf(cairn, "quokka")]).toEqual([nothing, []]);
    const [ofSession] = await addPending();
    await cairn.ok(cairn.delete(`/v1/sessions/${ofSession.session_id}?delete_memories=true`));
    await cairn.runTask("session removal");
    await makeVectors(cairn);
    expect([await vectorsOf(cairn), await contentsOf(cairn, "quokka")]).toEqual([nothing, []]);
    await addPending();
    await cairn.ok(cairn.delete("/v1/users/user"));
    await cairn.runTask("user erasure");
    await makeVectors(cairn);
    expect([await vectorsOf(cairn), await contentsOf(cairn, "quokka")]).toEqual([nothing, []]);
    const left = await cairn.service.store.read((reader) =>
      [vectors, pendingEmbeddings].map((table) => reader.keys(table, { from: "", to: MAX_KEY })),
    );
    expect(left).toEqual([[], []]);
  });

  test("gets no vector where it was changed while that was made", async () => {
    const encoder = new BusyEncoder();
    await using cairn = await startCairn(encoder);
    const [memory] = await encoder.during(cairn, () => addAll(cairn, [RAIN]));
    const { store } = cairn.service;
    const commit = store.commit.bind(store);
    const changed = RAIN.replace("quokka", "numbat");
    store.commit = async (home, work) => {
      store.commit = commit;
      await encoder.during(cairn, () => cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: changed })));
      return commit(home, work);
    };
    await cairn.runTaskOnce(EMBEDDINGS);
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, pending: 1 });
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: 1, pending: 0 });
    expect(await contentsOf(cairn, "numbat")).toEqual([changed]);
  });

  test("keeps waiting across a restart and a change of the provider", async () => {
    await using server = startEmbeddingServer({ length: 100 });
    const encoder = new BusyEncoder();
    await using cairn = await startCairn(encoder);
    await addAll(cairn, [TEA]);
    await encoder.during(cairn, () => addAll(cairn, [RAIN]));
    await cairn.restart();
    expect([await vectorsOf(cairn), await best(cairn, "quokka")]).toEqual([{ ready: 1, pending: 1 }, RAIN]);
    await setProvider(cairn, server);
    expect(await vectorsOf(cairn)).toEqual({ ready: 0, pending: 2 });
    await makeVectors(cairn);
    expect([await vectorsOf(cairn), await best(cairn, TEA)]).toEqual([{ ready: 2, pending: 0 }, TEA]);
    await cairn.ok(setEmbedding(cairn, { provider: "builtin" }));
    await makeVectors(cairn);
    expect([await vectorsOf(cairn), await best(cairn, "Which hot drink does she like?")]).toEqual([{ ready: 2, pending: 0 }, TEA]);
  });

  test("is nothing that doctor finds fault with, before or after", async () => {
    const encoder = new BusyEncoder();
    await using cairn = await startCairn(encoder);
    await addAll(cairn, [TEA]);
    await encoder.during(cairn, () => addAll(cairn, [RAIN]));
    expect(await cairn.findings()).toEqual([]);
    await makeVectors(cairn);
    expect(await cairn.findings()).toEqual([]);
  });
});

describe("the encoder's thread", () => {
  test("is started again when it ends, with what was under way, and nothing is lost", async () => {
    await using cairn = await startCairn(FRAGILE);
    const session = await cairn.createSession();
    const fatal = cairn.addMemory(session.id, `Do not read this, it ${ENDS_THREAD}.`);
    expect(await fatal).toMatchObject({ vector_available: false });
    expect(log(cairn)).toContainEqual({
      level: "error",
      message: "the thread of the built-in encoder has ended",
      reason: expect.any(String),
    });
    expect((await cairn.settings()).embedding.state).toMatchObject({
      available: false,
      reason: expect.stringContaining("The built-in encoder has ended"),
    });
    expect(refusal(await cairn.post("/v1/memory/search", { query: "tea" }))).toMatchObject({ status: 503, code: "service_unavailable" });
    expect(await cairn.addMemory(session.id, TEA)).toMatchObject({ vector_available: false });
    cairn.clock.advance({ seconds: 6 });
    expect(await best(cairn, "tea")).toBe(TEA);
    expect((await cairn.settings()).embedding.state).toEqual({ available: true });
  });
});

describe("the name local, which the built-in provider had before", () => {
  const BUILT_IN = { value: "builtin", default: "builtin" };

  test("is read as builtin, sent or in the environment, and is not shown", async () => {
    await using cairn = await startCairn({ environment: { embedding: { provider: "local" } } });
    expect((await cairn.settings()).embedding).toMatchObject({ provider: { ...BUILT_IN, source: "environment" }, vector_length: 384 });
    const { embedding } = await cairn.ok(setEmbedding(cairn, { provider: "local" }));
    expect(embedding).toMatchObject({ provider: { ...BUILT_IN, source: "setting" }, vector_length: 384 });
    await addAll(cairn, [DOGS]);
    expect(await best(cairn, "Does the user have any pets?")).toBe(DOGS);
  });

  test("is read as builtin in a store, whose memories are embedded again, and are found by their words until then", async () => {
    await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
    const [memory] = await addAll(cairn, [TEA, DOGS]);
    await cairn.ok(setEmbedding(cairn, { provider: "words" }));
    await cairn.service.store.commit(NO_PARTITION, (tx) => {
      tx.put(settings, "current", { "embedding.provider": "local" });
      tx.put(provider, PROVIDER_KEY, { identity: "local-2", generation: tx.get(provider, PROVIDER_KEY)?.generation ?? 0 });
    });
    await cairn.restart();
    expect((await cairn.settings()).embedding).toMatchObject({
      provider: { ...BUILT_IN, source: "setting" },
      vectors: { ready: 0, pending: 2 },
    });
    expect(await cairn.ok(cairn.get(`/v1/memory/${memory.id}`))).toMatchObject({ vector_available: false });
    await cairn.runTaskOnce(EMBEDDINGS);
    expect(await contentsOf(cairn, "green tea")).toEqual(expect.arrayContaining([TEA]));
    await makeVectors(cairn);
    expect(await vectorsOf(cairn)).toEqual({ ready: 2, pending: 0 });
    expect(await best(cairn, "Does the user have any pets?")).toBe(DOGS);
    expect(await cairn.findings()).toEqual([]);
  });
});

describe("the provider words", () => {
  test("finds by words alone, at 0.7 from half of them on, and never encodes anything", async () => {
    await using cairn = await startCairn({
      environment: { embedding: { provider: "words" } },
      newEncoder: () => {
        throw new Error("There is no encoder.");
      },
    });
    const [memory] = await addAll(cairn, [TEA, DOGS, ...NOTES(10)]);
    expect(memory).toMatchObject({ vector_available: false });
    expect((await cairn.search("green tea")).data).toMatchObject([{ content: TEA, score: expect.any(Number) }]);
    expect((await cairn.search(TEA)).data[0]).toMatchObject({ content: TEA, score: 1 });
    expect((await cairn.search("Does the user have any pets?")).data).toEqual([]);
    expect((await cairn.settings()).embedding).toMatchObject({ vector_length: null, vectors: { ready: 12, pending: 0 } });
    await makeVectors(cairn);
    expect(await cairn.findings()).toEqual([]);
  });
});
