/**
 * Sessions of Google's Agent Development Kit on Cairn, by chance beside its `InMemorySessionService`, and below a runner.
 *
 * @module
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  BaseLlm,
  createEvent,
  InMemorySessionService,
  isFinalResponse,
  LlmAgent,
  LogLevel,
  Runner,
  setLogLevel,
  type BaseLlmConnection,
  type BaseSessionService,
  type CreateEventParams,
  type LlmRequest,
  type LlmResponse,
} from "@google/adk";
import { CairnSessionService } from "../../src/adapters/google-adk.ts";
import { Clock } from "../../src/adapters/shared/clock.ts";
import { CairnError } from "../../src/client/index.ts";
import { clientBefore, startClient, type ServedClient } from "../support/cairn-client.ts";
import type { Chance } from "../support/process.ts";
import { pick, withSeeds } from "../support/seeds.ts";

setDefaultTimeout(240_000);

let client: ServedClient;

beforeAll(async () => {
  setLogLevel(LogLevel.ERROR);
  client = await startClient();
});

afterAll(() => client[Symbol.asyncDispose]());

const serviceOf = (name: string) => new CairnSessionService(client.cairn.documents, { namespace: ["adk", name] });
const START = Date.UTC(2026, 4, 7);
const ONE = { appName: "app", userId: "ada", sessionId: "one" };
const eventOf = (id: string, more: CreateEventParams = {}) =>
  createEvent({ id, author: "user", timestamp: START, content: { role: "user", parts: [{ text: `hello ${id}` }] }, ...more });
const withState = (id: string, stateDelta: Record<string, unknown>, timestamp = START) =>
  eventOf(id, { timestamp, actions: { stateDelta } });

const APPS = ["app", "*"];
const USERS = ["ada", "a b", "*"];
const SESSIONS = ["one", "b c", "ü/3"];

function stateOf(chance: Chance, step: number, prefixes: readonly string[]): Record<string, unknown> {
  const names = Array.from(
    { length: chance.below(4) },
    () => `${pick(chance, prefixes)}${pick(chance, ["x", "a.b", "__proto__", "", "é😀"])}`,
  );
  return Object.fromEntries(names.map((name) => [name, pick(chance, [step, "text", null, { a: [1, null, { deep: step }] }, [], false])]));
}

/** What can be compared: without symbols, and without the order in which state was set. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null));
}

async function steps(chance: Chance, services: readonly [BaseSessionService, BaseSessionService]): Promise<void> {
  const both = async (what: string, ask: (service: BaseSessionService) => Promise<unknown>) => {
    const [ours, theirs] = [await ask(services[0]), await ask(services[1])];
    expect({ what, result: plain(ours) }).toEqual({ what, result: plain(theirs) });
  };
  /** The time of a session is that of its last event, which is given here. */
  const append = async (service: BaseSessionService, of: typeof ONE, params: CreateEventParams) => {
    const session = await service.getSession(of);
    if (session === undefined) return "none";
    const event = createEvent(structuredClone(params));
    return { event: await service.appendEvent({ session, event }), session };
  };
  const untimed = (session: object | undefined) => session && { ...session, lastUpdateTime: 0 };
  for (let step = 1; step <= 50; step++) {
    const of = { appName: pick(chance, APPS), userId: pick(chance, USERS), sessionId: pick(chance, SESSIONS) };
    const act = chance.below(12);
    // Halves, and times before 1970: they are numbers.
    const timestamp = (step % 7 === 0 ? -1 : 1) * (START + step * 1_000 + (step % 2) / 2);
    if (act < 2 && (await services[1].getSession(of)) === undefined) {
      const state = stateOf(chance, step, ["", "temp:"]);
      const make = (service: BaseSessionService) =>
        act === 0 ? service.createSession({ ...of, state: structuredClone(state) }) : service.getOrCreateSession({ ...of, state });
      await both(`${step}: create`, async (service) => untimed(await make(service)));
      await both(`${step}: first event`, (service) => append(service, of, eventOf("first", { timestamp })));
    } else if (act < 6) {
      const event = eventOf(`e${chance.below(step)}`, {
        timestamp,
        ...(chance.below(3) > 0 && { actions: { stateDelta: stateOf(chance, step, ["", "app:", "user:", "temp:"]) } }),
        ...(chance.below(3) === 0 && { content: { role: "model", parts: [{ functionCall: { name: "look", args: { n: step } } }] } }),
      });
      await both(`${step}: append`, (service) => append(service, of, event));
    } else if (act === 6) {
      await both(`${step}: partial`, async (service) => {
        const session = await service.getSession(of);
        const partial = eventOf("partial", { partial: true, timestamp: session?.lastUpdateTime ?? 1 });
        return session && { event: await service.appendEvent({ session, event: partial }), session };
      });
    } else if (act === 7 && chance.below(3) === 0) await both(`${step}: delete`, (service) => service.deleteSession(of));
    else if (act < 10) {
      const config = {
        ...(chance.below(2) === 0 && { numRecentEvents: chance.below(4) }),
        ...(chance.below(2) === 0 && { afterTimestamp: START + chance.below(step) * 1_000 }),
      };
      await both(`${step}: get ${JSON.stringify(config)}`, (service) => service.getSession({ ...of, config }));
    } else {
      const order = pick(chance, ["asc", "desc", undefined] as const);
      const request = {
        appName: of.appName,
        ...(chance.below(2) === 0 && { userId: of.userId }),
        ...(order !== undefined && { order }),
        ...(order !== undefined && chance.below(2) === 0 && { limit: chance.below(4) }),
        ...(order !== undefined && chance.below(2) === 0 && { offset: chance.below(3) }),
        ...(order !== undefined && chance.below(3) === 0 && { page: 1 + chance.below(3) }),
      };
      await both(`${step}: list ${JSON.stringify(request)}`, async (service) => {
        const { sessions, ...rest } = await service.listSessions(request);
        const listed = sessions.map((session) => JSON.stringify(session));
        return { sessions: order === undefined ? listed.toSorted() : listed, ...rest };
      });
    }
  }
  for (const appName of APPS) {
    for (const userId of USERS)
      for (const sessionId of SESSIONS) await both("all", (service) => service.getSession({ appName, userId, sessionId }));
    await both("all", (service) => service.listSessions({ appName, order: "asc" }));
  }
}

