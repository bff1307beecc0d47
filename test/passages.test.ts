import { describe, expect, test } from "bun:test";
import { bare } from "../src/lib/ids.ts";
import { MAX_KEY } from "../src/storage/keys.ts";
import { pendingEmbeddings, VECTOR_TABLES, vectors } from "../src/storage/tables.ts";
import { hasNoVector, passageCount } from "../src/search/encoding.ts";
import { BusyEncoder } from "./support/busy-encoder.ts";
import { startCairn, WITH_GRAPH, type Cairn } from "./support/cairn.ts";
import { addAll, EMBEDDINGS, makeVectors, NOTES, openai, setEmbedding, vectorsOf } from "./support/providers.ts";
import { startEmbeddingServer } from "./support/embedding-server.ts";

const FACT = "Her little brother cannot eat peanuts, he would have to go to hospital.";
const QUESTION = "Is anybody in the family allergic to a food?";

/** Sentences about many things, and in their middle another one. */
function longText(middle: string, seed = 0, sentences = 60): string {
  const notes = NOTES(616).slice(seed * sentences, (seed + 1) * sentences);
  return [...notes.slice(0, sentences / 2), middle, ...notes.slice(sentences / 2)].join(" ");
}

/** Rows of vectors that there are: how many, of how many passages, and what is still to be made. */
async function stored(cairn: Cairn): Promise<{ passages: number[]; pending: number }> {
  return cairn.service.store.read((reader) => {
    const all = { from: "", to: MAX_KEY };
    const rows = VECTOR_TABLES.flatMap((table) => reader.keys(table, all).map((id) => reader.vectorBytes(table, id)!));
    return {
      passages: rows.map((bytes) => (hasNoVector(bytes) ? 0 : passageCount(bytes))),
      pending: reader.keys(pendingEmbeddings, all).length,
    };
  });
}

const NOTHING = { passages: [], pending: 0 };
const explained = async (cairn: Cairn, query: string) => (await cairn.search(query, { threshold: 0, explain: true })).data;

describe("a long text", () => {
  test("is found by what a sentence in its middle means, and the passage that says so is named", async () => {
    await using cairn = await startCairn();
    const text = longText(FACT, 0, 190);
    expect(text.length).toBeGreaterThan(9_500);
    await addAll(cairn, [longText("Nobody was at home.", 5)]);
    await addAll(cairn, [text]);
    await addAll(cairn, ["The customer prefers green tea to coffee."]);
    expect(await vectorsOf(cairn)).toEqual({ ready: 3, pending: 0 });
    const [first, ...others] = await explained(cairn, QUESTION);
    expect(first.content).toBe(text);
    const { start, end } = first.explanation.passage;
    expect(Array.from(text).slice(start, end).join("")).toContain(FACT);
    expect(end - start).toBeLessThan(400);
    expect(first.explanation.semantic).toBeGreaterThan(Math.max(...others.map(({ explanation }: any) => explanation.semantic)));
    expect(others.map(({ explanation }: any) => "passage" in explanation)).toEqual(
      others.map(({ content }: any) => content.length > 1_000),
    );
    expect((await cairn.search(text)).data[0]).toMatchObject({ content: text, score: 1 });
  });

  test("is found in the same way as a document, and in a context", async () => {
    await using cairn = await startCairn();
    const namespace = ["notes"];
    const put = (key: string, text: string) => ({ op: "put", namespace, key, value: { text }, index: true });
    const operations = [put("a", longText("Nobody was at home.", 1)), put("b", longText(FACT)), put("c", "She drinks tea.")];
    await cairn.ok(cairn.post("/v1/documents/batch", { operations }));
    // The second one came while the first was being encoded.
    await makeVectors(cairn);
    const query = { op: "search", namespace, query: QUESTION, threshold: 0 };
    expect((await cairn.ok(cairn.post("/v1/documents/query", { operations: [query] }))).data[0].data[0].key).toBe("b");
    const session = await cairn.createSession({ user_id: "user" });
    await cairn.addMemory(session.id, longText(FACT));
    const { memories } = await cairn.context(session.id, { query: QUESTION, explain: true });
    expect(memories).toMatchObject([{ explanation: { passage: { start: expect.any(Number) } } }]);
  });

  test("counts code points, in a script without spaces too", async () => {
    await using cairn = await startCairn();
    const fact = "弟は落花生を食べられません。";
    const filler = "昨日は雨が降って、誰も外に出ませんでした😀。新しい電車の時刻表が駅に貼られました。";
    const text = `${filler.repeat(15)}${fact}${filler.repeat(15)}`;
    await addAll(cairn, [text]);
    const [{ explanation }] = await explained(cairn, "家族にアレルギーのある人はいますか");
    const { start, end } = explanation.passage;
    expect(Array.from(text).slice(start, end).join("")).toContain(fact);
  });

  test("has as many vectors as passages, in one row; a text of up to a hundred words has one, and so has every text of another provider", async () => {
    await using server = startEmbeddingServer({ length: 384 });
    await using cairn = await startCairn();
    await addAll(cairn, [Array.from({ length: 100 }, (_, i) => `w${i}`).join(" ")]);
    expect(await stored(cairn)).toEqual({ passages: [1], pending: 0 });
    await addAll(cairn, [longText(FACT)]);
    const { passages } = await stored(cairn);
    expect(passages).toEqual([1, expect.any(Number)]);
    expect(passages[1]).toBeGreaterThan(10);
    await cairn.ok(setEmbedding(cairn, openai(server)));
    await makeVectors(cairn);
    expect(await stored(cairn)).toEqual({ passages: [1, 1], pending: 0 });
    await cairn.ok(setEmbedding(cairn, { provider: "builtin" }));
    await makeVectors(cairn);
    expect((await stored(cairn)).passages.toSorted((a, b) => a - b)).toEqual(passages);
  });
});

