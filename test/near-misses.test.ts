/**
 * A misspelt field is refused by its name instead of being ignored: `userId` in the place of `user_id` would share with all what was
 * meant for one. Which names there are follows from the OpenAPI document.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { refusal, errorOf } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { DOCUMENT, resolved, type Schema } from "./support/documented.ts";
import { oneOfEach, REQUESTS, type DocumentedRequest, type FieldSchema, type Ids } from "./support/requests.ts";

/** The paths of the SDKs of StateBase: programs that nobody changes send there what they like. */
const isStateBase = ({ method, template }: DocumentedRequest) =>
  template.startsWith("/v1/memories") || template.endsWith("/state/rollback") || (method === "PATCH" && template.endsWith("/state"));

const tagsOf = ({ method, template }: DocumentedRequest): string[] =>
  (DOCUMENT.paths[template] as any)[method.toLowerCase()].tags as string[];

/** The names of all members of schemas, however deep. */
function namesIn(schema: any, names = new Set<string>()): Set<string> {
  const { properties = {}, items, anyOf = [], additionalProperties } = resolved<any>(DOCUMENT, schema);
  // The names in a filter are operators, and the caller's own.
  if (typeof additionalProperties === "object") return names;
  for (const [name, property] of Object.entries(properties)) {
    names.add(name);
    // Nobody sends an explanation back.
    if (name !== "explanation") namesIn(property, names);
  }
  for (const one of [...(items === undefined ? [] : [items]), ...anyOf]) namesIn(one, names);
  return names;
}

/** What an operation takes and shows. */
function namesOf({ method, template, query }: DocumentedRequest): string[] {
  const operation = (DOCUMENT.paths[template] as any)[method.toLowerCase()];
  const contents = [
    operation.requestBody,
    ...Object.entries(operation.responses).flatMap(([status, one]) => (status < "300" ? [one] : [])),
  ];
  const schemas = contents
    .flatMap((one: any) => (one === undefined ? [] : Object.values(one.content ?? {})))
    .map(({ schema }: any) => schema);
  return [...query.map(({ name }) => name), ...schemas.flatMap((schema) => [...namesIn(schema ?? {})])];
}

/** What the operations of a request's part of the API, and of its path, know. */
function knownTo(request: DocumentedRequest): Set<string> {
  const onPath = REQUESTS.filter(({ template }) => template === request.template).flatMap(tagsOf);
  const tags = new Set([...tagsOf(request), ...onPath]);
  return new Set(REQUESTS.filter((one) => tagsOf(one).some((tag) => tags.has(tag))).flatMap(namesOf));
}

const camel = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

function spellingsOf(name: string): string[] {
  const spellings = [camel(name), name.toUpperCase(), name.replaceAll("_", "-"), name.replaceAll("_", "")];
  return spellings.filter((one) => one !== name);
}

/** Names that are one letter off. */
function slipsOf(name: string): string[] {
  const middle = Math.floor(name.length / 2);
  const at = (i: number) => name.charAt(i);
  const letters = [name.slice(1), `${name}x`, name.slice(0, middle) + at(middle) + name.slice(middle), `${name.slice(0, -1)}q`];
  return [...letters, at(1) + at(0) + name.slice(2)].filter((one) => one !== name && /[a-z]/i.test(one));
}

interface Placed {
  readonly path: string;
  readonly name: string;
  readonly near: string;
  readonly body: Record<string, unknown>;
}