test("it does what InMemorySessionService does, whatever is asked of both", async () => {
  await withSeeds(async (chance, seed) => {
    const service = serviceOf(`seed ${seed}`);
    await steps(chance, [service, new InMemorySessionService()]);
    for (const appName of APPS)
      for (const { userId, id } of (await service.listSessions({ appName })).sessions)
        await service.deleteSession({ appName, userId, sessionId: id });
    // Nothing is left of sessions that are gone; the state of apps and users stays.
    const left = await client.cairn.documents.namespaces({ prefix: ["adk", `seed ${seed}`] });
    expect(left.data.filter(([, , name]) => !["app state", "user state"].includes(name ?? ""))).toEqual([]);
  });
});

/** Says how many contents it was given, and never more. */
class CountingModel extends BaseLlm {
  readonly requests: LlmRequest[] = [];

  constructor() {
    super({ model: "counting" });
  }

  override async *generateContentAsync(request: LlmRequest): AsyncGenerator<LlmResponse, void> {
    this.requests.push(request);
    yield { content: { role: "model", parts: [{ text: `I was given ${request.contents.length} contents.` }] } };
  }

  override connect(): Promise<BaseLlmConnection> {
    throw new Error("It is not live.");
  }
}

test("an agent goes on with a conversation in another process, with the state of the session, the user and the app", async () => {
  const ask = async (of: typeof ONE, text: string, stateDelta: Record<string, unknown> = {}) => {
    const model = new CountingModel();
    const instruction = "You know {app:shop?}, {user:name?} and {last?}.";
    const agent = new LlmAgent({ name: "support", model, instruction, outputKey: "last" });
    const sessionService = serviceOf("agent");
    const session = await sessionService.getOrCreateSession(of);
    const runner = new Runner({ appName: of.appName, agent, sessionService });
    const answers: string[] = [];
    const newMessage = { role: "user", parts: [{ text }] };
    for await (const event of runner.runAsync({ userId: of.userId, sessionId: session.id, newMessage, stateDelta }))
      if (isFinalResponse(event)) answers.push(event.content?.parts?.[0]?.text ?? "");
    return { answers, instruction: model.requests[0]?.config?.systemInstruction };
  };
  expect((await ask(ONE, "Hello", { "app:shop": "Tea & Co", "user:name": "Ada" })).answers).toEqual(["I was given 1 contents."]);
  const second = await ask(ONE, "Where is my order?");
  expect(second.answers).toEqual(["I was given 3 contents."]);
  expect(second.instruction).toContain("You know Tea & Co, Ada and I was given 1 contents..");
  expect((await ask({ ...ONE, sessionId: "two" }, "Hello")).instruction).toContain("You know Tea & Co, Ada and .");
  expect((await ask({ ...ONE, userId: "bob" }, "Hello")).instruction).toContain("You know Tea & Co,  and .");
  expect((await ask({ ...ONE, appName: "other" }, "Hello")).instruction).toContain("You know ,  and .");
  const session = await serviceOf("agent").getSession(ONE);
  expect(session?.events.map(({ author }) => author)).toEqual(["user", "support", "user", "support"]);
});

