/**
 * The paths of StateBase: what its SDKs send, byte for byte as they were seen to send it (Python 0.4.1, Node 1.2.0), and what they
 * read from the answers.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { startCairn, type Cairn } from "./support/cairn.ts";

/** What is sent, where `SESSION` and `TURN` are ids, and what the answer must have of what the SDK reads. */
type Exchange = [request: string, status: number, read: Record<string, unknown>];

const TURN = { object: "turn", id: "TURN", session_id: "SESSION", created_at: expect.any(String) };
const SESSION = { object: "session", agent_id: "bot", memory_count: 0, turn_count: 0, ttl_expires_at: expect.any(String) };
const STATE = { session_id: "SESSION", updated_at: expect.any(String), created_at: expect.any(String) };
const MEMORY = { object: "memory", vector_available: true, created_at: expect.any(String) };
const MAIL = "The customer prefers e-mail.";
const FOUND = { id: expect.any(String), session_id: "SESSION", content: MAIL, type: "preference", score: expect.any(Number) };

const PYTHON: readonly Exchange[] = [
  ["GET /health", 200, { status: "ready" }],
  [
    'POST /v1/sessions {"agent_id":"bot","metadata":{"channel":"chat"},"initial_state":{"step":0},"ttl_seconds":3600,"user_id":"user-42"}',
    201,
    { ...SESSION, user_id: "user-42", state: { step: 0 }, metadata: { channel: "chat" } },
  ],
  ["GET /v1/sessions/SESSION", 200, { id: "SESSION", state: { step: 0 } }],
  ["GET /v1/sessions?limit=1&agent_id=bot&created_after=2020-01-01T00%3A00%3A00Z", 200, { data: [{ id: "SESSION" }] }],
  ["GET /v1/sessions?limit=20&starting_after=SESSION", 200, { data: [], has_more: false }],
  [
    'POST /v1/sessions/SESSION/turns {"input":{"type":"text","content":"Where is my order?"},"output":{"type":"text","content":"It arrives tomorrow."},"metadata":{"k":1},"reasoning":null}',
    201,
    { ...TURN, turn_number: 1, metadata: { k: 1 } },
  ],
  [
    'POST /v1/sessions/SESSION/turns {"input":{"type":"text","content":"a"},"output":{"type":"text","content":"b"},"metadata":null,"reasoning":"because"}',
    201,
    { ...TURN, turn_number: 2, reasoning: "because" },
  ],
  [
    `POST /v1/sessions/SESSION/turns {"input":{"type":"tool_call","content":"Call tool lookup with {'order': 'A-17'}","tool_metadata":{"name":"lookup","arguments":{"order":"A-17"},"id":"1"}},"output":{"type":"tool_response","content":"{'found': True}","output":{"found":true}},"metadata":null,"reasoning":null}`,
    201,
    { ...TURN, turn_number: 3, input: { type: "tool_call" }, output: { type: "tool_result", content: "{'found': True}" } },
  ],
  ["GET /v1/sessions/SESSION/turns?limit=2", 200, { data: [{ turn_number: 3 }, { turn_number: 2 }] }],
  ["GET /v1/sessions/SESSION/turns?limit=20&starting_after=TURN", 200, { data: [{ turn_number: 2 }, { turn_number: 1 }] }],
  [
    'PATCH /v1/sessions/SESSION/state {"state":{"order":"A-17"},"reasoning":"it came"}',
    200,
    { ...STATE, version: 1, state: { step: 0, order: "A-17" } },
  ],
  ["GET /v1/sessions/SESSION/state", 200, { ...STATE, version: 1, state: { step: 0, order: "A-17" } }],
  ['POST /v1/sessions/SESSION/state/rollback {"version":0}', 200, { ...STATE, version: 2, state: { step: 0 } }],
  ['POST /v1/sessions/SESSION/state/rollback {"version":-1}', 200, { ...STATE, version: 3, state: { step: 0, order: "A-17" } }],
  ['POST /v1/sessions/SESSION/fork {"version":null}', 201, { ...SESSION, state: { step: 0, order: "A-17" } }],
  ['POST /v1/sessions/SESSION/fork {"version":0}', 201, { ...SESSION, state: { step: 0 } }],
  [
    `POST /v1/memories {"content":"${MAIL}","type":"preference","session_id":"SESSION","tags":["contact"],"metadata":{"a":1}}`,
    201,
    { ...MEMORY, content: MAIL, type: "preference", session_id: "SESSION", tags: ["contact"], metadata: { a: 1 } },
  ],
  [
    'POST /v1/memories {"content":"Shops close at six.","type":"fact","session_id":null,"tags":null,"metadata":null}',
    201,
    { ...MEMORY, content: "Shops close at six.", type: "fact", tags: [], metadata: {} },
  ],
  [
    "GET /v1/memories?query=How+does+the+customer+prefer+to+be+contacted+by+e-mail%3F&limit=5&threshold=0.5&session_id=SESSION&types=preference%2Cfact&tags=contact%2Cother",
    200,
    { data: [FOUND] },
  ],
  ["GET /v1/memories?query=When+do+shops+close%3F&limit=10&threshold=0.7", 200, { data: [{ content: "Shops close at six." }] }],
  [
    'POST /v1/sessions/SESSION/context {"query":"contact by e-mail?","memory_limit":5,"turn_limit":5}',
    200,
    { state: { step: 0 }, memories: [{ content: MAIL }], recent_turns: [{}, {}, {}] },
  ],
  [
    'POST /v1/sessions/SESSION/context {"query":null,"memory_limit":5,"turn_limit":5}',
    200,
    { state: { step: 0 }, memories: [{ content: MAIL }], recent_turns: [{}, {}, {}] },
  ],
  ["DELETE /v1/sessions/SESSION", 200, {}],
  ["GET /v1/sessions/SESSION", 404, {}],
];

