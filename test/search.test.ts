import { expect, setDefaultTimeout, spyOn, test } from "bun:test";
import { WordEmbedder } from "../src/embeddings/builtin/builtin.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { idsOf } from "./support/answers.ts";
import { vectors } from "../src/storage/tables.ts";
import { startCairn } from "./support/cairn.ts";
import { fillMemories, numberedTexts } from "./support/fill.ts";
import { syllables } from "./support/flood.ts";
import { roundsDuring } from "./support/loop.ts";
import { onEmbedded } from "./support/stores.ts";

// What is compared is much, and the machine may be busy with other tests.
setDefaultTimeout(600_000);

test("a search answers the query as it was sent and what it found, with these fields and no others", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const memory = await cairn.addMemory(session.id, "The customer prefers e-mail to phone calls.", {
    type: "preference",
    tags: ["contact"],
    metadata: { source: "chat" },
  });
  await cairn.addMemory(session.id, "The train to Oslo leaves at nine.");
  const query = " How does the customer prefer to be called, by phone or e-mail? ";
  const answer = await cairn.post("/v1/memory/search", { query });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({
    object: "list",
    query,
    data: [
      {
        id: memory.id,
        session_id: session.id,
        user_id: null,
        agent_id: "agent",
        content: "The customer prefers e-mail to phone calls.",
        type: "preference",
        source: "agent",
        tags: ["contact"],
        score: expect.any(Number),
        created_at: "2026-05-07T08:00:00.000Z",
      },
    ],
  });
  const [{ score }] = answer.body.data;
  expect(score).toBeGreaterThanOrEqual(0.7);
  expect(score).toBeLessThan(1);
});

test("a memory is found by its own text with score 1, and by what shares its words or its meaning with less", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const { id } = await cairn.addMemory(session.id, "Her physician sees patients on Mondays.");
  const scores = [];
  for (const query of [
    "Her physician sees patients on Mondays.",
    "physician Mondays",
    "When does the doctor have time?",
    "Where is the harbour?",
  ]) {
    const [found] = (await cairn.search(query, { threshold: 0 })).data;
    expect([query, found.id]).toEqual([query, id]);
    scores.push(found.score);
  }
  expect(scores[0]).toBe(1);
  expect(scores).toEqual(scores.toSorted((a, b) => b - a));
  expect(new Set(scores).size).toBe(4);
});

test("the best come first, and of equal ones the newest", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const contents = ["green tea", "tea", "green tea with milk", "tea", "coffee", "tea", "The customer prefers green tea in the morning."];
  const added = await cairn.addMemories(session.id, contents);
  const { data } = await cairn.search("tea", { threshold: 0 });
  expect(idsOf(data.slice(0, 3))).toEqual([added[5].id, added[3].id, added[1].id]);
  const scores = data.map(({ score }: { score: number }) => score);
  expect(scores).toEqual(scores.toSorted((a: number, b: number) => b - a));
  expect(data.length).toBe(contents.length);
  // The same again for what another query makes equal.
  const [first, second] = (await cairn.search("milk", { threshold: 0, limit: 2 })).data;
  expect([first.id, second.score < first.score]).toEqual([added[2].id, true]);
});

test("ten are found unless a limit of up to 50 is asked for", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  await Promise.all(Array.from({ length: 60 }, (_, i) => cairn.addMemory(session.id, `The customer prefers tea number ${i}.`)));
  const count = async (more: Record<string, unknown>) => (await cairn.search("The customer prefers tea.", more)).data.length;
  expect([await count({}), await count({ limit: 1 }), await count({ limit: 50 }), await count({ limit: null })]).toEqual([10, 1, 50, 10]);
});

test("nothing below the threshold is found: 0.7 unless another is asked for", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const others = ["green tea", "tea", "coffee with milk", "The harbour is closed on Sundays.", "The green door"];
  await cairn.addMemories(session.id, ["green tea with milk", ...others]);
  const all = (await cairn.search("green tea with milk", { threshold: 0 })).data;
  expect(all.length).toBe(6);
  expect(all[0].score).toBe(1);
  const search = async (more: Record<string, unknown>) => (await cairn.search("green tea with milk", more)).data;
  for (const threshold of [1, all[1].score, 0.7, all[3].score, 0.000001, 0]) {
    expect(await search({ threshold })).toEqual(all.filter(({ score }: { score: number }) => score >= threshold));
  }
  const standard = await search({ threshold: 0.7 });
  expect(standard.length).toBeGreaterThan(0);
  expect(standard.length).toBeLessThan(6);
  expect([await search({}), await search({ threshold: null })]).toEqual([standard, standard]);
});