describe("the vectors of passages", () => {
  test("go with their text: when it is changed, deleted or expires, or its session is deleted, or its user erased", async () => {
    await using cairn = await startCairn();
    // Of a few passages.
    const text = (seed = 0) => longText(FACT, seed, 16);
    const [memory] = await addAll(cairn, [text()]);
    expect((await stored(cairn)).passages[0]).toBeGreaterThan(2);
    await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: "She drinks tea." }));
    expect(await stored(cairn)).toEqual({ passages: [1], pending: 0 });
    await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: text(1) }));
    expect((await stored(cairn)).passages).toEqual([expect.any(Number)]);
    await cairn.ok(cairn.delete(`/v1/memory/${memory.id}`));
    expect(await stored(cairn)).toEqual(NOTHING);
    await addAll(cairn, [text()], { ttl_seconds: 60 });
    cairn.clock.advance({ seconds: 61 });
    await cairn.runTask("memory expiry");
    expect(await stored(cairn)).toEqual(NOTHING);
    const [ofSession] = await addAll(cairn, [text()]);
    await cairn.ok(cairn.delete(`/v1/sessions/${ofSession.session_id}?delete_memories=true`));
    await cairn.runTask("session removal");
    expect(await stored(cairn)).toEqual(NOTHING);
    await addAll(cairn, [text()]);
    const put = { op: "put", namespace: ["n"], key: "k", value: { text: text() }, index: true, ttl_seconds: 60 };
    await cairn.ok(cairn.post("/v1/documents/batch", { operations: [put] }));
    await cairn.ok(cairn.delete("/v1/users/user"));
    await cairn.runTask("user erasure");
    expect((await stored(cairn)).passages).toEqual([expect.any(Number)]);
    cairn.clock.advance({ seconds: 61 });
    await cairn.runTask("document expiry");
    expect(await stored(cairn)).toEqual(NOTHING);
    expect((await cairn.search(QUESTION, { threshold: 0 })).data).toEqual([]);
  });

  test("are there all or not at all, whenever the server ends", async () => {
    const encoder = new BusyEncoder();
    await using cairn = await startCairn(encoder);
    const text = longText(FACT);
    const [memory] = await encoder.during(cairn, () => addAll(cairn, [text]));
    expect(await stored(cairn)).toEqual({ passages: [0], pending: 1 });
    const run = cairn.runTaskOnce(EMBEDDINGS).catch(() => undefined);
    await encoder.holdAfter(3);
    await cairn.restart();
    await run;
    expect(await stored(cairn)).toEqual({ passages: [0], pending: 1 });
    expect(await cairn.findings()).toEqual([]);
    expect(await cairn.ok(cairn.get(`/v1/memory/${memory.id}`))).toMatchObject({ vector_available: false });
    encoder.release();
    await makeVectors(cairn);
    expect(await stored(cairn)).toEqual({ passages: [expect.any(Number)], pending: 0 });
    expect((await explained(cairn, QUESTION))[0].explanation.passage).toBeDefined();
    expect(await cairn.findings()).toEqual([]);
  });

  test("are looked for in the graph, in which a text counts once, however many of its passages are near", async () => {
    await using cairn = await startCairn(WITH_GRAPH);
    const texts = Array.from({ length: 3 }, (_, i) => longText(`${FACT} `.repeat(12), i, 8));
    await addAll(cairn, [...texts, ...NOTES(30)]);
    await makeVectors(cairn);
    const { data } = await cairn.search(QUESTION, { threshold: 0, limit: 20 });
    expect(data.length).toBe(20);
    expect(new Set(data.map(({ id }: any) => id)).size).toBe(20);
    expect(new Set(data.slice(0, 3).map(({ content }: any) => content))).toEqual(new Set(texts));
    const [{ embedding_id }] = await cairn.list("/v1/memory?limit=1");
    expect(await cairn.service.store.read((reader) => reader.has(vectors, bare(embedding_id)))).toBe(true);
  });
});
