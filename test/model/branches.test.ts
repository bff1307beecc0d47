/**
 * What sessions show of their turns, after rollbacks that keep or hide them, forks and forks of forks, batches, steps and deletions by chance,
 * next to a model that copies lists.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { branches, turns } from "../../src/storage/tables.ts";
import { pagesOf } from "../support/answers.ts";
import { startCairn, type Cairn } from "../support/cairn.ts";
import type { Chance } from "../support/process.ts";
import { pick, withSeeds } from "../support/seeds.ts";

const OPERATIONS = 60;
const VERSIONS_KEPT = 5;

/** On PostgreSQL, and with other work on the machine, 50 seeds take minutes. */
setDefaultTimeout(1_800_000);

interface Turn {
  readonly id: string;
  readonly number: number;
  /** When it happened. */
  readonly at: number;
  readonly version: number;
}

interface Session {
  readonly id: string;
  readonly parent: string | undefined;
  /** What each version has shown while it was current; the last one is the current version. */
  readonly versions: Turn[][];
  /** Those that the session has from its parent. */
  readonly shared: ReadonlySet<string>;
  readonly own: Turn[];
}

const shownBy = ({ versions }: Session): Turn[] => versions.at(-1)!;

class World {
  readonly sessions: Session[] = [];
  readonly #cairn: Cairn;
  readonly #chance: Chance;
  #said = 0;

  constructor(cairn: Cairn, chance: Chance) {
    this.#cairn = cairn;
    this.#chance = chance;
  }

  /** Begins a session without turns. */
  async create(): Promise<void> {
    const { id } = await this.#cairn.createSession({ user_id: "ada" });
    this.sessions.push({ id, parent: undefined, versions: [[]], shared: new Set(), own: [] });
  }