test("filters combine with AND, types and tags with OR among themselves; without any, all memories are searched", async () => {
  await using cairn = await startCairn();
  const ada = await cairn.createSession({ user_id: "ada" });
  const adaAgain = await cairn.createSession({ user_id: "ada" });
  const bo = await cairn.createSession({ user_id: "bo" });
  const nobody = await cairn.createSession();
  const add = (session: { id: string }, more: Record<string, unknown> = {}) =>
    cairn.addMemory(session.id, "The customer prefers tea.", more);
  const a = await add(ada, { type: "fact", tags: ["x"] });
  const b = await add(adaAgain, { type: "event", tags: ["x", "y"] });
  const c = await add(bo, { type: "fact", tags: ["y"] });
  const d = await add(nobody, { type: "fact" });
  const cases: [filter: Record<string, unknown>, found: { id: string }[]][] = [
    [{}, [d, c, b, a]],
    [{ session_id: null, user_id: null, type: null, tags: null }, [d, c, b, a]],
    [{ session_id: ada.id }, [a]],
    [{ user_id: "ada" }, [b, a]],
    [{ user_id: "nobody" }, []],
    [{ type: "fact" }, [d, c, a]],
    [{ types: ["fact", "event"] }, [d, c, b, a]],
    [{ types: ["event", "event", "none"] }, [b]],
    [{ types: [] }, [d, c, b, a]],
    [{ types: ["fact", "event"], type: "fact", user_id: "ada" }, [a]],
    [{ tags: ["x"] }, [b, a]],
    [{ tags: ["x", "y"] }, [c, b, a]],
    [{ tags: ["y", "none"] }, [c, b]],
    [{ tags: ["none"] }, []],
    [{ tags: [] }, [d, c, b, a]],
    [{ user_id: "ada", type: "fact" }, [a]],
    [{ user_id: "ada", type: "event", tags: ["y", "none"], session_id: adaAgain.id }, [b]],
    [{ user_id: "bo", session_id: ada.id }, []],
  ];
  for (const [filter, found] of cases) {
    const { data } = await cairn.search("The customer prefers tea.", filter);
    expect([filter, idsOf(data)]).toEqual([filter, idsOf(found)]);
  }
});

test("a query of nothing finds nothing, unless with a threshold of 0: then all, the newest first with score 0", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const added = await cairn.addMemories(session.id, ["tea", "?!", "🫖", " "]);
  for (const query of ["", " ", "\n\t", "\ud800"]) {
    expect(await cairn.search(query)).toEqual({ object: "list", query, data: [] });
    const { data } = await cairn.search(query, { threshold: 0, explain: true });
    expect(idsOf(data)).toEqual(idsOf(added).reverse());
    for (const { score, explanation } of data) {
      expect({ score, explanation }).toEqual({ score: 0, explanation: { semantic: 0, lexical: 0, matches: [] } });
    }
    expect(idsOf((await cairn.search(query, { threshold: 0, limit: 1 })).data)).toEqual([added[3]!.id]);
  }
});

test("a query of signs alone finds the memories that hold them, among thousands too", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const contents = ["Great job 😀", "😀", "Never again!!!", "It costs 40 € a month.", "We ❤️ it."];
  const held = idsOf(await cairn.addMemories(session.id, contents));
  const expected = { "😀": [held[1]!, held[0]!], "!!!": [held[2]!], "€": [held[3]!], "❤️": [held[4]!] };
  const find = async () => {
    const found: Record<string, string[]> = {};
    // What has another sign, or none, may be near in meaning, too: it comes after them.
    for (const [query, held] of Object.entries(expected)) found[query] = idsOf((await cairn.search(query)).data).slice(0, held.length);
    return found;
  };
  expect(await find()).toEqual(expected);
  await fillMemories(cairn, session, numberedTexts(3_000));
  expect(await find()).toEqual(expected);
});

