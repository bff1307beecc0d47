/**
 * Memories by chance that supersede each other, hold for a time, expire, are named, changed and deleted, compared with a plain model: what
 * is current, past and to come, now and at other moments, whether the task that removes what has expired has come by or not.
 *
 * @module
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { idsOf } from "../support/answers.ts";
import { startCairn, type Answer } from "../support/cairn.ts";
import { Chance } from "../support/process.ts";
import { longRounds } from "../support/rounds.ts";
import { pick } from "../support/seeds.ts";

const ASKED_SEED = process.env["CAIRN_TEST_SEED"];
const SEEDS = ASKED_SEED === undefined ? Array.from({ length: longRounds(6, 250) }, (_, i) => i + 1) : [Number(ASKED_SEED)];
/** With 250 seeds 100,000. */
const STEPS = 400;
setDefaultTimeout(240_000);

const HOUR = 3_600_000;
const USERS = ["ada", "bo"];
const NAMES = ["home", "work", "ü"];
const STATUSES = ["current", "past", "future", "all"] as const;

interface Kept {
  id: string;
  user: string;
  content: string;
  name: string | undefined;
  createdAt: number;
  from: number | undefined;
  until: number | undefined;
  end: number | undefined;
  supersedes: string[];
  by: Kept | undefined;
  isDeleted: boolean;
}

/** What there should be, in the order of creation. */
class Model {
  readonly all: Kept[] = [];
  now = 0;

  exists = (one: Kept): boolean => !one.isDeleted && (one.end === undefined || one.end > this.now);
  of = (user: string): Kept[] => this.all.filter((one) => one.user === user && this.exists(one));
  find = (id: string): Kept | undefined => this.all.find((one) => one.id === id && this.exists(one));
  named = (user: string, name: string | undefined): Kept | undefined =>
    name === undefined ? undefined : this.of(user).find((one) => one.name === name);

  status(one: Kept, at: number): (typeof STATUSES)[number] {
    if (one.from !== undefined && at < one.from) return "future";
    const { by } = one;
    const isReplaced = by !== undefined && this.exists(by) && at >= (by.from ?? by.createdAt) && (by.end === undefined || at < by.end);
    const hasEnded = (one.until !== undefined && at >= one.until) || (one.end !== undefined && at >= one.end);
    return isReplaced || hasEnded ? "past" : "current";
  }
}

const iso = (ms: number | null | undefined) => (ms === undefined || ms === null ? ms : new Date(ms).toISOString());
const isEmpty = (from: number | undefined, until: number | undefined) => from !== undefined && until !== undefined && until <= from;

/** What an operation should answer. */
type Expected = { status: number; code?: string };
const outcome = ({ status, body }: Answer): Expected => (status < 300 ? { status } : { status, code: body.error.code });

test("what is current, past and to come is what a plain model says, whatever came before", async () => {
  for (const seed of SEEDS) await runSeed(seed, new Chance(seed));
});

