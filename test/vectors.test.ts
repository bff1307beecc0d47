import { expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { idsOf, refusal } from "./support/answers.ts";
import { startCairn, WITH_GRAPH, type Cairn } from "./support/cairn.ts";
import { fillMemories, numberedTexts } from "./support/fill.ts";
import { onEmbedded } from "./support/stores.ts";

// A worker has to come up in most of them, and on a busy machine that can take seconds.
setDefaultTimeout(600_000);

/** What the log says of the index coming up, each time it did. */
function readyLines(cairn: Cairn): { rebuilding?: string; pending: number }[] {
  return cairn.logged.map((line) => JSON.parse(line)).filter(({ message }) => message === "vector index ready");
}

/** Waits until the index has nothing left to build. */
async function built({ service: { vectors } }: Cairn): Promise<void> {
  while (vectors.status.pending > 0) await new Promise(setImmediate);
}

/** Which memories are found by their own text; all of them, if all is well. */
async function foundByThemselves(cairn: Cairn, contents: readonly string[], ids: readonly string[]): Promise<string[]> {
  const asked = contents.map((content) => cairn.search(content, { limit: 1, threshold: 1 }));
  return (await Promise.all(asked)).flatMap(({ data }, i) => (data[0]?.id === ids[i] ? [data[0].id as string] : []));
}

const everyTenth = <Item>(items: readonly Item[]) => items.filter((_, i) => i % 10 === 0);

onEmbedded("its index is a part of it")(
  "while the index is being built requests are answered, new memories found and deleted ones not",
  async () => {
    let worker: Worker | undefined;
    const newWorker = () => (worker = new Worker(new URL("support/held-worker.ts", import.meta.url).href));
    await using cairn = await startCairn({ index: { graphFrom: 0, newWorker } });
    const session = await cairn.createSession({ user_id: "ada" });
    const contents = numberedTexts(1_500);
    const ids = await fillMemories(cairn, session, contents);
    await cairn.restart();
    const pendingAfter: number[] = [];
    for (let i = 0; pendingAfter.at(-1) !== 0; i++) {
      if (i === 10) worker?.postMessage("build on");
      const text = `Zoltan left samovar ${i} on the ferry.`;
      const { id } = await cairn.addMemory(session.id, text);
      expect((await cairn.get(`/v1/sessions/${session.id}`)).status).toBe(200);
      expect(await foundByThemselves(cairn, [text, contents[i] as string], [id, ids[i] as string])).toEqual([id, ids[i] as string]);
      await cairn.ok(cairn.delete(`/v1/memory/${ids[i]}`));
      expect(idsOf((await cairn.search(contents[i] as string, { threshold: 1 })).data)).toEqual([]);
      expect(await cairn.list("/v1/memory?limit=1")).toMatchObject([{ id }]);
      pendingAfter.push(cairn.service.vectors.status.pending);
    }
    expect(Math.min(...pendingAfter.slice(0, 10))).toBeGreaterThan(0);
  },
);

onEmbedded("its index is a part of it")("while a snapshot is written requests are answered as ever", async () => {
  await using cairn = await startCairn(WITH_GRAPH);
  const session = await cairn.createSession();
  const contents = numberedTexts(300);
  const ids = await fillMemories(cairn, session, contents);
  await cairn.restart();
  await built(cairn);
  const state = { isSaving: true };
  const saving = cairn.vectorIndex.save().finally(() => (state.isSaving = false));
  for (let i = 0; state.isSaving; i++) {
    const { id } = await cairn.addMemory(session.id, `Zoltan left samovar ${i} on the ferry.`);
    expect(
      await foundByThemselves(cairn, [`Zoltan left samovar ${i} on the ferry.`, contents[i] as string], [id, ids[i] as string]),
    ).toHaveLength(2);
  }
  await saving;
});

onEmbedded("its index is a part of it")(
  "a stop writes the index down; the next start finds everything in it, and what was added and deleted in between",
  async () => {
    await using cairn = await startCairn(WITH_GRAPH);
    const session = await cairn.createSession();
    const contents = numberedTexts(200);
    const ids = await fillMemories(cairn, session, contents);
    await cairn.restart();
    await built(cairn);
    await cairn.restart();
    const late = await cairn.addMemory(session.id, "Zoltan left a samovar on the ferry.");
    for (const id of ids.slice(0, 10)) await cairn.ok(cairn.delete(`/v1/memory/${id}`));
    await cairn.restart();
    const [askedFor, expected] = [
      [...everyTenth(contents), late.content],
      [...everyTenth(ids), late.id],
    ];
    expect(await foundByThemselves(cairn, askedFor, expected)).toEqual(expected.slice(1));
    const [first, second] = readyLines(cairn).slice(-2);
    expect([first!.rebuilding, first!.pending]).toEqual([undefined, 0]);
    // A single new vector is not worth writing all of them.
    expect([second!.rebuilding, second!.pending]).toEqual([undefined, 1]);
  },
);

for (const part of [".hnsw", ".tables"]) {
  onEmbedded("its index is a part of it")(
    `a start with a damaged file ${part} of the snapshot says so and finds everything all the same, also by words alone`,
    async () => {
      await using cairn = await startCairn(WITH_GRAPH);
      const session = await cairn.createSession();
      const contents = numberedTexts(200);
      const ids = await fillMemories(cairn, session, contents);
      await cairn.restart();
      await built(cairn);
      await cairn.close();
      const directory = join(cairn.directory, "vectors");
      const file = readdirSync(directory).find((name) => name.endsWith(part))!;
      const bytes = readFileSync(join(directory, file));
      bytes[bytes.length >> 1]! ^= 1;
      writeFileSync(join(directory, file), bytes);
      await cairn.open();
      expect(await foundByThemselves(cairn, everyTenth(contents), everyTenth(ids))).toEqual(everyTenth(ids));
      const byNumber = await Promise.all(everyTenth(contents).map((_, i) => cairn.search(`${1_000 + 10 * i}`, { threshold: 0, limit: 1 })));
      // 1000 itself is so common that it has no weight as a word.
      expect(byNumber.map(({ data }) => data[0].id).slice(1)).toEqual(everyTenth(ids).slice(1));
      expect(readyLines(cairn).at(-1)).toMatchObject({ rebuilding: "the snapshot is damaged", pending: 200 });
    },
  );
}

test("a filter keeps users apart among hundreds of memories as among a few", async () => {
  await using cairn = await startCairn();
  const ada = await cairn.createSession({ user_id: "ada" });
  const bo = await cairn.createSession({ user_id: "bo" });
  const contents = numberedTexts(150);
  const ofAda = await fillMemories(cairn, ada, contents);
  const ofBo = await fillMemories(cairn, bo, contents);
  for (const [session, own] of [
    [ada, ofAda],
    [bo, ofBo],
  ]) {
    const all = new Set(own);
    for (const filter of [{ user_id: session.user_id }, { session_id: session.id }]) {
      const { data } = await cairn.search("parcel at the gate", { ...filter, threshold: 0, limit: 50 });
      expect(data).toHaveLength(50);
      expect(idsOf(data).filter((id) => !all.has(id))).toEqual([]);
    }
    const { memories } = await cairn.context(session.id, { query: "parcel at the gate", memory_limit: 20 });
    expect(memories).toHaveLength(20);
    expect(idsOf(memories).filter((id) => !all.has(id))).toEqual([]);
  }
});

onEmbedded("its index is a part of it")(
  "without its index the service answers 503 to what needs it, and serves everything else",
  async () => {
    await using cairn = await startCairn();
    const session = await cairn.createSession({ user_id: "ada" });
    await fillMemories(cairn, session, numberedTexts(150));
    const few = await cairn.createSession({ user_id: "bo" });
    const memory = await cairn.addMemory(few.id, "The customer prefers tea.");
    await cairn.vectorIndex.close();
    const unavailable = { status: 503, code: "service_unavailable", param: undefined };
    const answer = await cairn.post("/v1/memory/search", { query: "parcel" });
    expect(refusal(answer)).toEqual(unavailable);
    expect(answer.body.error).toMatchObject({ type: "api_error", message: expect.any(String), request_id: expect.any(String) });
    expect(refusal(await cairn.post("/v1/memory/search", { query: "parcel", type: "general" }))).toEqual(unavailable);
    expect((await cairn.context(session.id, { query: "parcel" })).memories).toHaveLength(5);
    expect((await cairn.context(session.id)).memories).toHaveLength(5);
    expect(idsOf((await cairn.search("customer tea", { user_id: "bo" })).data)).toEqual([memory.id]);
    const added = await cairn.addMemory(session.id, "Zoltan left a samovar on the ferry.");
    expect((await cairn.get(`/v1/memory/${added.id}`)).body).toEqual(added);
    expect((await cairn.delete(`/v1/memory/${added.id}`)).status).toBe(200);
  },
);