test("with a threshold of 0 nothing is left out, however little it has to do with the query", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const added = idsOf(await cairn.addMemories(session.id, ["The harbour is closed.", "tea", "😀", "?", " "]));
  for (const query of ["tea", "Zbigniew", "😀", "!!!", "猫"]) {
    const { data } = await cairn.search(query, { threshold: 0 });
    expect(idsOf(data).sort()).toEqual(added.toSorted());
    const scores = data.map(({ score }: { score: number }) => score);
    expect(scores).toEqual(scores.toSorted((a: number, b: number) => b - a));
  }
});

test("explain adds why to each result, and changes nothing else", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  await cairn.addMemories(session.id, ["Her physician sees patients on Mondays.", "The doctor was late."]);
  const plain = await cairn.search("doctor Monday", { threshold: 0 });
  expect(await cairn.search("doctor Monday", { threshold: 0, explain: false })).toEqual(plain);
  const explained = await cairn.search("doctor Monday", { threshold: 0, explain: true });
  const without = explained.data.map((found: any) => Object.fromEntries(Object.entries(found).filter(([name]) => name !== "explanation")));
  expect({ ...explained, data: without }).toEqual(plain);
  const byContent = Object.fromEntries(explained.data.map(({ content, explanation }: any) => [content, explanation]));
  expect(byContent["Her physician sees patients on Mondays."]).toEqual({
    semantic: expect.any(Number),
    lexical: expect.any(Number),
    matches: [{ word: "Monday", matched_by: "word", matched_word: "Mondays", share: expect.any(Number) }],
  });
  expect(byContent["The doctor was late."].matches).toEqual([{ word: "doctor", matched_by: "word", share: expect.any(Number) }]);
});

test("of a long query explain shows the words that cover most, shortened, and how many more there are", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const common = "time people year work day good new house water money".split(" ");
  const rare = Array.from({ length: LIMITS.explainedWordsMax }, (_, i) => `parcel${i}${"x".repeat(100)}`);
  await cairn.addMemory(session.id, [...common, ...rare].join(" "));
  const explanationOf = async (words: readonly string[]) => {
    const { data } = await cairn.search(words.join(" "), { threshold: 0, explain: true });
    return data[0].explanation;
  };
  const all = await explanationOf([...common, ...rare]);
  expect(all.matches.map(({ word }: { word: string }) => word)).toEqual(
    rare.map((word) => `${word.slice(0, LIMITS.explainedWordLengthMax)}…`),
  );
  expect(all.omitted).toBeGreaterThan(0);
  expect(all.omitted).toBeLessThanOrEqual(common.length);
  expect(await explanationOf(rare)).not.toHaveProperty("omitted");
});

onEmbedded("an answer of a database lets others through anyway")(
  "other requests are answered while the results of a search are explained",
  async () => {
    await using cairn = await startCairn();
    const session = await cairn.createSession();
    await cairn.addMemories(session.id, Array(20).fill("The doctor was late."));
    const search = { session_id: session.id, threshold: 0, limit: 20 };
    // Once, for the vector of the question to be there.
    await cairn.search("doctor", search);
    const plain = await roundsDuring(cairn.search("doctor", search));
    expect(await roundsDuring(cairn.search("doctor", { ...search, explain: true }))).toBeGreaterThanOrEqual(plain + 20);
  },
);

onEmbedded("an answer of a database lets others through anyway")(
  "between the long texts that a search compares, other requests are answered",
  async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession();
    await Promise.all(Array.from({ length: 100 }, (_, i) => cairn.addMemory(id, syllables(9_990, i))));
    const search = { session_id: id, threshold: 0, limit: 1 };
    await cairn.search("좋아요", search);
    const plain = await roundsDuring(cairn.search("좋아요", search));
    expect(await roundsDuring(cairn.search(syllables(9_990, 100), search))).toBeGreaterThanOrEqual(plain + 10);
  },
);

test("a memory with the query's own words comes first among hundreds that are nearer, the newest first of many", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  const task = { type: "task", tags: ["call"] };
  const ids = idsOf(await cairn.addMemories(session.id, ["Call Alice", "call alice!", "CALL, Alice"], task)).reverse();
  for (const type of ["task", "chore"]) await cairn.addMemories(session.id, Array(120).fill("Call Alice on the phone"), { ...task, type });
  const { id: session_id } = session;
  for (const scope of [{ session_id }, { user_id: "ada" }, { tags: ["call"] }, { type: "task" }, { session_id, type: "task" }]) {
    const { data } = await cairn.search("Call Alice", { ...scope, threshold: 0, limit: 4 });
    expect(idsOf(data).slice(0, 3)).toEqual(ids);
    expect(data.map(({ score }: any) => score === 1)).toEqual([true, true, true, false]);
  }
  const context = await cairn.context(session.id, { query: "Call Alice", memory_limit: 3 });
  expect(idsOf(context.memories)).toEqual(ids);
});

