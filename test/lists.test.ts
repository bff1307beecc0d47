import { expect, test } from "bun:test";
import { idsOf, pagesOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";

/** Makes as many records as asked for. @returns where they are listed, and their ids in the order that they were made in */
type Making = (cairn: Cairn, count: number) => Promise<{ path: string; ids: string[] }>;

/** What one request after another answers. */
async function times<Made>(count: number, make: (index: number) => Promise<Made>): Promise<Made[]> {
  const made: Made[] = [];
  for (let index = 0; index < count; index++) made.push(await make(index));
  return made;
}

const HOOK = { url: "http://127.0.0.1:9/hook", events: ["turn.added"] };

const MAKING: Record<string, Making> = {
  sessions: async (cairn, count) => ({ path: "/v1/sessions", ids: idsOf(await times(count, () => cairn.createSession())) }),
  async turns(cairn, count) {
    const { id } = await cairn.createSession();
    return { path: `/v1/sessions/${id}/turns`, ids: idsOf(await times(count, () => cairn.addTurn(id))) };
  },
  async "the timeline"(cairn, count) {
    const { id } = await cairn.createSession();
    const made = await times(count - 1, async (index) => {
      const turn = index % 2 === 0 ? await cairn.addTurn(id) : await cairn.addMemory(id, `${index}`, { embed: false });
      return turn.id.replace(/^[a-z]+/, "entry");
    });
    return { path: `/v1/sessions/${id}/timeline`, ids: [id.replace("sess", "entry"), ...made] };
  },
  async versions(cairn, count) {
    const { id } = await cairn.createSession();
    const made = await times(count - 1, (step) => cairn.setState(id, { step }));
    return { path: `/v1/sessions/${id}/versions`, ids: ["0", ...made.map(({ state_version }) => String(state_version))] };
  },
  async memories(cairn, count) {
    const { id } = await cairn.createSession();
    return { path: "/v1/memory", ids: idsOf(await times(count, (index) => cairn.addMemory(id, `${index}`, { embed: false }))) };
  },
  async traces(cairn, count) {
    const { id } = await cairn.createSession();
    const ids = await times(count, async () => (await cairn.addTurn(id), (await cairn.ok(cairn.get("/v1/traces?limit=1"))).first_id));
    return { path: "/v1/traces?action=turn.added", ids };
  },
  async "API keys"(cairn, count) {
    const [first] = await cairn.list("/v1/api_keys");
    return { path: "/v1/api_keys", ids: idsOf([first, ...(await times(count - 1, () => cairn.ok(cairn.post("/v1/api_keys", {}))))]) };
  },
  // There can be no more.
  webhooks: async (cairn) => ({ path: "/v1/webhooks", ids: idsOf(await times(100, () => cairn.ok(cairn.post("/v1/webhooks", HOOK)))) }),
  async deliveries(cairn, count) {
    const { id } = await cairn.ok(cairn.post("/v1/webhooks", HOOK));
    const path = `/v1/webhooks/${id}`;
    return { path: `${path}/deliveries`, ids: idsOf(await times(count, () => cairn.ok(cairn.post(`${path}/test`)))) };
  },
};

/** The pages of a list, of their records only the ids. */
async function idsByPage(cairn: Cairn, path: string) {
  const pages = await pagesOf(cairn, path);
  return pages.map((page) => ({
    ...page,
    data: page.data.map(({ id, version }: { id?: string; version?: number }) => id ?? String(version)),
  }));
}

function pagesWith(ids: readonly string[], limit: number) {
  const starts = Array.from({ length: Math.ceil(ids.length / limit) }, (_, page) => page * limit);
  return starts.map((start) => {
    const data = ids.slice(start, start + limit);
    return { object: "list", data, has_more: start + limit < ids.length, first_id: data[0], last_id: data.at(-1) };
  });
}

const EMPTY = { object: "list", data: [], has_more: false, first_id: null, last_id: null };

for (const [name, make] of Object.entries(MAKING)) {
  test(`a page of ${name} has 20, newest first, unless it is asked for up to 100, and its last id leads to the next`, async () => {
    await using cairn = await startCairn();
    const { path, ids } = await make(cairn, 101);
    const list = `${path}${path.includes("?") ? "&" : "?"}`;
    for (const limit of [20, 34, 100]) {
      expect(await idsByPage(cairn, limit === 20 ? path : `${list}limit=${limit}`)).toEqual(pagesWith(ids.toReversed(), limit));
      if (name === "turns" || name === "the timeline")
        expect(await idsByPage(cairn, `${list}order=asc&limit=${limit}`)).toEqual(pagesWith(ids, limit));
    }
    expect((await cairn.get(`${list}starting_after=${ids[0]}`)).body).toEqual(EMPTY);
  });
}

test("a list of nothing has neither a first nor a last id", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (const path of [`/v1/sessions/${id}/turns`, "/v1/memory", "/v1/webhooks", "/v1/sessions?agent_id=nobody"])
    expect({ path, list: (await cairn.get(path)).body }).toEqual({ path, list: EMPTY });
});

test("a cursor keeps working when its record has been deleted", async () => {
  await using cairn = await startCairn();
  for (const name of ["sessions", "memories", "API keys", "webhooks"]) {
    const { path, ids } = await MAKING[name]!(cairn, 3);
    await cairn.ok(cairn.delete(`${path}/${ids[1]}`));
    expect({ name, next: idsOf(await cairn.list(`${path}?limit=1&starting_after=${ids[1]}`)) }).toEqual({
      name,
      next: [ids[0]!],
    });
  }
});

