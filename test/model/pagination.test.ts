/**
 * Every page together lists each record once, newest first, whatever the filters, the size of a page, and what is deleted
 * or made while somebody turns the pages. The model is an array and `filter`.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { startCairn, type Cairn } from "../support/cairn.ts";

/** For a machine that is busy with other things: a run takes a second or two. */
const TIMEOUT_MS = 60_000;

/** Something that happens while the pages are turned: `at` picks the record, between 0 and 1. */
interface Meanwhile {
  delete: boolean;
  at: number;
}

const USERS = ["ada", "bo", "ü & b"];
const user = fc.constantFrom(null, ...USERS);
const limit = fc.integer({ min: 1, max: 9 });
const meanwhile = fc.array(fc.record({ delete: fc.boolean(), at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }) }), {
  maxLength: 12,
});
/** How much a page may look at before it ends early: mostly so little that most pages do. */
const listLooksMax = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constant(1_000));
const optional = <Value>(values: readonly Value[]) => fc.option(fc.constantFrom(...values), { nil: undefined });

function queryOf(filter: Record<string, string | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, value);
  return query.toString();
}

/** Turns the pages of a list, with `between` after each, and gives all that they showed. */
async function turnPages(cairn: Cairn, path: string, pageLimit: number, query: string, between: () => Promise<unknown>): Promise<any[]> {
  const shown: any[] = [];
  let before = "~";
  for (let after = ""; ;) {
    const page = await cairn.ok(cairn.get(`${path}?limit=${pageLimit}&${query}${after}`));
    expect(page).toMatchObject({ object: "list", first_id: page.data[0]?.id ?? null });
    expect(page.data.length).toBeLessThanOrEqual(pageLimit);
    shown.push(...page.data);
    const last = page.data.at(-1)?.id ?? null;
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

/** What was shown is, in order, what passes: all that is still there, and of what was deleted meanwhile perhaps some. */
function expectEachOnce(shown: readonly string[], passing: readonly string[], deleted: ReadonlySet<string>): void {
  const newestFirst = passing.toSorted().reverse();
  const shownOnce = new Set(shown);
  expect(shown).toEqual(newestFirst.filter((id) => !deleted.has(id) || shownOnce.has(id)));
}

/** Deletes a record or makes another, as `plan` says, one step per call. */
function changesOf(plan: Meanwhile[], ids: string[], deleted: Set<string>, remove: (id: string) => unknown, add: () => unknown) {
  const steps = plan.values();
  return async () => {
    const step = steps.next().value;
    if (step === undefined) return;
    const there = ids.filter((id) => !deleted.has(id));
    const victim = there[Math.floor(step.at * there.length)];
    if (!step.delete || victim === undefined) {
      await add();
    } else {
      await remove(victim);
      deleted.add(victim);
    }
  };
}

test(
  "the pages of sessions list each session once",
  async () => {
    const session = fc.record({ agent_id: fc.constantFrom("a", "b"), user_id: user });
    const look = fc.record({ agent_id: optional(["a", "b", "c"]), user_id: optional(USERS), limit, meanwhile });
    await fc.assert(
      fc.asyncProperty(
        fc.array(session, { maxLength: 90 }),
        fc.array(look, { minLength: 1, maxLength: 6 }),
        listLooksMax,
        async (sessions, looks, looksMax) => {
          await using cairn = await startCairn({ listLooksMax: looksMax });
          const made: any[] = await Promise.all(sessions.map((body) => cairn.createSession(body)));
          const deleted = new Set<string>();
          for (const { agent_id, user_id, limit: pageLimit, meanwhile: plan } of looks) {
            const there = made.filter(({ id }) => !deleted.has(id));
            const passing = there.filter(
              (one) => (agent_id === undefined || one.agent_id === agent_id) && (user_id === undefined || one.user_id === user_id),
            );
            const between = changesOf(
              plan,
              there.map(({ id }) => id),
              deleted,
              (id) => cairn.ok(cairn.delete(`/v1/sessions/${id}`)),
              async () => made.push(await cairn.createSession({ agent_id: "a", user_id: "ada" })),
            );
            const shown = await turnPages(cairn, "/v1/sessions", pageLimit, queryOf({ agent_id, user_id }), between);
            expectEachOnce(
              shown.map(({ id }) => id),
              passing.map(({ id }) => id),
              deleted,
            );
          }
        },
      ),
      { numRuns: 15 },
    );
  },
  TIMEOUT_MS,
);

test(
  "the pages of memories list each memory once",
  async () => {
    const TAGS = ["x", "y", "ü t"];
    const memory = fc.record({ owner: fc.nat(2), type: fc.constantFrom("fact", "event"), tags: fc.uniqueArray(fc.constantFrom(...TAGS)) });
    const look = fc.record({
      owner: fc.option(fc.nat(2), { nil: undefined }),
      user_id: optional(USERS),
      type: optional(["fact", "event", "policy"]),
      tags: fc.option(fc.uniqueArray(fc.constantFrom(...TAGS, "none"), { minLength: 1 }), { nil: undefined }),
      limit,
      meanwhile,
    });
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(user, user, user),
        fc.array(memory, { maxLength: 120 }),
        fc.array(look, { minLength: 1, maxLength: 6 }),
        listLooksMax,
        async (owners, memories, looks, looksMax) => {
          await using cairn = await startCairn({ listLooksMax: looksMax });
          const sessions = await Promise.all(owners.map((user_id) => cairn.createSession({ user_id })));
          const add = ({ owner, type, tags }: { owner: number; type: string; tags: string[] }) =>
            cairn.addMemory(sessions[owner].id, "Likes tea.", { type, tags, embed: false });
          const made: any[] = await Promise.all(memories.map(add));
          const deleted = new Set<string>();
          for (const { owner, user_id, type, tags, limit: pageLimit, meanwhile: plan } of looks) {
            const session_id: string | undefined = owner === undefined ? undefined : sessions[owner].id;
            const userOf = new Map(sessions.map((session) => [session.id, session.user_id]));
            const there = made.filter(({ id }) => !deleted.has(id));
            const passing = there.filter(
              (one) =>
                (session_id === undefined || one.session_id === session_id) &&
                (user_id === undefined || userOf.get(one.session_id) === user_id) &&
                (type === undefined || one.type === type) &&
                (tags === undefined || tags.some((tag) => one.tags.includes(tag))),
            );
            const between = changesOf(
              plan,
              there.map(({ id }) => id),
              deleted,
              (id) => cairn.ok(cairn.delete(`/v1/memory/${id}`)),
              async () => made.push(await add({ owner: 0, type: "fact", tags: ["x"] })),
            );
            const query = queryOf({ session_id, user_id, type, tags: tags?.join(",") });
            const shown = await turnPages(cairn, "/v1/memory", pageLimit, query, between);
            expectEachOnce(
              shown.map(({ id }) => id),
              passing.map(({ id }) => id),
              deleted,
            );
          }
        },
      ),
      { numRuns: 15 },
    );
  },
  TIMEOUT_MS,
);