const NODE: readonly Exchange[] = [
  [
    'POST /v1/sessions {"agent_id":"bot","user_id":"user-42","initial_state":{"step":0},"metadata":{"channel":"chat"},"ttl_seconds":3600}',
    201,
    { ...SESSION, user_id: "user-42", state: { step: 0 } },
  ],
  ["GET /v1/sessions?agent_id=bot&limit=1", 200, { data: [{ id: "SESSION" }], has_more: false }],
  ["GET /v1/sessions", 200, { data: [{ id: "SESSION" }] }],
  [
    'POST /v1/sessions/SESSION/turns {"input":{"type":"text","content":"Where is my order?"},"output":{"type":"text","content":"It arrives tomorrow."},"metadata":{"k":1}}',
    201,
    { ...TURN, turn_number: 1 },
  ],
  ["GET /v1/sessions/SESSION/turns?limit=1", 200, { data: [{ id: "TURN" }], has_more: false }],
  ["GET /v1/sessions/SESSION/turns?starting_after=TURN", 200, { data: [] }],
  ['PATCH /v1/sessions/SESSION/state {"state":{"order":"A-17"},"reasoning":"it came"}', 200, { ...STATE, version: 1 }],
  ['PATCH /v1/sessions/SESSION/state {"state":{"order":null}}', 200, { ...STATE, version: 2, state: { step: 0 } }],
  ['POST /v1/sessions/SESSION/state/rollback {"version":1}', 200, { ...STATE, version: 3, state: { step: 0, order: "A-17" } }],
  ["POST /v1/sessions/SESSION/fork {}", 201, { ...SESSION, state: { step: 0, order: "A-17" } }],
  [
    `POST /v1/memories {"content":"${MAIL}","type":"preference","session_id":"SESSION","tags":["contact"],"metadata":{"a":1},"embed":true}`,
    201,
    { ...MEMORY, content: MAIL, embedding_id: expect.any(String) },
  ],
  [
    "GET /v1/memories?query=How+does+the+customer+prefer+to+be+contacted+by+e-mail%3F&top_k=5&session_id=SESSION&types=preference,fact&tags=contact,other&limit=5&threshold=0.5",
    200,
    { query: "How does the customer prefer to be contacted by e-mail?", data: [FOUND] },
  ],
  ["GET /v1/memories?query=contact", 200, { query: "contact" }],
  ['POST /v1/sessions/SESSION/context {"query":"contact by e-mail?","memory_limit":3,"turn_limit":1}', 200, { recent_turns: [{}] }],
  ["POST /v1/sessions/SESSION/context {}", 200, { memories: [{ content: MAIL }] }],
];

