import { expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import { firstByRanking, rankingParts, weightsOf } from "../src/memories/ranking-score.ts";
import { idsOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";

setDefaultTimeout(600_000);

const DAY_MS = 86_400_000;
const search = async (cairn: Cairn, query: string, more: object = {}) =>
  (await cairn.ok(cairn.post("/v1/memory/search", { query, threshold: 0, ...more }))).data as any[];
const rounded = (value: number) => Math.round(value * 1e6) / 1e6;

/** Adds memories that say the same in other words, and when each happened. */
async function addAged(cairn: Cairn, memories: { content: string; days?: number; importance?: number }[]) {
  const { id } = await cairn.createSession({ user_id: "ada" });
  const added = [];
  for (const { content, days, importance } of memories) {
    const occurred_at = days === undefined ? undefined : new Date(cairn.clock.now() - days * DAY_MS).toISOString();
    added.push(await cairn.addMemory(id, content, { occurred_at, importance }));
  }
  return { id, added };
}

test("with recency newer memories come first, half of what depends on age being left after each half-life", async () => {
  await using cairn = await startCairn();
  const { id, added } = await addAged(cairn, [
    { content: "Ada drinks green tea every morning.", days: 20 },
    { content: "Ada drinks tea.", days: 0 },
  ]);
  const query = "Ada drinks green tea every morning.";
  const plain = await search(cairn, query);
  expect(idsOf(plain)).toEqual(idsOf(added));
  const recency = { half_life_days: 10, weight: 1 };
  const found = await search(cairn, query, { recency });
  expect(idsOf(found)).toEqual(idsOf(added.toReversed()));
  expect(found.map(({ score }) => score)).toEqual(plain.map(({ score }) => score).toReversed());
  expect(found.map(({ ranking_score }) => ranking_score)).toEqual([rounded(plain[1].score), rounded(plain[0].score / 4)]);
  expect(idsOf((await cairn.context(id, { query, recency })).memories)).toEqual(idsOf(found));
  expect((await cairn.context(id, { query, recency })).memories.map(({ ranking_score }: any) => ranking_score)).toEqual(
    found.map(({ ranking_score }) => ranking_score),
  );
});

test("with importance_weight what is important comes first, and one that nobody has weighed counts as half", async () => {
  await using cairn = await startCairn();
  const content = "Ada drinks tea.";
  const { added } = await addAged(cairn, [
    { content, importance: 0 },
    { content },
    { content, importance: 1 },
    { content, importance: 0.5 },
  ]);
  const found = await search(cairn, content, { importance_weight: 0.4 });
  expect(found.map(({ id, ranking_score }) => [id, ranking_score])).toEqual([
    [added[2].id, 1],
    [added[3].id, 0.8],
    [added[1].id, 0.8],
    [added[0].id, 0.6],
  ]);
});

test("without them nothing changes, and weights of 0 change no order", async () => {
  await using cairn = await startCairn();
  await addAged(cairn, [
    { content: "Ada drinks tea.", days: 3, importance: 1 },
    { content: "Ada drinks green tea.", days: 400 },
    { content: "Ada drinks tea.", days: 2 },
  ]);
  const plain = await search(cairn, "Does Ada drink green tea?");
  expect(plain.every((one) => !Object.hasOwn(one, "ranking_score"))).toBe(true);
  for (const nothing of [{ recency: null }, { importance_weight: null }])
    expect(await search(cairn, "Does Ada drink green tea?", nothing)).toEqual(plain);
  const weighed = await search(cairn, "Does Ada drink green tea?", { recency: { half_life_days: 1, weight: 0 }, importance_weight: 0 });
  expect(weighed).toEqual(plain.map((one) => ({ ...one, ranking_score: one.score })));
});

test("what is to come has the age 0, a half-life of 0 leaves nothing of what is old, and of equal ones the newer is first", async () => {
  await using cairn = await startCairn();
  const content = "Ada drinks tea.";
  const { added } = await addAged(cairn, [
    { content, days: -1 },
    { content, days: 0 },
    { content, days: 1 },
    { content, days: 2 },
  ]);
  const found = await search(cairn, content, { recency: { half_life_days: 0, weight: 1 } });
  expect(found.map(({ id, ranking_score }) => [id, ranking_score])).toEqual([
    [added[1].id, 1],
    [added[0].id, 1],
    [added[3].id, 0],
    [added[2].id, 0],
  ]);
  const half = await search(cairn, content, { recency: { half_life_days: 0, weight: 0.5 }, limit: 3 });
  expect(half.map(({ ranking_score }) => ranking_score)).toEqual([1, 1, 0.5]);
});

test("ages count to the moment that is asked for, and the threshold is one of the score", async () => {
  await using cairn = await startCairn();
  const content = "Ada drinks tea.";
  await addAged(cairn, [{ content, days: 10 }]);
  const as_of = new Date(cairn.clock.now() - 5 * DAY_MS).toISOString();
  const recency = { half_life_days: 5, weight: 1 };
  const [then] = await search(cairn, content, { recency, as_of, threshold: 1 });
  expect([then.score, then.ranking_score]).toEqual([1, 0.5]);
  const [now] = await search(cairn, content, { recency, threshold: 1 });
  expect([now.score, now.ranking_score]).toEqual([1, 0.25]);
});

test("explain says what the filters, the age and the importance did: the score times both factors is the ranking score", async () => {
  await using cairn = await startCairn();
  const { id } = await addAged(
    cairn,
    Array.from({ length: 30 }, (_, i) => ({
      content: `Ada drinks ${["green", "black", "white"][i % 3]} tea number ${i}.`,
      days: i * 1.37,
      ...(i % 4 === 0 ? {} : { importance: i / 30 }),
    })),
  );
  const weights = { recency: { half_life_days: 7.5, weight: 0.37 }, importance_weight: 0.21 };
  const request = { query: "Which tea does Ada drink?", explain: true, ...weights };
  const found = await search(cairn, request.query, { ...request, user_id: "ada", tags: [], limit: 30 });
  expect(found).toHaveLength(30);
  for (const { explanation, score, ranking_score, id: memory } of found) {
    const { importance } = await cairn.ok(cairn.get(`/v1/memory/${memory}`));
    expect(explanation.filters).toEqual(["user_id"]);
    expect(explanation.importance.importance).toBe(importance);
    expect(rounded(score * explanation.recency.factor * explanation.importance.factor)).toBe(ranking_score);
  }
  const ages = found.map(({ explanation }) => explanation.recency.age_days).toSorted((a, b) => a - b);
  expect(ages).toEqual(Array.from({ length: 30 }, (_, i) => rounded(i * 1.37)));
  const { memories } = await cairn.context(id, { ...request, memory_limit: 20 });
  const explained = (some: any[]) => some.map(({ id: memory, explanation: { recency, importance } }) => ({ memory, recency, importance }));
  expect(explained(memories)).toEqual(explained(found.slice(0, 20)));
});

test("what is wrong with recency and importance_weight is said with its place", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const wrong: [object, string][] = [
    [{ recency: 1 }, "recency"],
    [{ recency: {} }, "recency.half_life_days"],
    [{ recency: { half_life_days: -1, weight: 0 } }, "recency.half_life_days"],
    [{ recency: { half_life_days: 1, weight: 1.1 } }, "recency.weight"],
    [{ recency: { half_life_days: 1e300, weight: 1 } }, "recency.half_life_days"],
    [{ recency: { halfLifeDays: 1, weight: 1 } }, "recency.halfLifeDays"],
    [{ importance_weight: -0.1 }, "importance_weight"],
    [{ importance_weight: "1" }, "importance_weight"],
  ];
  for (const [more, param] of wrong) {
    const expected = { status: 400, code: "invalid_request", param };
    expect(refusal(await cairn.post("/v1/memory/search", { query: "tea", ...more }))).toEqual(expected);
    expect(refusal(await cairn.post(`/v1/sessions/${id}/context`, { query: "tea", ...more }))).toEqual(expected);
  }
});

test("the first by ranking score are those of sorting all, however few matches are read", () => {
  const match = fc.record({
    score: fc.integer({ min: 0, max: 20 }).map((n) => n / 20),
    importance: fc.option(
      fc.integer({ min: 0, max: 4 }).map((n) => n / 4),
      { nil: undefined },
    ),
    createdAt: fc.integer({ min: -3, max: 40 }).map((days) => days * DAY_MS),
  });
  const at = 37 * DAY_MS;
  fc.assert(
    fc.property(
      fc.array(match, { maxLength: 200 }),
      fc.record({
        half_life_days: fc.constantFrom(0, 0.01, 3, 1e6),
        weight: fc.constantFrom(0, 0.3, 1),
      }),
      fc.option(fc.constantFrom(0, 0.5, 1), { nil: undefined }),
      fc.integer({ min: 1, max: 12 }),
      (some, recency, importanceWeight, limit) => {
        const weights = weightsOf({ recency, importanceWeight })!;
        const matches = some
          .map(({ score, ...row }, i) => ({ key: String(i).padStart(4, "0"), score, row: row as never }))
          .toSorted((a, b) => b.score - a.score);
        const all = matches
          .map((one) => ({ ...one, parts: rankingParts(weights, one.score, one.row, at) }))
          .toSorted((a, b) => b.parts.rankingScore - a.parts.rankingScore || (a.key < b.key ? 1 : -1));
        expect(firstByRanking(matches, weights, { limit, at })).toEqual(all.slice(0, limit));
      },
    ),
  );
});

for (const graphFrom of [undefined, 0]) {
  test(`the first ten are those of an exhaustive ranking, with and without a graph: ${graphFrom ?? "without"}`, async () => {
    await using cairn = await startCairn({ index: { graphFrom } });
    const sessions = await Promise.all(["ada", "bob"].map((user_id) => cairn.createSession({ user_id })));
    const subjects = ["tea", "coffee", "trains", "music", "rain", "bread", "books", "boats"];
    const rows: any[] = [];
    // Many that say nearly the same, the best of them old.
    for (let i = 0; i < 1_200; i += 100) {
      const memories = Array.from({ length: 100 }, (_, j) => {
        const n = i + j;
        const about = subjects.filter((_, k) => (n >> k) % 2 === 1).join(", ") || "nothing";
        return {
          session_id: sessions[n % 2].id,
          content: `Note ${n}: talked about ${about}.`,
          tags: [`part-${Math.floor(n / 50)}`],
          occurred_at: new Date(cairn.clock.now() - ((n * 7919) % 1_000) * DAY_MS).toISOString(),
          ...(n % 3 === 0 ? {} : { importance: (n % 11) / 10 }),
        };
      });
      rows.push(...(await cairn.ok(cairn.post("/v1/memory/batch", { memories }))).data);
    }
    let [found, wanted] = [0, 0];
    for (const owner of [{}, { user_id: "ada" }]) {
      for (const query of ["What was said about tea and trains?", "music, rain and boats", "Note 77"]) {
        const scores = await allScores(cairn, query, owner, rows);
        for (const weights of [
          { recency: { half_life_days: 30, weight: 0.5 } },
          { recency: { half_life_days: 7, weight: 1 }, importance_weight: 0.5 },
          { importance_weight: 1 },
        ]) {
          const expected = firstByRanking(scores, weightsOf({ recency: weights.recency, importanceWeight: weights.importance_weight })!, {
            limit: 10,
            at: cairn.clock.now(),
          });
          const ids = new Set(idsOf(await search(cairn, query, { ...owner, ...weights })));
          wanted += expected.length;
          found += expected.filter(({ key }) => ids.has(key)).length;
        }
      }
    }
    expect(wanted).toBe(180);
    expect(found / wanted).toBeGreaterThanOrEqual(0.95);
  });
}

/** The score of each memory for a query. All of a tag are looked at closely, so that no search has to choose. */
async function allScores(cairn: Cairn, query: string, owner: { user_id?: string }, rows: any[]) {
  const matches: any[] = [];
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const tag of new Set(rows.map(({ tags }) => tags[0]))) {
    for (const { id, score } of await search(cairn, query, { ...owner, tags: [tag], limit: 50 })) {
      const { importance, occurred_at } = byId.get(id);
      matches.push({ key: id, score, row: { importance: importance ?? undefined, occurredAt: Date.parse(occurred_at) } });
    }
  }
  expect(matches).toHaveLength(rows.filter(({ user_id }) => owner.user_id === undefined || user_id === owner.user_id).length);
  return matches.toSorted((a, b) => b.score - a.score);
}