test("events that several append at the same time are all there, and lists have the session once", async () => {
  const services = [serviceOf("races"), serviceOf("races")];
  const [service] = services as [CairnSessionService];
  const made = await Promise.all(Array.from({ length: 4 }, (_, i) => services[i % 2]!.getOrCreateSession(ONE)));
  expect(new Set(made.map(({ lastUpdateTime }) => lastUpdateTime)).size).toBe(1);
  await Promise.all(
    made.map(async (session, i) => {
      for (let step = 0; step < 3; step++) {
        const state = { [`own ${i}`]: step, "app:shared": i, [`user:${i}`]: step, last: i };
        await services[i % 2]!.appendEvent({ session, event: withState(`${i} ${step}`, state, START + i * 10 + step) });
      }
    }),
  );
  const session = await service.getSession(ONE);
  expect(session?.events.map(({ id }) => id).toSorted()).toEqual(
    [0, 1, 2, 3].flatMap((i) => [0, 1, 2].map((step) => `${i} ${step}`)).toSorted(),
  );
  const last = Number(session?.state["last"]);
  const states = [0, 1, 2, 3].flatMap((i) => [
    [`own ${i}`, 2],
    [`user:${i}`, 2],
  ]);
  expect(session?.state).toEqual({ ...Object.fromEntries(states), last, "app:shared": last });
  for (const userId of [{}, { userId: "ada" }])
    expect(await service.listSessions({ appName: "app", ...userId })).toMatchObject({ sessions: [{ id: "one" }], totalItems: 1 });
});

test("sessions that set the state of their app and their user at the same time do not wait for each other", async () => {
  const service = serviceOf("apart");
  const sessions = await Promise.all(Array.from({ length: 10 }, (_, i) => service.createSession({ ...ONE, sessionId: `s${i}` })));
  let batches = 0;
  const counting = clientBefore(client, "batch", () => batches++);
  const counted = new CairnSessionService(counting.documents, { namespace: ["adk", "apart"] });
  await Promise.all(
    sessions.map((session, i) => counted.appendEvent({ session, event: withState("e", { "app:last": i, [`user:${i}`]: true }) })),
  );
  expect(batches).toBe(10);
  const state = (await service.getSession({ ...ONE, sessionId: "s0" }))?.state ?? {};
  expect(Object.keys(state)).toHaveLength(11);
  const many = Object.fromEntries(Array.from({ length: 91 }, (_, i) => [`app:${i}`, i]));
  const refused = service.appendEvent({ session: sessions[0]!, event: withState("many", many) });
  await expect(refused).rejects.toThrow("At most 90 values of app: and user: can be set at once; got 91.");
});