/** An example body with each near miss of each field, at its place: another spelling beside the field, a slip instead of it. */
function misspelt(schema: Schema | FieldSchema, example: unknown, known: ReadonlySet<string>, path = ""): Placed[] {
  const { properties, items, additionalProperties } = resolved<any>(DOCUMENT, schema);
  if (items !== undefined && Array.isArray(example) && resolved<any>(DOCUMENT, items).properties !== undefined)
    return misspelt(items, example[0], known, /^(turns|memories)\.$/.test(path) ? `${path.slice(0, -1)}[0].` : `${path}0.`).map((one) => ({
      ...one,
      body: [one.body, ...example.slice(1)] as never,
    }));
  // Settings refuse every name that they do not know, and list those that they do.
  if (properties === undefined || additionalProperties === false || typeof additionalProperties === "object") return [];
  const own = Object(example) as Record<string, unknown>;
  return Object.entries<FieldSchema>(properties).flatMap(([name, property]) => [
    ...[...spellingsOf(name).map((near) => ({ near, beside: own })), ...slipsOf(name).map((near) => ({ near, beside: without(own, name) }))]
      .filter(({ near }) => !known.has(near))
      .map(({ near, beside }) => ({ path, name, near, body: { ...beside, [near]: own[name] ?? "x" } })),
    ...misspelt(property, own[name], known, `${path}${name}.`).map((one) => ({ ...one, body: { ...own, [name]: one.body } })),
  ]);
}

function without(fields: Record<string, unknown>, name: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([other]) => other !== name));
}

const schemaOf = ({ method, template }: DocumentedRequest): any =>
  (DOCUMENT.paths[template] as any)[method.toLowerCase()].requestBody?.content["application/json"].schema;

async function started(): Promise<{ cairn: Cairn & AsyncDisposable; ids: Ids }> {
  const cairn = await startCairn();
  return { cairn, ids: await oneOfEach(cairn) };
}

test("a field of a body that is nearly one of the operation's is refused by its name, whichever field and however deep", async () => {
  const { cairn, ids } = await started();
  await using _ = cairn;
  let refused = 0;
  const places = new Set<string>();
  for (const request of REQUESTS.filter((one) => one.fields !== undefined && !isStateBase(one) && one.template !== "/v1/settings")) {
    const { method, template, path, body } = request;
    for (const { path: place, name, near, body: sent } of misspelt(schemaOf(request), body(ids), knownTo(request))) {
      const error = errorOf(await cairn.request(method, path(ids), { body: sent }));
      expect({ method, template, near: place + near, ...error }).toMatchObject({
        status: 400,
        code: "invalid_request",
        param: place + near,
      });
      // Another one can be as near.
      expect(error.message).toStartWith(`${place}${near} is not a field here; did you mean `);
      if (near === camel(name)) expect(error.message).toEndWith(`did you mean ${name}?`);
      refused++;
      if (place !== "") places.add(`${template} ${place}`);
    }
  }
  expect(refused).toBeGreaterThan(500);
  expect(places).toContain("/v1/sessions/{session_id}/turns input.");
  expect(places).toContain("/v1/sessions/{session_id}/turns/batch turns[0].input.");
  expect(places).toContain("/v1/documents/batch operations.0.");
  expect(places).toContain("/v1/api_keys rate_limit.");
});

test("a parameter of a query that is nearly one of the operation's is refused by its name, so that no list shows more than was asked for", async () => {
  const { cairn, ids } = await started();
  await using _ = cairn;
  let refused = 0;
  for (const request of REQUESTS.filter((one) => one.query.length > 0 && !isStateBase(one))) {
    const known = knownTo(request);
    for (const near of request.query.flatMap(({ name }) => [...spellingsOf(name), ...slipsOf(name)]).filter((one) => !known.has(one))) {
      const url = `${request.path(ids)}?${encodeURIComponent(near)}=x`;
      expect({ url, ...refusal(await cairn.request(request.method, url, { body: request.body(ids) })) }).toEqual({
        url,
        status: 400,
        code: "invalid_request",
        param: near,
      });
      refused++;
    }
  }
  expect(refused).toBeGreaterThan(200);
});

test("filters in the place of filter is refused, though an explanation has that name: ignored it would find what was to be left out", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const sent = { query: "tea", filters: { type: "fact" } };
  for (const path of ["/v1/memory/search", "/v1/turns/search", `/v1/sessions/${id}/context`])
    expect(refusal(await cairn.post(path, sent))).toEqual({ status: 400, code: "invalid_request", param: "filters" });
  for (const path of ["/v1/memory", "/v1/turns"])
    expect(refusal(await cairn.get(`${path}?filters=%7B%22type%22%3A%22fact%22%7D`))).toMatchObject({ status: 400, param: "filters" });
});