for (const [sdk, exchanges] of Object.entries({ PYTHON, NODE })) {
  test(`what the SDK for ${sdk} sends is answered with what it reads`, async () => {
    await using cairn = await startCairn();
    const ids = { SESSION: "none", TURN: "none" };
    const withIds = (text: string) => text.replace("SESSION", ids.SESSION).replace("TURN", ids.TURN);
    const withNames = (text: string) => text.replaceAll(ids.SESSION, "SESSION").replaceAll(ids.TURN, "TURN");
    for (const [request, status, read] of exchanges) {
      const [, method = "", path = "", raw] = /^(\S+) (\S+)(?: (.*))?$/.exec(withIds(request)) ?? [];
      const headers = { "content-type": "application/json" };
      const answer = await cairn.request(method, path, raw === undefined ? { headers } : { headers, raw });
      if (ids.SESSION === "none" && answer.body.object === "session") ids.SESSION = answer.body.id;
      if (answer.body.object === "turn") ids.TURN = answer.body.id;
      expect({ request, status: answer.status }).toEqual({ request, status });
      expect(JSON.parse(withNames(JSON.stringify(answer.body)))).toMatchObject(read);
      const isContext = status === 200 && path.endsWith("/context");
      expect(answer.headers.get("x-statebase-latency")).toEqual(isContext ? expect.stringMatching(/^\d+(\.\d+)?ms$/) : null);
    }
  });
}

test("a rollback says what it made and from what, and a retry gets the same", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ initial_state: { step: 0 } });
  await cairn.setState(id, { step: 1 });
  const rollBack = () =>
    cairn.post(`/v1/sessions/${id}/state/rollback`, { version: -1, reason: "wrong" }, { headers: { "Idempotency-Key": "r" } });
  const { body } = await rollBack();
  expect(body).toMatchObject({ object: "state", version: 2, state: { step: 0 }, success: true, new_version: 2, restored_from_version: 0 });
  const again = await rollBack();
  expect(again.body).toEqual(body);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(await cairn.traces(id, "state.rolled_back")).toMatchObject([{ details: { from_version: 1, to_version: 0, reason: "wrong" } }]);
  expect(await cairn.post(`/v1/sessions/${id}/state/rollback`, { version: 9 })).toMatchObject({ status: 404 });
});

const DAY = 86_400_000;

test("memories without a session are kept in one for all, and in one for each user, which adding prolongs", async () => {
  await using cairn = await startCairn();
  const add = (more: Record<string, unknown>) => cairn.ok(cairn.post("/v1/memories", { content: "Shops close at six.", ...more }));
  const [all, ada, ben] = [await add({}), await add({ user_id: "ada" }), await add({ user_id: "b".repeat(256) })];
  expect(new Set([all, ada, ben].map(({ session_id }) => session_id)).size).toBe(3);
  expect((await add({})).session_id).toBe(all.session_id);
  expect((await add({ user_id: "ada" })).session_id).toBe(ada.session_id);
  expect(await cairn.session(all.session_id)).toMatchObject({ external_id: "global", user_id: null });
  expect(await cairn.session(ada.session_id)).toMatchObject({ external_id: "global:ada", user_id: "ada" });
  expect(await cairn.list("/v1/memories?user_id=ada")).toHaveLength(2);

  const daysLeft = async () => (Date.parse((await cairn.session(all.session_id)).ttl_expires_at) - cairn.clock.now()) / DAY;
  cairn.clock.advance({ days: 14 });
  await add({});
  expect(await daysLeft()).toBe(16);
  cairn.clock.advance({ days: 2 });
  await add({});
  expect(await daysLeft()).toBe(30);
  cairn.clock.advance({ days: 31 });
  expect((await add({})).session_id).not.toBe(all.session_id);
});

