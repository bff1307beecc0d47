/**
 * Requests to every operation of the API with texts of their own in every field that takes a caller's text, to find where these go.
 *
 * @module
 */
import { expect } from "bun:test";
import type { Cairn, RequestOptions } from "./cairn.ts";
import { DOCUMENT, resolved } from "./documented.ts";
import { REQUESTS, type DocumentedRequest, type FieldSchema, type Ids } from "./requests.ts";

/** Texts that occur nowhere else, by the field that they were sent in. */
export class Markers {
  readonly texts = new Map<string, string>();
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /** One that is made when it is first asked for. */
  of(field: string): string {
    let text = this.texts.get(field);
    if (text === undefined) this.texts.set(field, (text = this.made(Bun.hash(`${this.#name} ${field}`))));
    return text;
  }

  protected made(hash: number | bigint): string {
    return `${this.#name}q${hash.toString(36)}`;
  }

  /** Those fields whose text, or its hex as it is in keys, is in something. */
  foundIn(text: string | Buffer): string[] {
    const bytes = Buffer.from(text);
    const isIn = (marker: string) => bytes.includes(marker) || bytes.includes(Buffer.from(marker).toString("hex"));
    return Array.from(this.texts).flatMap(([field, marker]) => (isIn(marker) ? [field] : []));
  }
}

/** Fields that name something: their texts are no content. */
const NAMES = new Set(["user_id", "agent_id", "session_id", "starting_after", "token"]);
/** Long enough that an answer with it is kept compressed. */
const PADDING = Array.from({ length: 800 }, (_, i) => Bun.hash(String(i)).toString(36)).join(" ");

/** A value for a field with a text of its own wherever it takes one; undefined where it takes none. */
function markedValue(schema: FieldSchema, field: string, markers: Markers): unknown {
  if (schema.properties !== undefined) {
    const marked = markedFields(schema.properties, field, markers);
    return Object.keys(marked).length === 0 ? undefined : marked;
  }
  if (schema.type === "object") return { [markers.of(`${field} name`)]: markers.of(field), padding: PADDING.slice(0, 300) };
  if (schema.type === "array" && schema.items?.type === "string" && schema.items.enum === undefined) return [markers.of(field)];
  const isFree = schema.type === "string" && schema.enum === undefined && schema.format === undefined;
  return isFree ? markers.of(field) : undefined;
}