test("what a misspelt field is refused for changes nothing, and its retry under the same key, spelt right, does", async () => {
  await using cairn = await startCairn();
  const headers = { "Idempotency-Key": "k" };
  expect(errorOf(await cairn.post("/v1/sessions", { agent_id: "a", userId: "ada" }, { headers }))).toEqual({
    status: 400,
    code: "invalid_request",
    message: "userId is not a field here; did you mean user_id?",
    param: "userId",
  });
  expect(await cairn.list("/v1/sessions")).toEqual([]);
  const answer = await cairn.post("/v1/sessions", { agent_id: "a", user_id: "ada" }, { headers });
  expect(answer).toMatchObject({ status: 201, body: { user_id: "ada" } });
  // It says so first, whatever else is missing.
  expect(errorOf(await cairn.post("/v1/sessions", { agentId: "a" })).message).toBe("agentId is not a field here; did you mean agent_id?");
});

test("a record is taken back as the API shows it, and so is a name that another operation of its kind knows", async () => {
  const { cairn, ids } = await started();
  await using _ = cairn;
  for (const [get, patch] of [
    [`/v1/sessions/${ids["session_id"]}`, `/v1/sessions/${ids["session_id"]}`],
    [`/v1/memory/${ids["memory_id"]}`, `/v1/memory/${ids["memory_id"]}`],
    [`/v1/webhooks/${ids["webhook_id"]}`, `/v1/webhooks/${ids["webhook_id"]}`],
  ] as const)
    expect((await cairn.patch(patch, await cairn.ok(cairn.get(get)))).status).toBe(200);
  for (const request of REQUESTS.filter(({ fields, template }) => fields !== undefined && template !== "/v1/settings")) {
    const body = request.body(ids);
    const others = [...knownTo(request)].filter((name) => !(name in (request.fields ?? {})));
    const answer = await cairn.request(request.method, request.path(ids), {
      body: { ...body, ...Object.fromEntries(others.map((name) => [name, {}])) },
    });
    expect({ template: request.template, message: String(answer.body?.error?.message) }).not.toMatchObject({
      message: expect.stringContaining("did you mean"),
    });
  }
  // `types` is for searches, and no misspelt `type`.
  const memory = { session_id: ids["session_id"], content: "Likes tea.", types: ["fact"] };
  expect((await cairn.post("/v1/memory", memory)).status).toBe(201);
});

test("names in the caller's own JSON are the caller's, and unknown names that are near nothing are ignored", async () => {
  await using cairn = await startCairn();
  const own = { userId: 1, user_ID: 2, agentid: 3, Content: 4, inputt: 5, externalId: { userId: 6 } };
  const session = await cairn.createSession({ initial_state: own, metadata: own, note: "x", trace: own, "": 1, _: 2, "-": 3, k: 4 });
  expect(session).toMatchObject({ state: own, metadata: own });
  await cairn.setState(session.id, own);
  const turn = await cairn.addTurn(session.id, "in", "out", { metadata: own, state_before: own });
  expect(turn).toMatchObject({ metadata: own, state_before: own });
  const operations = [{ op: "put", namespace: ["n"], key: "k", value: own }];
  expect((await cairn.post("/v1/documents/batch", { operations })).status).toBe(200);
  const query = [{ op: "list", namespace: ["n"], filter: { userId: 1, "externalId.userId": 6 } }];
  expect((await cairn.ok(cairn.post("/v1/documents/query", { operations: query }))).data[0].data).toHaveLength(1);
  expect((await cairn.get("/v1/sessions?page=2&_=17&foo=bar&utm_source=x")).status).toBe(200);
});