test("a cursor that no turn of the session has still says where to go on", async () => {
  await using cairn = await startCairn();
  const [{ id }, other] = [await cairn.createSession(), await cairn.createSession()];
  const [a, between, b] = [await cairn.addTurn(id), await cairn.addTurn(other.id), await cairn.addTurn(id)];
  const list = async (query: string) => idsOf(await cairn.list(`/v1/sessions/${id}/turns?${query}`));
  expect(await list(`starting_after=${between.id}`)).toEqual([a.id]);
  expect(await list(`starting_after=${between.id}&order=asc`)).toEqual([b.id]);
  expect(await list("starting_after=turn_zzzzzzzzzzzz")).toEqual([b.id, a.id]);
  expect(await list("starting_after=turn_000000000000&order=asc")).toEqual([a.id, b.id]);
});

test("a filter that another list has is refused by a list without it, one that no list has is ignored", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const turns = `/v1/sessions/${session.id}/turns`;
  const versions = `/v1/sessions/${session.id}/versions`;
  const webhook = await cairn.ok(cairn.post("/v1/webhooks", { url: "https://example.com/", events: ["turn.added"] }));
  for (const { list, param } of [
    { list: "/v1/sessions", param: "session_id" },
    { list: "/v1/sessions", param: "type" },
    { list: "/v1/sessions", param: "order" },
    { list: "/v1/memory", param: "action" },
    { list: "/v1/traces", param: "agent_id" },
    { list: "/v1/traces", param: "tags" },
    { list: turns, param: "created_after" },
    { list: turns, param: "user_id" },
    { list: versions, param: "order" },
    { list: "/v1/api_keys", param: "user_id" },
    { list: "/v1/webhooks", param: "type" },
    { list: `/v1/webhooks/${webhook.id}/deliveries`, param: "action" },
    { list: "/v1/failed_deliveries", param: "created_before" },
  ]) {
    const refused = refusal(await cairn.get(`${list}?limit=5&${param}=x`));
    expect({ list, ...refused }).toEqual({ list, status: 400, code: "invalid_request", param });
    // Sent twice, empty or escaped it is the same.
    expect(refusal(await cairn.get(`${list}?${param.replace("e", "%65")}=&${param}=`))).toMatchObject({ status: 400, param });
    expect((await cairn.get(`${list}?limit=5&unknown=x&constructor=1&__proto__=2`)).status).toBe(200);
  }
  const { message } = (await cairn.get("/v1/webhooks?type=x")).body.error;
  expect(message).toBe("type is not a parameter of this list; it has limit, starting_after.");
  // What is no list takes no notice.
  expect((await cairn.get(`/v1/sessions/${session.id}?limit=x&user_id=y`)).status).toBe(200);
});

test("created_after and created_before leave out the very time they name, and combine with the other filters", async () => {
  await using cairn = await startCairn();
  const made: { session: string; memory: string; trace: string }[] = [];
  for (let i = 0; i < 4; i++) {
    const { id: session } = await cairn.createSession({ user_id: i % 2 === 0 ? "even" : "odd" });
    const [trace] = await cairn.traces(session);
    made.push({ session, memory: (await cairn.addMemory(session, `Parcel ${i} came.`)).id, trace: trace.id });
    cairn.clock.advance({ ms: 1 });
  }
  const cases: [query: string, found: number[]][] = [
    ["created_after=2026-05-07T08:00:00.001Z", [3, 2]],
    ["created_before=2026-05-07T08:00:00.001Z", [0]],
    // Parts of a millisecond are after its beginning.
    ["created_before=2026-05-07T08:00:00.001000000Z", [0]],
    ["created_before=2026-05-07T08:00:00.001000001Z", [1, 0]],
    ["created_before=2026-05-07T08:00:00.001900Z", [1, 0]],
    ["created_after=2026-05-07T08:00:00.001900Z", [3, 2]],
    // An instant may have an offset or none, which is UTC.
    ["created_before=2026-05-07T08:00:00.001", [0]],
    ["created_before=2026-05-07T10:00:00.001+02", [0]],
    ["created_after=2026-05-07T10:00:00%2B02:00", [3, 2, 1]],
    ["created_after=2026-05-07T02:30:00-05:30", [3, 2, 1]],
    ["created_after=2026-05-07T08:00:00.000Z&created_before=2026-05-07T08:00:00.003Z", [2, 1]],
    ["created_after=2026-05-07T08:00:00.001Z&created_before=2026-05-07T08:00:00.002Z", []],
    ["created_after=2026-05-07T08:00:00.003Z&created_before=2026-05-07T08:00:00.000Z", []],
    ["created_after=2026-05-07T08:00:00Z&user_id=odd", [3, 1]],
    ["created_before=2026-05-07T08:00:00.003Z&limit=2", [2, 1]],
    ["created_before=2026-05-07T08:00:00.003Z&starting_after=CURSOR", [0]],
    ["created_after=0000-01-01T00:00:00Z&created_before=9999-12-31T23:59:59.999Z", [3, 2, 1, 0]],
    ["created_after=1969-12-31T23:59:59Z", [3, 2, 1, 0]],
    ["created_after=9999-12-31T23:59:59.999Z", []],
    ["created_before=0000-01-01T00:00:00Z", []],
  ];
  for (const { list, name } of [
    { list: "/v1/sessions?", name: "session" },
    { list: "/v1/memory?", name: "memory" },
    { list: "/v1/traces?action=session.created&", name: "trace" },
  ] as const) {
    for (const [query, found] of cases) {
      const { data } = await cairn.ok(cairn.get(list + query.replace("CURSOR", made[1]![name])));
      expect({ list, query, found: data.map(({ id }: { id: string }) => made.findIndex((one) => one[name] === id)) }).toEqual({
        list,
        query,
        found,
      });
    }
  }
});
