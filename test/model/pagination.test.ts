/**
 * Every page together lists each record once, newest first, whatever the filters, the size of a page, and what is deleted
 * or made while somebody turns the pages. The model is an array and `filter`.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { startCairn, type Cairn } from "../support/cairn.ts";

type Fields = Record<string, any>;

interface List {
  path: string;
  record: fc.Arbitrary<Fields>;
  filter: fc.Arbitrary<Fields>;
  /** Whether what a record becomes depends on those before it. */
  isInOrder?: true;
  /** `add` gives a record as the list shows it, with what can be filtered by; without `remove` none is deleted. */
  start: (cairn: Cairn) => Promise<{
    add: (record: Fields) => Promise<Fields>;
    remove?: (id: string) => Promise<unknown>;
    filterOf: (filter: Fields) => Fields;
    /** What is listed already. */
    given?: Fields[];
  }>;
}

interface Look {
  drawn: Fields;
  limit: number;
  /** What happens between two pages: a record is made, or the one at this share of them is deleted. */
  meanwhile: (Fields | number)[];
}

const USERS = ["ada", "bo", "ü & b"];
const TAGS = ["x", "y", "ü t"];
const ACTIONS = ["session.created", "session.deleted", "state.updated", "turn.added"];
const START = Date.parse("2026-05-07T08:00:00.000Z");

const user = fc.constantFrom(null, ...USERS);
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const instant = fc.integer({ min: -2, max: 80 }).map((ms) => new Date(START + ms).toISOString());

const LISTS: Record<string, List> = {
  sessions: {
    path: "/v1/sessions",
    record: fc.record({ agent_id: fc.constantFrom("a", "b"), user_id: user }),
    filter: fc.record({ agent_id: optional(fc.constantFrom("a", "b", "c")), user_id: optional(fc.constantFrom(...USERS)) }),
    start: (cairn) =>
      Promise.resolve({
        add: (record) => cairn.createSession(record),
        remove: (id) => cairn.ok(cairn.delete(`/v1/sessions/${id}`)),
        filterOf: (filter) => filter,
      }),
  },
  memories: {
    path: "/v1/memory",
    record: fc.record({ owner: fc.nat(2), type: fc.constantFrom("fact", "event"), tags: fc.uniqueArray(fc.constantFrom(...TAGS)) }),
    filter: fc.record({
      owner: optional(fc.nat(2)),
      user_id: optional(fc.constantFrom(...USERS)),
      type: optional(fc.constantFrom("fact", "event", "policy")),
      tags: optional(fc.uniqueArray(fc.constantFrom(...TAGS, "none"), { minLength: 1 })),
    }),
    async start(cairn) {
      const owners = await Promise.all(["ada", "ada", null].map((user_id) => cairn.createSession({ user_id })));
      return {
        async add({ owner, type, tags }) {
          const memory = await cairn.addMemory(owners[owner].id, "Likes tea.", { type, tags, embed: false });
          return { ...memory, user_id: owners[owner].user_id };
        },
        remove: (id) => cairn.ok(cairn.delete(`/v1/memory/${id}`)),
        filterOf: ({ owner, ...filter }) => ({ session_id: owners[owner]?.id, ...filter }),
      };
    },
  },
  traces: {
    path: "/v1/traces",
    /** A change of the session that `of` picks, some milliseconds after the one before. */
    record: fc.record({ of: fc.nat(), action: fc.constantFrom(...ACTIONS), user_id: user, laterMs: fc.constantFrom(0, 0, 0, 1, 5) }),
    filter: fc.record({
      of: optional(fc.nat()),
      user_id: optional(fc.constantFrom(...USERS)),
      action: optional(fc.constantFrom(...ACTIONS)),
      created_after: optional(instant),
      created_before: optional(instant),
    }),
    isInOrder: true,
    async start(cairn) {
      const sessions: string[] = [];
      const live: string[] = [];
      const change = async (action: string, id: string | undefined, user_id: string | null) => {
        if (id === undefined || action === "session.created") {
          const made = await cairn.createSession({ user_id });
          sessions.push(made.id);
          live.push(made.id);
          return { session_id: made.id, action: "session.created" };
        }
        if (action === "session.deleted") live.splice(live.indexOf(id), 1);
        if (action === "session.deleted") await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
        else await (action === "turn.added" ? cairn.addTurn(id) : cairn.setState(id, {}));
        return { session_id: id, action };
      };
      return {
        // That of the first key.
        given: (await cairn.ok(cairn.get("/v1/traces"))).data,
        async add({ of, action, user_id, laterMs }) {
          cairn.clock.advance({ ms: laterMs });
          const made = await change(action, live[of % Math.max(1, live.length)], user_id);
          const [trace] = (await cairn.ok(cairn.get("/v1/traces?limit=1"))).data;
          expect(trace).toMatchObject({ ...made, timestamp: new Date(cairn.clock.now()).toISOString() });
          return { ...trace, user_id: trace.user_id ?? null };
        },
        filterOf: ({ of, ...filter }) => ({ session_id: sessions[of % Math.max(1, sessions.length)], ...filter }),
      };
    },
  },
};