test("one letter off a field that was sent too is an extra name, in a body, an object in it, a list and a query; another spelling is not", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({
    agent_id: "a",
    agent_ids: ["b"],
    user_id: "ada",
    user_ids: [],
    metadat: { x: 1 },
    metadata: {},
  });
  expect(await cairn.session(id)).toMatchObject({ agent_id: "a", user_id: "ada" });
  const memory = { session_id: id, content: "Likes tea.", context: "x", contents: "y" };
  expect(await cairn.post("/v1/memory", memory)).toMatchObject({ status: 201, body: { content: "Likes tea." } });
  const text = { type: "text", content: "in", types: 1, contend: 2 };
  expect((await cairn.post(`/v1/sessions/${id}/turns`, { input: text, output: text, inputs: 1, outputs: 2 })).status).toBe(201);
  const operations = [{ op: "put", ops: 1, namespace: ["n"], namespaces: [], key: "k", keys: 1, value: {}, values: 2 }];
  expect((await cairn.post("/v1/documents/batch", { operations, operation: 1 })).status).toBe(200);
  expect((await cairn.get("/v1/sessions?user_id=ada&user_ids=ben")).body.data).toHaveLength(1);
  const connect = async (query: string) => JSON.stringify((await cairn.post(`/mcp?${query}`, {})).body);
  expect(await connect("user_ids=ben")).toContain("did you mean user_id?");
  expect(await connect("user_id=ada&user_ids=ben")).not.toContain("did you mean");

  for (const [body, message] of [
    [{ agent_id: "a", agentId: "b" }, "agentId is not a field here; did you mean agent_id?"],
    [{ agent_id: "a", user_id: "ada", userId: "ada" }, "userId is not a field here; did you mean user_id?"],
    // As if it were left out.
    [{ agent_id: "a", user_id: null, user_ids: "ada" }, "user_ids is not a field here; did you mean user_id?"],
    [{ agent_id: 5, agent_ids: "a" }, "agent_id must be a string of 1 to 256 characters; got 5."],
    [{ agent_ids: "a" }, "agent_ids is not a field here; did you mean agent_id?"],
  ] as const)
    expect(errorOf(await cairn.post("/v1/sessions", body))).toMatchObject({ status: 400, message });
  const [operation] = operations;
  expect(errorOf(await cairn.post("/v1/documents/batch", { operations: [{ ...operation, Key: "k" }] })).param).toBe("operations.0.Key");
  const both = await cairn.get("/v1/sessions?user_id=ada&user_ids=ben&userId=cleo");
  expect(refusal(both)).toEqual({ status: 400, code: "invalid_request", param: "userId" });
});

test("the paths of the StateBase SDKs take whatever names they are sent", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await cairn.setState(id, { a: 1 });
  const added = await cairn.post("/v1/memories", { content: "Likes tea.", userId: "ada", sessionid: id, tag: ["x"] });
  expect(added.status).toBe(201);
  expect((await cairn.patch(`/v1/memories/${added.body.id}`, { contents: "x" })).status).toBe(200);
  expect((await cairn.get("/v1/memories?userId=ada&topk=3")).status).toBe(200);
  expect((await cairn.post(`/v1/sessions/${id}/state/rollback`, { version: 0, Reason: "x" })).status).toBe(200);
  // Theirs, and the API's too. Where the state is replaced, which they do not do, it is refused.
  const changes = { state: { b: 2 }, expectedVersion: 7, reasonin: "x" };
  expect(await cairn.patch(`/v1/sessions/${id}/state`, changes)).toMatchObject({ status: 200, body: { version: 3, state: { b: 2 } } });
  expect(refusal(await cairn.post(`/v1/sessions/${id}/state`, changes))).toMatchObject({ status: 400, param: "expectedVersion" });
});

test("a body of fifty thousand unknown names is looked through in the time that its reading takes", async () => {
  await using cairn = await startCairn();
  // Each begins like a field, and has its length: `age0` and three more.
  const names = Array.from({ length: 36 ** 3 }, (_, i) => `age0${i.toString(36).padStart(3, "0")}`).filter((name) => !name.endsWith("tid"));
  const wide = Object.fromEntries(names.map((name) => [name, 0]));
  const timeOf = async (body: object) => {
    const from = performance.now();
    expect((await cairn.post("/v1/sessions", { agent_id: "a", ...body })).status).toBe(201);
    return performance.now() - from;
  };
  const least = async (body: object) => {
    const times = [];
    for (let i = 0; i < 5; i++) times.push(await timeOf(body));
    return Math.min(...times);
  };
  // The same text where the names are the caller's own.
  const own = await least({ initial_state: wide });
  expect((await least(wide)) / own).toBeLessThan(10);
});