async function runSeed(seed: number, chance: Chance): Promise<void> {
  await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
  const model = new Model();
  const moment = () => model.now + (chance.below(73) - 36) * HOUR;
  const maybe = <Value>(one: number, value: () => Value): Value | undefined => (chance.below(one) === 0 ? value() : undefined);
  const anyId = (user: string) =>
    pick(chance, [...model.all.filter((one) => one.user === user).slice(-12), undefined])?.id ?? "mem_000000000000";

  const add = async (step: number): Promise<void> => {
    const user = pick(chance, USERS);
    const [from, until] = [maybe(4, moment), maybe(4, moment)];
    const ttl = maybe(4, () => 1 + chance.below(48));
    const supersedes = Array.from({ length: pick(chance, [0, 0, 1, 1, 2]) }, () =>
      anyId(chance.below(12) === 0 ? pick(chance, USERS) : user),
    );
    const name = maybe(3, () => pick(chance, NAMES));
    const ifExists = pick(chance, ["error", "update", "return"]);
    const content = `The customer said ${step}.`;
    const answer = await cairn.post("/v1/memory", {
      user_id: user,
      content,
      valid_from: iso(from),
      valid_until: iso(until),
      ttl_seconds: ttl === undefined ? undefined : (ttl * HOUR) / 1000,
      supersedes,
      external_id: name,
      if_exists: ifExists,
    });
    const end = ttl === undefined ? undefined : model.now + ttl * HOUR;
    const old = [...new Set(supersedes)].map((id) => model.find(id));
    const named = model.named(user, name);
    const there = named !== undefined && ifExists !== "update" && supersedes.includes(named.id) ? undefined : named;
    const expected = ((): Expected => {
      if (isEmpty(from, until)) return { status: 400, code: "invalid_request" };
      if (there !== undefined && ifExists === "error") return { status: 409, code: "already_exists" };
      if (there !== undefined && ifExists === "return") return { status: 200 };
      if (there !== undefined) {
        if (supersedes.length > 0) return { status: 409, code: "version_conflict" };
        const changed = { from: from ?? there.from, until: until ?? there.until };
        const isChanged = changed.from !== there.from || changed.until !== there.until;
        if (isChanged && isEmpty(changed.from, changed.until)) return { status: 400, code: "invalid_request" };
        Object.assign(there, { content, ...changed, end: end ?? there.end });
        return { status: 200 };
      }
      for (const one of old) {
        if (one === undefined || one.user !== user) return { status: 404, code: "memory_not_found" };
        if (one.by !== undefined && model.exists(one.by)) return { status: 409, code: "version_conflict" };
      }
      const start = from ?? (old.length > 0 ? model.now : undefined);
      if (isEmpty(start, until)) return { status: 400, code: "invalid_request" };
      return { status: 201 };
    })();
    expect({ seed, step, ...outcome(answer) }).toEqual({ seed, step, ...expected });
    if (expected.status === 200) expect(answer.body.id).toBe(there?.id);
    if (expected.status !== 201) return;
    const kept: Kept = {
      id: answer.body.id,
      user,
      content,
      name,
      createdAt: model.now,
      from: from ?? (old.length > 0 ? model.now : undefined),
      until,
      end,
      supersedes: [...new Set(supersedes)],
      by: undefined,
      isDeleted: false,
    };
    for (const one of old as Kept[]) {
      one.by = kept;
      if (one.name === name) one.name = undefined;
    }
    model.all.push(kept);
  };

  const change = async (step: number): Promise<void> => {
    const id = anyId(pick(chance, USERS));
    const pickTime = () => maybe(3, () => (chance.below(3) === 0 ? null : moment()));
    const [from, until] = [pickTime(), pickTime()];
    const ttl = maybe(4, () => 1 + chance.below(48));
    const end = ttl === undefined ? maybe(6, () => null) : undefined;
    const body = { valid_from: iso(from), valid_until: iso(until), expires_at: end, ttl_seconds: ttl && (ttl * HOUR) / 1000 };
    const answer = await cairn.patch(`/v1/memory/${id}`, JSON.parse(JSON.stringify(body)));
    const one = model.find(id);
    const expected = ((): Expected => {
      if (one === undefined) return { status: 404, code: "memory_not_found" };
      const start = from === undefined ? one.from : (from ?? (one.supersedes.length > 0 ? one.createdAt : undefined));
      const stop = until === undefined ? one.until : (until ?? undefined);
      if ((start !== one.from || stop !== one.until) && isEmpty(start, stop)) return { status: 400, code: "invalid_request" };
      Object.assign(one, { from: start, until: stop });
      if (ttl !== undefined) one.end = model.now + ttl * HOUR;
      else if (end === null) one.end = undefined;
      return { status: 200 };
    })();
    expect({ seed, step, ...outcome(answer) }).toEqual({ seed, step, ...expected });
  };

  const remove = async (step: number): Promise<void> => {
    const id = anyId(pick(chance, USERS));
    const one = model.find(id);
    const answer = await cairn.delete(`/v1/memory/${id}`);
    expect({ seed, step, ...outcome(answer) }).toEqual({
      seed,
      step,
      ...(one === undefined ? { status: 404, code: "memory_not_found" } : { status: 200 }),
    });
    if (one !== undefined) one.isDeleted = true;
  };

  const compare = async (step: number): Promise<void> => {
    const user = pick(chance, USERS);
    const status = pick(chance, STATUSES);
    const at = maybe(2, moment);
    const query = { status, ...(at === undefined ? {} : { as_of: iso(at) as string }) };
    const there = model.of(user).filter((one) => status === "all" || model.status(one, at ?? model.now) === status);
    const expected = there.toReversed().map(({ id, content }) => ({ id, content }));
    const listed = await cairn.list(`/v1/memory?limit=100&user_id=${user}&${String(new URLSearchParams(query))}`);
    expect({ seed, step, query, listed: listed.map(({ id, content }) => ({ id, content })) }).toEqual({
      seed,
      step,
      query,
      listed: expected.slice(0, 100),
    });
    const { data } = await cairn.search("The customer said", { user_id: user, threshold: 0, limit: 50, ...query });
    expect({ seed, step, query, found: data.length }).toEqual({ seed, step, query, found: Math.min(50, expected.length) });
    expect(idsOf(expected)).toEqual(expect.arrayContaining(idsOf(data)));
  };

  for (let step = 0; step < STEPS; step++) {
    model.now = cairn.clock.now();
    const kind = chance.below(20);
    if (kind < 7) await add(step);
    else if (kind < 10) await change(step);
    else if (kind < 12) await remove(step);
    else if (kind < 18) await compare(step);
    else if (kind < 19) cairn.clock.advance({ hours: 1 + chance.below(12) });
    else await cairn.runTask("memory expiry");
  }
  expect({ seed, findings: await cairn.findings() }).toEqual({ seed, findings: [] });
}