function markedFields(fields: Record<string, FieldSchema>, path: string, markers: Markers): Record<string, unknown> {
  const values = Object.entries(fields).flatMap(([name, schema]): [string, unknown][] => {
    if (NAMES.has(name) || schema.nullable === true || schema.anyOf !== undefined) return [];
    const value = markedValue(schema, `${path} ${name}`, markers);
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(values);
}

/** The body of the example, with texts of its own in all fields that take some. */
function markedBody(request: DocumentedRequest, ids: Ids, markers: Markers): Record<string, unknown> | undefined {
  const { fields, scope, method, template } = request;
  const example = request.body(ids);
  if (fields === undefined || (scope !== "read" && scope !== "write")) return example;
  const marked = markedFields(fields, `${method} ${template}`, markers);
  const owner = "user_id" in fields ? { user_id: ids["user_id"] } : {};
  const session = "session_id" in fields ? { session_id: ids["session_id"] } : {};
  const items = markedItems(fields, example ?? {}, `${method} ${template}`, ids, markers);
  return { ...example, ...fitting(marked), ...items, ...owner, ...session };
}

/** The first of several records in one request, such as of a batch, with texts of its own; the user's, where it says whose it is. */
function markedItems(
  fields: Record<string, FieldSchema>,
  example: Record<string, unknown>,
  path: string,
  ids: Ids,
  markers: Markers,
): Record<string, unknown> {
  const found = Object.entries(fields).flatMap(([name, { items }]): [string, unknown[]][] => {
    const properties = items === undefined ? undefined : resolved<FieldSchema>(DOCUMENT, items).properties;
    // Which fields an operation on documents takes depends on which it is: those are made by hand.
    if (properties === undefined || "op" in properties) return [];
    const [first = {}] = Array.isArray(example[name]) ? (example[name] as object[]) : [];
    // What is superseded has to be there.
    const { supersedes: _, ...marked } = markedFields(properties, `${path} ${name}`, markers);
    const owner = "user_id" in first ? { user_id: ids["user_id"] } : {};
    const again = "if_exists" in properties && "external_id" in marked ? { if_exists: "update" } : {};
    return [[name, [{ ...first, ...fitting(marked), ...owner, ...again }]]];
  });
  return Object.fromEntries(found);
}

/** What a turn takes: the types of its sides are no free texts, and it brings the whole state or changes of it, not both. */
function fitting(marked: Record<string, unknown>): Record<string, unknown> {
  const { state, ...rest } = marked;
  const sides = ["input", "output"].filter((side) => side in rest).map((side) => [side, { ...(rest[side] as object), type: "text" }]);
  return { ...rest, ...Object.fromEntries(sides), ...(state === undefined || "state_patch" in rest ? {} : { state }) };
}

export interface Marked {
  readonly markers: Markers;
  readonly ids: Record<string, string>;
  /** Every change that was made with an Idempotency-Key and sent no text of its own, to be sent again. */
  readonly repeatable: { path: string; body: unknown; options: RequestOptions; answer: unknown }[];
}

/**
 * Sends each operation once, as one user, with an Idempotency-Key where it takes one. What removes comes last, and what would remove the
 * key, the user or all of the run is left to the caller.
 */
export async function useEverythingAs(
  cairn: Cairn,
  userId: string,
  agentId = "agent",
  markers: Markers = new Markers(userId),
): Promise<Marked> {
  const repeatable: Marked["repeatable"] = [];
  let count = 0;
  const keyed = (): RequestOptions => ({ headers: { "Idempotency-Key": `${userId} ${cairn.clock.now()} ${count++}` } });
  const ids: Record<string, string> = { user_id: userId, version: "0" };
  const send = async (request: DocumentedRequest, body: unknown, path = request.path(ids)) => {
    const options = request.method === "POST" || request.method === "PATCH" ? keyed() : {};
    const answer = await cairn.request(request.method, path, { ...options, body });
    if (answer.status > 299) throw new Error(`${request.method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return { answer, options };
  };

  const create = find("POST", "/v1/sessions");
  const session = { ...markedBody(create, ids, markers), agent_id: agentId, ttl_seconds: 3_600, if_exists: "return" };
  const state = { text: markers.of("state"), padding: PADDING };
  ids["session_id"] = (await send(create, { ...session, initial_state: state })).answer.body.id;
  await send(create, { ...session, initial_state: state });
  const put = (name: string, more: object = {}) => ({
    op: "put",
    namespace: [markers.of("namespace"), "n"],
    key: name,
    value: { text: markers.of(`value of ${name.length}`) },
    ...more,
  });
  const batch = find("POST", "/v1/documents/batch");
  await send(batch, {
    user_id: userId,
    operations: [
      put(markers.of("key")),
      put("popped"),
      put("found", { index: true }),
      put("of a session", { session_id: ids["session_id"] }),
    ],
  });
  await send(batch, { operations: [put(markers.of("key of nobody's"), { session_id: ids["session_id"] })] });
  for (const owner of [{ user_id: userId }, {}]) {
    const pop = { ...owner, operations: [{ op: "pop", namespace: [markers.of("namespace"), "n"], order: "asc" }] };
    const { answer, options } = await send(batch, pop);
    expect(markers.foundIn(JSON.stringify(answer.body))).not.toEqual([]);
    repeatable.push({ path: batch.template, body: pop, options, answer: answer.body });
  }
  const addMemory = find("POST", "/v1/memory");
  const { external_id: _, supersedes: __, ...memory } = markedBody(addMemory, ids, markers) ?? {};
  ids["memory_id"] = (await send(addMemory, memory)).answer.body.id;
  // A user has one memory of a name.
  const ofMemories: Record<string, object> = {
    "/v1/memory": { external_id: `${markers.of("a memory's name")} ${cairn.clock.now()}`, supersedes: [ids["memory_id"]] },
    "/v1/retrievals/{retrieval_id}/feedback": { useful: [], not_useful: [] },
  };
  const search = { query: markers.of("a query"), session_id: ids["session_id"], threshold: 0 };
  ids["retrieval_id"] = (await send(find("POST", "/v1/memory/search"), search)).answer.body.retrieval_id;
  ids["turn_id"] = (
    await send(find("POST", "/v1/sessions/{session_id}/turns"), markedBody(find("POST", "/v1/sessions/{session_id}/turns"), ids, markers))
  ).answer.body.id;
  for (const request of REQUESTS) {
    if (request.scope === "read" || request.scope !== "write" || request.method === "DELETE" || request === batch) continue;
    if (request === create) continue;
    const marked = markedBody(request, ids, markers);
    const { answer, options } = await send(request, { ...marked, ...ofMemories[request.template] });
    if (request.template.endsWith("/fork"))
      repeatable.push({ path: request.path(ids), body: request.body(ids), options, answer: answer.body });
  }
  for (const request of REQUESTS) {
    if (request.scope === "read" && request.method === "POST") await send(request, markedBody(request, ids, markers));
  }
  await cairn.runTask("log of retrievals");
  // What is removed is another of each.
  for (const request of REQUESTS) {
    if (request.scope !== "write" || request.method !== "DELETE") continue;
    const removed = { ...ids };
    if (request.template.includes("memor")) removed["memory_id"] = (await cairn.addMemory(ids["session_id"]!, markers.of("deleted"))).id;
    else removed["session_id"] = (await cairn.createSession({ user_id: userId, initial_state: { text: markers.of("deleted state") } })).id;
    await send(request, undefined, `${request.path(removed)}?reason=${markers.of(`${request.template} reason`)}`);
  }
  return { markers, ids, repeatable };
}

function find(method: string, template: string): DocumentedRequest {
  const request = REQUESTS.find((one) => one.method === method && one.template === template);
  if (request === undefined) throw new Error(`no operation ${method} ${template}`);
  return request;
}