  #body(): Record<string, unknown> {
    const isMovedIn = this.#chance.below(5) === 0;
    const at = this.#cairn.clock.now() - this.#chance.below(100) * 60_000;
    return {
      input: { type: "text", content: `turn ${++this.#said}` },
      output: { type: "text", content: "" },
      ...(isMovedIn ? { occurred_at: new Date(at).toISOString() } : {}),
    };
  }

  /** Takes over a turn that was answered. */
  #added(session: Session, { id, turn_number: number, created_at, occurred_at, state_version }: any): void {
    const numbers = [...shownBy(session), ...session.own].map((turn) => turn.number);
    const version = session.versions.length - 1;
    expect({ number, state_version }).toEqual({ number: Math.max(0, ...numbers) + 1, state_version: version });
    const turn = { id, number, at: Date.parse(occurred_at ?? created_at), version };
    shownBy(session).push(turn);
    session.own.push(turn);
  }

  /** A version that can be rolled back to or forked from: the first one, or one of the newest. */
  #version({ versions }: Session): number {
    const newest = versions.length - 1 - this.#chance.below(Math.min(VERSIONS_KEPT, versions.length));
    return this.#chance.below(4) === 0 ? 0 : newest;
  }

  readonly operations: Record<string, (session: Session) => Promise<void>> = {
    turn: async (session) => this.#added(session, await this.#cairn.ok(this.#cairn.post(`/v1/sessions/${session.id}/turns`, this.#body()))),
    batch: async (session) => {
      const batch = Array.from({ length: 1 + this.#chance.below(4) }, () => this.#body());
      const { data } = await this.#cairn.ok(this.#cairn.post(`/v1/sessions/${session.id}/turns/batch`, { turns: batch }));
      for (const turn of data) this.#added(session, turn);
    },
    step: async (session) => {
      const body = { ...this.#body(), state: { at: ++this.#said } };
      const turn = await this.#cairn.ok(this.#cairn.post(`/v1/sessions/${session.id}/turns`, body));
      session.versions.push([...shownBy(session)]);
      this.#added(session, turn);
    },
    state: async (session) => {
      await this.#cairn.setState(session.id, { at: ++this.#said });
      session.versions.push([...shownBy(session)]);
    },
    rollback: async (session) => {
      const version = this.#version(session);
      const turns = pick(this.#chance, ["keep", "hide", "hide"]);
      await this.#cairn.rollback(session.id, version, { turns });
      session.versions.push([...(turns === "hide" ? session.versions[version]! : shownBy(session))]);
    },
    fork: async (session) => {
      const version = this.#version(session);
      const wanted = pick(this.#chance, ["none", "all", "all", 1, 3] as const);
      const { id } = await this.#cairn.ok(this.#cairn.post(`/v1/sessions/${session.id}/fork`, { version, turns: wanted }));
      const then = session.versions[version]!;
      const shown = wanted === "all" ? then : wanted === "none" ? [] : then.slice(-wanted);
      const shared = new Set(shown.map((turn) => turn.id));
      this.sessions.push({ id, parent: session.id, versions: [[...shown]], shared, own: [] });
    },
    end: async (session) => {
      if (this.sessions.length < 3) return;
      await this.#cairn.ok(this.#cairn.delete(`/v1/sessions/${session.id}`));
      this.sessions.splice(this.sessions.indexOf(session), 1);
      for (let i = 0; i < this.#chance.below(3); i++) await this.#cairn.runTask("session removal");
    },
    look: (session) => this.compare(session),
  };

  /** Compares all that reads of a session show of its turns. */
  async compare(session: Session): Promise<void> {
    const { id, parent, own, shared } = session;
    const path = `/v1/sessions/${id}`;
    const shown = shownBy(session);
    const read = async (query: string) => (await pagesOf(this.#cairn, `${path}/${query}`)).flatMap(({ data }) => data);
    const listed = await read("turns?order=asc&limit=7");
    expect(listed.map((turn) => turn.id)).toEqual(shown.map((turn) => turn.id));
    for (const [i, turn] of listed.entries()) {
      const isShared = shared.has(turn.id);
      const { number, version } = shown[i]!;
      expect(turn).toMatchObject({ session_id: id, turn_number: number, state_version: isShared ? 0 : version });
      expect([turn.forked_from, turn.rolled_back_at]).toEqual([isShared ? parent : undefined, undefined]);
    }
    expect(await this.#cairn.session(id)).toMatchObject({ turn_count: shown.length, state_version: session.versions.length - 1 });
    const hidden = own.filter((turn) => !shown.some((one) => one.id === turn.id));
    const all = await read("turns?status=all&limit=7");
    expect(all.filter(({ rolled_back_at }) => rolled_back_at !== undefined).map((turn) => turn.id)).toEqual(
      hidden.map((turn) => turn.id).toReversed(),
    );
    expect(all.length).toBe(own.length + shared.size);
    const inTime = shown.toSorted((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1)).map((turn) => turn.id);
    const { recent_turns } = await this.#cairn.context(id, { turn_limit: 50 });
    expect(recent_turns.map((turn: any) => turn.id)).toEqual(inTime.toReversed().slice(0, 50));
    expect((await read("timeline?kinds=turn&order=asc&limit=7")).map(({ turn }) => turn.id)).toEqual(inTime);
  }
}

const KINDS = [
  "turn",
  "turn",
  "turn",
  "batch",
  "step",
  "step",
  "state",
  "rollback",
  "rollback",
  "rollback",
  "fork",
  "fork",
  "end",
  "look",
  "look",
];

test("after rollbacks, forks, batches, steps and deletions each session shows the turns that a model shows", async () => {
  await withSeeds(async (chance) => {
    await using cairn = await startCairn({ environment: { state_versions_kept: VERSIONS_KEPT } });
    const world = new World(cairn, chance);
    await world.create();
    for (let i = 0; i < OPERATIONS; i++) {
      cairn.clock.advance({ ms: chance.below(3) * 30_000 });
      await world.operations[pick(chance, KINDS)]!(pick(chance, world.sessions));
    }
    for (const session of world.sessions) await world.compare(session);
    for (let i = 0; i < 40; i++) await cairn.runTask("session removal");
    expect(await cairn.findings()).toEqual([]);
    for (const session of world.sessions) await world.compare(session);
    while (world.sessions.length > 0) {
      const session = pick(chance, world.sessions);
      await cairn.ok(cairn.delete(`/v1/sessions/${session.id}`));
      world.sessions.splice(world.sessions.indexOf(session), 1);
    }
    for (let i = 0; i < 80; i++) await cairn.runTask("session removal");
    expect(await cairn.counts([turns, branches])).toEqual([0, 0]);
  });
});