test("a session that somebody holds while others append to it has their events after its own next one", async () => {
  const now = START;
  const service = new CairnSessionService(client.cairn.documents, { namespace: ["adk", "stale"] }, new Clock(() => now));
  const held = await service.createSession(ONE);
  const other = (await service.getSession(ONE))!;
  await service.appendEvent({ session: other, event: withState("theirs", { seen: "theirs", "app:x": 1 }, START + 1) });
  await service.appendEvent({ session: held, event: withState("mine", { mine: true }, START + 2) });
  const kept = await service.getSession(ONE);
  expect(plain(held)).toEqual(plain(kept));
  expect(held.events.map(({ id }) => id)).toEqual(["theirs", "mine"]);
  expect(held).toMatchObject({ state: { seen: "theirs", mine: true, "app:x": 1 }, lastUpdateTime: START + 2 });
});

test("a session that is there is not made again, and one that is not there takes no event", async () => {
  const service = serviceOf("twice");
  const session = await service.createSession({ ...ONE, state: { kept: true, "temp:x": 1, "app:y": 2, "user:z": 3 } });
  expect(session.state).toEqual({ kept: true, "app:y": 2, "user:z": 3 });
  await expect(service.createSession(ONE)).rejects.toThrow("Session with id one already exists.");
  expect((await service.getSession(ONE))?.state).toEqual({ kept: true, "app:y": 2, "user:z": 3 });
  expect((await service.createSession({ ...ONE, sessionId: "two" })).state).toEqual({ "app:y": 2, "user:z": 3 });
  await service.deleteSession(ONE);
  await expect(service.appendEvent({ session, event: eventOf("late") })).rejects.toThrow("Session one not found for appendEvent");
  expect(session.events).toEqual([]);
  expect(await service.getSession(ONE)).toBeUndefined();
  expect((await service.createSession({ appName: "app", userId: "ada" })).id).toMatch(/^[0-9a-f-]{36}$/);
});

test("an event for a session that was deleted and made again meanwhile comes after what is in the new one", async () => {
  const service = serviceOf("again");
  const session = await service.createSession(ONE);
  await service.appendEvent({ session, event: withState("first", { old: true }, START + 1) });
  const late = clientBefore(client, "batch", async (batch) => {
    if (batch > 1) return;
    await service.deleteSession(ONE);
    const again = await service.createSession(ONE);
    await service.appendEvent({ session: again, event: withState("new", { new: true }, START + 2) });
  });
  const other = new CairnSessionService(late.documents, { namespace: ["adk", "again"] });
  await other.appendEvent({ session, event: withState("late", { late: true }, START + 3) });
  const found = await service.getSession(ONE);
  expect(found).toMatchObject({ events: [{ id: "new" }, { id: "late" }], lastUpdateTime: START + 3 });
  expect(found?.state).toEqual({ new: true, late: true });
  expect(await service.listSessions({ appName: "app" })).toMatchObject({ sessions: [{ lastUpdateTime: START + 3 }], totalItems: 1 });
});

test("an event for a session that was deleted meanwhile is refused, and nothing of the session comes back", async () => {
  const session = await new CairnSessionService(
    client.cairn.documents,
    { namespace: ["adk", "gone"] },
    new Clock(() => START),
  ).createSession(ONE);
  const late = clientBefore(client, "batch", (batch) => (batch === 1 ? serviceOf("gone").deleteSession(ONE) : undefined));
  const other = new CairnSessionService(late.documents, { namespace: ["adk", "gone"] });
  await expect(other.appendEvent({ session, event: eventOf("late") })).rejects.toThrow("Session one not found");
  expect(await client.cairn.documents.count(["adk", "gone"], { deep: true })).toBe(0);
});