function passes(one: Fields, filter: Fields): boolean {
  return Object.entries(filter).every(([name, value]) => {
    if (value === undefined) return true;
    if (name === "tags") return value.some((tag: string) => one["tags"].includes(tag));
    if (name === "created_after") return one["timestamp"] > value;
    if (name === "created_before") return one["timestamp"] < value;
    return one[name] === value;
  });
}

function queryOf(filter: Fields): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
  return query.toString();
}

/** Turns the pages of a list, with `between` after each. @returns the ids that they showed */
async function turnPages(cairn: Cairn, path: string, limit: number, query: string, between: () => Promise<unknown>): Promise<string[]> {
  const shown: string[] = [];
  let before = "~";
  for (let after = ""; ;) {
    const page = await cairn.ok(cairn.get(`${path}?limit=${limit}&${query}${after}`));
    const ids = page.data.map(({ id }: { id: string }) => id);
    expect(page).toMatchObject({ object: "list", first_id: ids[0] ?? null });
    expect(ids.length).toBeLessThanOrEqual(limit);
    shown.push(...ids);
    const last = ids.at(-1) ?? null;
    if (page.has_more !== true) {
      expect(page.last_id).toBe(last);
      return shown;
    }
    // A page that ends early, even an empty one, leads on all the same, to older records than the page before.
    expect(page.last_id < (last ?? before)).toBe(page.last_id !== last);
    before = page.last_id;
    await between();
    after = `&starting_after=${page.last_id}`;
  }
}

/** How much a page may look at before it ends early: mostly so little that most pages do. */
const listProbesMax = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constant(1_000));

for (const [name, { path, record, filter, isInOrder, start }] of Object.entries(LISTS)) {
  test(`the pages of ${name} list each of them once`, async () => {
    const change = fc.oneof(record, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }));
    const look = fc.record({ drawn: filter, limit: fc.integer({ min: 1, max: 9 }), meanwhile: fc.array(change, { maxLength: 12 }) });
    const records = fc.array(record, { maxLength: 100 });
    const property = async (first: Fields[], looks: Look[], probesMax: number) => {
      await using cairn = await startCairn({ listProbesMax: probesMax });
      const { add, remove, filterOf, given = [] } = await start(cairn);
      const made = [...given, ...(isInOrder ? [] : await Promise.all(first.map(add)))];
      if (isInOrder) for (const one of first) made.push(await add(one));
      const deleted = new Set<string>();
      for (const { drawn, limit, meanwhile } of looks) {
        const there = made.filter(({ id }) => !deleted.has(id));
        const asked = filterOf(drawn);
        const passing = there.filter((one) => passes(one, asked)).map(({ id }) => id as string);
        const changes = meanwhile.values();
        const shown = await turnPages(cairn, path, limit, queryOf(asked), async () => {
          const next = changes.next().value;
          if (typeof next === "object") made.push(await add(next));
          const left = there.filter(({ id }) => !deleted.has(id));
          const victim = typeof next === "number" && remove !== undefined ? left[Math.floor(next * left.length)] : undefined;
          if (victim === undefined) return;
          await remove?.(victim["id"]);
          deleted.add(victim["id"]);
        });
        // All that is still there, and of what was deleted meanwhile perhaps some.
        const shownOnce = new Set(shown);
        expect(shown).toEqual(
          passing
            .toSorted()
            .reverse()
            .filter((id) => !deleted.has(id) || shownOnce.has(id)),
        );
      }
    };
    await fc.assert(fc.asyncProperty(records, fc.array(look, { minLength: 1, maxLength: 6 }), listProbesMax, property), { numRuns: 15 });
  });
}