test("a pair of query and memory has the same score among one, a hundred and fifty and five thousand memories", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const pairs = [
    { query: "How does the customer want to be contacted?", content: "The customer prefers e-mail to phone calls." },
    { query: "doctor's appointment", content: "Her physician sees patients on Mondays." },
    { query: "ORD-4471", content: "The order ORD-4471 was sent on 2024-05-07." },
  ];
  const scoreOf = async (query: string, id: string) => {
    const { data } = await cairn.search(query, { threshold: 0, limit: 50, explain: true });
    const { score, explanation } = data.find((found: { id: string }) => found.id === id);
    return { score, explanation };
  };
  const alone = [];
  for (const { query, content } of pairs) {
    const { id } = await cairn.addMemory(session.id, content);
    alone.push(await scoreOf(query, id));
    await cairn.ok(cairn.delete(`/v1/memory/${id}`));
  }
  const contents = pairs.map(({ content }) => content);
  const ids = idsOf(await cairn.addMemories(session.id, contents));
  const scores = () => Promise.all(pairs.map(({ query }, i) => scoreOf(query, ids[i] as string)));
  await fillMemories(cairn, session, numberedTexts(147));
  expect(await scores()).toEqual(alone);
  await fillMemories(cairn, session, numberedTexts(5_000).slice(150));
  expect(await scores()).toEqual(alone);
});

test("a memory is found as soon as it is answered, changed as soon as it is changed and gone as soon as it is deleted, while the index is being built", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  await fillMemories(cairn, session, numberedTexts(2_500));
  for (let i = 0; i < 10; i++) {
    const [before, after] = [`Zoltan left samovar ${i} on the ferry.`, `Ludmila took accordion ${i} to the opera.`];
    const { id } = await cairn.addMemory(session.id, before);
    expect((await cairn.search(before, { limit: 1 })).data).toMatchObject([{ id, score: 1, content: before }]);
    await cairn.ok(cairn.patch(`/v1/memory/${id}`, { content: after }));
    expect((await cairn.search(after, { limit: 1 })).data).toMatchObject([{ id, score: 1, content: after }]);
    expect(idsOf((await cairn.search(before, { threshold: 0, limit: 50 })).data.filter(({ score }: any) => score === 1))).toEqual([]);
    await cairn.ok(cairn.delete(`/v1/memory/${id}`));
    expect(idsOf((await cairn.search(after, { threshold: 0, limit: 50 })).data)).not.toContain(id);
  }
  expect(await cairn.count(vectors)).toBe(2_500);
});

test("a memory whose content changes while a search is under way is judged by the new content", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const tea = await cairn.addMemory(session.id, "Likes green tea.");
  const other = await cairn.addMemory(session.id, "Works in Berlin.");
  const { vectors } = cairn.service;
  const nearest = vectors.nearest.bind(vectors);
  let changes = 0;
  vectors.nearest = async (...asked) => {
    const found = await nearest(...asked);
    if (changes++ === 0) {
      await cairn.ok(cairn.patch(`/v1/memory/${tea.id}`, { content: "Plays the violin." }));
      await cairn.ok(cairn.patch(`/v1/memory/${other.id}`, { content: "Likes green tea." }));
    }
    return found;
  };
  const found = (await cairn.search("Likes green tea.", { threshold: 0 })).data;
  vectors.nearest = nearest;
  expect(found).toMatchObject([
    { id: other.id, content: "Likes green tea.", score: 1 },
    { id: tea.id, content: "Plays the violin." },
  ]);
  expect(found).toEqual((await cairn.search("Likes green tea.", { threshold: 0 })).data);
});