test("a memory of a session is that of its user: another user_id is refused, and nothing is added", async () => {
  await using cairn = await startCairn();
  const ada = await cairn.createSession({ user_id: "ada" });
  const nobodys = await cairn.createSession();
  const add = (session_id: string, user_id?: string | null) =>
    cairn.post("/v1/memories", { content: "Shops close at six.", session_id, user_id });
  for (const user_id of ["ada", null, undefined]) expect((await add(ada.id, user_id)).status).toBe(201);
  for (const [id, user_id] of [
    [ada.id, "ben"],
    [nobodys.id, "ada"],
  ] as const)
    expect(await add(id, user_id)).toMatchObject({ status: 400, body: { error: { code: "invalid_request", param: "user_id" } } });
  expect(await add("sess_000000000000", "ada")).toMatchObject({ status: 404, body: { error: { code: "session_not_found" } } });
  expect((await add(nobodys.id)).status).toBe(201);
  expect(await cairn.list("/v1/memories")).toHaveLength(4);

  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { user_id: "ada", scopes: ["read", "write"] }));
  const bound = (session_id: string, user_id: string) =>
    cairn.post("/v1/memories", { content: "Shops close at six.", session_id, user_id }, { key });
  expect((await bound(ada.id, "ada")).status).toBe(201);
  expect(await bound(ada.id, "ben")).toMatchObject({ status: 403, body: { error: { code: "permission_denied", param: "user_id" } } });
  expect(await bound(nobodys.id, "ada")).toMatchObject({ status: 404, body: { error: { code: "session_not_found" } } });
});

test("a memory that is sent again is added once, also where its session was made by the first attempt", async () => {
  await using cairn = await startCairn();
  const add = () => cairn.post("/v1/memories", { content: "Shops close at six." }, { headers: { "Idempotency-Key": "m" } });
  const [first, ...others] = await Promise.all([add(), add(), add()]);
  for (const other of others) expect(other.body).toEqual(first.body);
  expect(await cairn.list("/v1/memories")).toHaveLength(1);
  expect(await cairn.list("/v1/sessions")).toHaveLength(1);
});

async function withThree(): Promise<Cairn & AsyncDisposable> {
  const cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (const [type, tag] of [
    ["fact", "a"],
    ["event", "b"],
    ["policy", "c"],
  ] as const)
    await cairn.addMemory(id, `Shops close at six (${type}).`, { type, tags: [tag] });
  return cairn;
}

test("without a query memories are listed, with the same filters", async () => {
  await using cairn = await withThree();
  const types = async (query: string) => (await cairn.list(`/v1/memories${query}`)).map(({ type }) => type);
  expect(await types("")).toEqual(["policy", "event", "fact"]);
  expect(await types("?types=fact,%20event")).toEqual(["event", "fact"]);
  expect(await types("?type=fact")).toEqual(["fact"]);
  expect(await types("?tags=b,c&types=event")).toEqual(["event"]);
  const page = await cairn.ok(cairn.get("/v1/memories?limit=2"));
  expect(page).toMatchObject({ has_more: true, data: [{ metadata: {} }, {}] });
  expect(await types(`?top_k=2&starting_after=${page.last_id}`)).toEqual(["fact"]);
  const { id } = page.data[0];
  expect(await cairn.ok(cairn.patch(`/v1/memories/${id}`, { type: "general" }))).toMatchObject({ id, type: "general" });
  expect(await cairn.ok(cairn.get(`/v1/memories/${id}`))).toEqual(await cairn.ok(cairn.get(`/v1/memory/${id}`)));
  expect(await cairn.ok(cairn.delete(`/v1/memories/${id}?reason=old`))).toMatchObject({ id, deleted: true });
  expect(await types("")).toEqual(["event", "fact"]);
});

test("a search by GET has the types, the tags and as many results as asked", async () => {
  await using cairn = await withThree();
  const types = async (query: string) =>
    (await cairn.list(`/v1/memories?query=when+do+shops+close&threshold=0${query}`)).map(({ type }) => type);
  expect(new Set(await types(""))).toEqual(new Set(["event", "fact", "policy"]));
  expect(new Set(await types("&types=fact,event"))).toEqual(new Set(["event", "fact"]));
  expect(await types("&types=fact,event&tags=b")).toEqual(["event"]);
  expect(await types("&limit=1")).toHaveLength(1);
  expect(await types("&top_k=2&limit=1")).toHaveLength(1);
  expect(await types("&limit=100")).toHaveLength(3);
  for (const [query, param] of [
    ["&starting_after=mem_0VQk3aB4x1Zq", "starting_after"],
    ["&types=", "types"],
    [`&types=${"x".repeat(65)}`, "types"],
    ["&tags=", "tags"],
    ["&threshold=1.5", "threshold"],
    ["&limit=0", "limit"],
    ["&created_after=2020-01-01", "created_after"],
  ])
    expect(await cairn.get(`/v1/memories?query=x${query}`)).toMatchObject({ status: 400, body: { error: { param } } });
});