test("the last events of a long session take one request, and a session that is changed while it is read is read again", async () => {
  const service = serviceOf("long");
  const session = await service.createSession(ONE);
  for (let i = 0; i < 250; i++) await service.appendEvent({ session, event: eventOf(`e${i}`, { timestamp: START + i }) });
  const requests: number[] = [];
  const counting = clientBefore(client, "query", (query) => requests.push(query));
  const reader = new CairnSessionService(counting.documents, { namespace: ["adk", "long"] });
  const last = await reader.getSession({ ...ONE, config: { numRecentEvents: 3 } });
  expect([last?.events.map(({ id }) => id).join(" "), requests.length]).toEqual(["e247 e248 e249", 1]);
  const since = await reader.getSession({ ...ONE, config: { afterTimestamp: START + 245 } });
  expect([since?.events.length, requests.length]).toEqual([5, 2]);
  const changing = clientBefore(client, "query", async (query) => {
    if (query === 2) await service.appendEvent({ session, event: withState("new", { seen: true }, START + 2_000) });
  });
  // After a time they are read in pages.
  const config = { afterTimestamp: START + 1 };
  const found = await new CairnSessionService(changing.documents, { namespace: ["adk", "long"] }).getSession({ ...ONE, config });
  expect(found?.events.map(({ id }) => id)).toEqual([...Array.from({ length: 249 }, (_, i) => `e${i + 1}`), "new"]);
  expect(found?.state).toEqual({ seen: true });
});

test("events come back as they were, with bytes, and as what ADK knows as events", async () => {
  const service = serviceOf("bytes");
  const session = await service.createSession(ONE);
  const event = eventOf("e", { customMetadata: { audio: Uint8Array.of(0, 1, 255), like: { $bytes: "AAAA" } }, longRunningToolIds: ["t"] });
  await service.appendEvent({ session, event });
  const [found] = (await service.getSession(ONE))!.events;
  expect(found).toEqual(event);
  expect(Object.getOwnPropertySymbols(found!)).toEqual(Object.getOwnPropertySymbols(event));
});

test("the sessions of Cairn's users are apart, and what nothing can be kept by is refused, with its name", async () => {
  const [ada, bob] = ["ada", "bob"].map((user_id) => new CairnSessionService(client.cairn.documents.of({ user_id })));
  await ada!.createSession({ ...ONE, state: { "app:secret": 1 } });
  expect([await bob!.getSession(ONE), (await bob!.listSessions({ appName: "app" })).totalItems]).toEqual([undefined, 0]);
  expect((await bob!.createSession(ONE)).state).toEqual({});
  const session = (await bob!.getSession(ONE))!;
  const refusals: [string, () => Promise<unknown>][] = [
    ["appName must be a text that is not empty", () => ada!.createSession({ ...ONE, appName: "" })],
    ["userId must be a text that is not empty", () => ada!.getSession({ ...ONE, userId: "" })],
    ["sessionId must be a text", () => ada!.deleteSession({ ...ONE, sessionId: undefined as never })],
    ["userId must be a text", () => ada!.listSessions({ appName: "app", userId: "" })],
    ["limit must be a whole number from 0; got -1", () => ada!.listSessions({ appName: "app", limit: -1 })],
    ["page must be a whole number from 1; got 0", () => ada!.listSessions({ appName: "app", limit: 1, page: 0 })],
    ["event.timestamp must be a number", () => bob!.appendEvent({ session, event: { ...eventOf("e"), timestamp: NaN } })],
    ["event.id must be a text", () => bob!.appendEvent({ session, event: { ...eventOf("e"), id: "" } })],
  ];
  for (const [said, ask] of refusals) await expect(ask()).rejects.toThrow(said);
  const large = withState("large", { text: "x".repeat(2_000_000) });
  await expect(bob!.appendEvent({ session, event: large })).rejects.toMatchObject({ code: "payload_too_large" });
  await expect(bob!.appendEvent({ session, event: large })).rejects.toBeInstanceOf(CairnError);
  expect(session).toMatchObject({ events: [], state: {} });
  expect((await bob!.getSession(ONE))?.events).toEqual([]);
});