test("a session that is deleted while a search is under way leaves its places to others, when its memories go at once and when they go later", async () => {
  await using cairn = await startCairn();
  const kept = await cairn.addMemory((await cairn.createSession()).id, "Ada asked once whether there is coffee in the kitchen.");
  const { vectors } = cairn.service;
  const nearest = vectors.nearest.bind(vectors);
  for (const count of [150, 450]) {
    const session = await cairn.createSession();
    await fillMemories(
      cairn,
      session,
      Array.from({ length: count }, () => "coffee"),
    );
    let asked = 0;
    vectors.nearest = async (...given) => {
      const found = await nearest(...given);
      if (asked++ === 0) {
        await cairn.ok(cairn.delete(`/v1/sessions/${session.id}`));
        await cairn.runTask("session removal");
      }
      return found;
    };
    const { data } = await cairn.search("coffee", { threshold: 0 });
    vectors.nearest = nearest;
    expect([idsOf(data), asked]).toEqual([[kept.id], 2]);
  }
});

test("of the searches and contexts that keys ask for at once, each key's few are under way, and those of others do not wait behind them", async () => {
  await using cairn = await startCairn({ durability: "relaxed" });
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, "The doctor was late.");
  const other = await cairn.newKey();
  const { vectors } = cairn.service;
  const nearest = vectors.nearest.bind(vectors);
  let begun = 0;
  let ended = 0;
  let most = 0;
  let isFailing = false;
  vectors.nearest = (...asked) => {
    most = Math.max(most, ++begun - ended);
    if (isFailing) throw new Error("a fault of this test");
    return nearest(...asked);
  };
  const ask = async (path: string, key: string) => {
    const answer = await cairn.post(path, { query: "doctor", explain: true }, { key });
    ended++;
    return { status: answer.status, after: ended };
  };
  const paths = Array.from({ length: 60 }, (_, i) => (i % 2 === 0 ? "/v1/memory/search" : `/v1/sessions/${id}/context`));
  const many = paths.map((path) => ask(path, cairn.key));
  const one = ask("/v1/memory/search", other);
  expect((await Promise.all(many)).map(({ status }) => status)).toEqual(paths.map(() => 200));
  expect(await one).toMatchObject({ status: 200 });
  expect((await one).after).toBeLessThan(30);
  // An answer is counted a moment after the next one has begun.
  expect(most).toBeLessThan(2 * LIMITS.searchesOfKeyAtOnceMax);
  // Those that fail leave their places to others.
  isFailing = true;
  const failed = await Promise.all(paths.map((path) => ask(path, cairn.key)));
  expect(failed.map(({ status }) => status)).toEqual(paths.map(() => 500));
  isFailing = false;
  const keys = await Promise.all(Array.from({ length: 6 }, () => cairn.newKey()));
  [begun, ended, most] = [0, 0, 0];
  await Promise.all(keys.flatMap((key) => Array.from({ length: 10 }, () => ask("/v1/memory/search", key))));
  expect([begun, ended]).toEqual([60, 60]);
  expect(most).toBeLessThan(2 * LIMITS.searchesAtOnceMax);
});

test("of long texts that come at once one is embedded in each turn of the thread, whatever they are for", async () => {
  await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
  const { id } = await cairn.createSession();
  const text = "an appointment with the doctor ".repeat(100);
  const seen = { embedded: 0 };
  const slow =
    <Made>(make: (text: string) => Made) =>
    (given: string) => {
      seen.embedded++;
      const startedAt = performance.now();
      while (performance.now() - startedAt < 6);
      return make(given);
    };
  const real = new WordEmbedder();
  const query = real.embedQuery.bind(real);
  const memory = real.embedMemory.bind(real);
  using _ = spyOn(WordEmbedder.prototype, "embedQuery").mockImplementation(slow(query));
  using __ = spyOn(WordEmbedder.prototype, "embedMemory").mockImplementation(slow(memory));
  const each = [
    () => cairn.search(text),
    () => cairn.context(id, { query: text }),
    () => cairn.addMemory(id, text),
    () => cairn.post("/v1/documents/query", { operations: [{ op: "search", namespace: ["n"], query: text }] }),
  ];
  const asked = Promise.all(Array.from({ length: 40 }, (_, i) => each[i % each.length]!()));
  let most = 0;
  for (let before = 0; seen.embedded < 40;) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, seen.embedded - before);
    before = seen.embedded;
  }
  await asked;
  expect(seen.embedded).toBe(40);
  // This waits for its turn too: one may be embedded before it and one behind it.
  expect(most).toBeLessThanOrEqual(2);
});