function numberOf({ action, details }: any): number {
  return action === "turn.added" ? details.turn_number : action === "state.updated" ? details.version : 0;
}

test(
  "the pages of traces list each trace once, also those of sessions that are gone",
  async () => {
    const ACTIONS = ["session.created", "session.deleted", "state.updated", "turn.added"] as const;
    /** A change of the session that `of` picks, some milliseconds after the one before. */
    const change = fc.record({ of: fc.nat(), action: fc.constantFrom(...ACTIONS), userId: user, laterMs: fc.constantFrom(0, 0, 0, 1, 5) });
    const start = Date.parse("2026-05-07T08:00:00.000Z");
    const instant = fc.option(
      fc.integer({ min: -2, max: 80 }).map((ms) => new Date(start + ms).toISOString()),
      { nil: undefined },
    );
    const look = fc.record({
      of: fc.option(fc.nat(), { nil: undefined }),
      user_id: optional(USERS),
      action: optional(ACTIONS),
      created_after: instant,
      created_before: instant,
      limit,
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(change, { maxLength: 70 }),
        fc.array(look, { minLength: 1, maxLength: 8 }),
        listLooksMax,
        async (changes, looks, looksMax) => {
          await using cairn = await startCairn({ listLooksMax: looksMax });
          const sessions: { id: string; user_id: string | null; live: boolean }[] = [];
          /** Oldest first; `number` tells changes of the same session and action apart. */
          const left: { session_id: string; user_id: string | null; action: string; timestamp: string; number: number }[] = [];
          for (const { of, action, userId, laterMs } of changes) {
            cairn.clock.advance({ ms: laterMs });
            const live = sessions.filter((session) => session.live);
            let session = live[of % Math.max(1, live.length)];
            let done: (typeof ACTIONS)[number] = action;
            let number = 0;
            if (session === undefined || action === "session.created") {
              const made = await cairn.createSession({ user_id: userId });
              session = { id: made.id, user_id: userId, live: true };
              sessions.push(session);
              done = "session.created";
            } else if (action === "session.deleted") {
              await cairn.ok(cairn.delete(`/v1/sessions/${session.id}`));
              session.live = false;
            } else if (action === "state.updated") {
              number = (await cairn.setState(session.id, {})).state_version;
            } else {
              number = (await cairn.addTurn(session.id)).turn_number;
            }
            left.push({
              session_id: session.id,
              user_id: session.user_id,
              action: done,
              timestamp: new Date(cairn.clock.now()).toISOString(),
              number,
            });
          }
          for (const { of, user_id, action, created_after, created_before, limit: pageLimit } of looks) {
            const session_id = of === undefined ? undefined : sessions[of % Math.max(1, sessions.length)]?.id;
            const passing = left.filter(
              (one) =>
                (session_id === undefined || one.session_id === session_id) &&
                (user_id === undefined || one.user_id === user_id) &&
                (action === undefined || one.action === action) &&
                (created_after === undefined || one.timestamp > created_after) &&
                (created_before === undefined || one.timestamp < created_before),
            );
            const query = queryOf({ session_id, user_id, action, created_after, created_before });
            const shown = await turnPages(cairn, "/v1/traces", pageLimit, query, () => Promise.resolve());
            // The first key's own trace is of no session.
            const facts = shown
              .filter((trace) => trace.session_id !== null)
              .map((trace) => ({
                session_id: trace.session_id,
                user_id: trace.user_id ?? null,
                action: trace.action,
                timestamp: trace.timestamp,
                number: numberOf(trace),
              }));
            expect(facts).toEqual(passing.toReversed());
          }
        },
      ),
      { numRuns: 15 },
    );
  },
  TIMEOUT_MS,
);
