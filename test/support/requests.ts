/**
 * A request to every operation of the API, as the OpenAPI document's examples have it.
 *
 * @module
 */
import { expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { writeBackup } from "../../src/operations/backup.ts";
import { backupNumber, makeBackupsDirectory } from "../../src/operations/own-backups.ts";
import { withPlainParameters } from "../../scripts/client-types.ts";
import { refusal } from "./answers.ts";
import type { Cairn } from "./cairn.ts";
import { DOCUMENT, resolved, type Operation, type Parameter, type Schema } from "./documented.ts";
import { isOnPostgres } from "./stores.ts";

/** Ids by the names that paths and bodies have for them: `session_id`. */
export type Ids = Readonly<Record<string, string>>;

/** Makes one record of each kind. */
export async function oneOfEach(cairn: Cairn): Promise<Ids> {
  const { id: session_id } = await cairn.createSession({ user_id: "user-42" });
  const { id: turn_id } = await cairn.addTurn(session_id);
  const { id: memory_id } = await cairn.addMemory(session_id, "The customer prefers e-mail to phone calls.");
  const [{ id: trace_id }] = (await cairn.traces(session_id)) as [{ id: string }];
  const { id: key_id } = await cairn.ok(cairn.post("/v1/api_keys", { name: "another" }));
  const hook = { url: "http://127.0.0.1:9/hook", events: ["turn.added"], enabled: true };
  const { id: webhook_id } = await cairn.ok(cairn.post("/v1/webhooks", hook));
  const { id: delivery_id } = await cairn.ok(cairn.post(`/v1/webhooks/${webhook_id}/test`));
  const backup_id = await oneBackup(cairn);
  const retrieval_id = await oneRetrieval(cairn, session_id);
  const ofSession = { session_id, turn_id, memory_id, retrieval_id, version: "0" };
  return { user_id: "user-42", ...ofSession, trace_id, key_id, webhook_id, delivery_id, backup_id };
}

async function oneRetrieval(cairn: Cairn, sessionId: string): Promise<string> {
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: true }));
  await cairn.context(sessionId, { query: "How does the customer prefer to be contacted?" });
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: null }));
  await cairn.runTask("log of retrievals");
  const [{ id }] = (await cairn.list(`/v1/sessions/${sessionId}/retrievals`)) as [{ id: string }];
  return id;
}

/** A backup that is there, if the store has any, always with the same id; made here, which is quicker than by another process. */
async function oneBackup({ service: { embedded: store }, clock }: Cairn): Promise<string> {
  const id = "bkp_0VQk3aB4x2Zq";
  if (store === undefined) return id;
  const path = join(makeBackupsDirectory(store), `${id}-${await backupNumber(store)}.cairn`);
  if (!existsSync(path)) await writeBackup(store, clock, path, { force: false });
  return id;
}

export interface DocumentedRequest {
  method: string;
  /** As in the document: `/v1/sessions/{session_id}`. */
  template: string;
  scope: "read" | "write" | "admin";
  /** Those of the path, in its order. */
  pathParameters: string[];
  query: (Parameter & { schema: FieldSchema })[];
  /** The fields of the body, which the document may have under another name; undefined where there is none. */
  fields: Record<string, FieldSchema> | undefined;
  required: readonly string[];
  schema: string;
  path: (ids: Ids) => string;
  body: (ids: Ids) => Record<string, unknown> | undefined;
}

/** What the document says of a value that a caller sends. */
export interface FieldSchema {
  type: "string" | "integer" | "number" | "boolean" | "array" | "object";
  $ref?: string;
  nullable?: boolean;
  enum?: (string | null)[];
  format?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  default?: unknown;
  items?: FieldSchema;
  /** One of several kinds. */
  anyOf?: FieldSchema[];
  properties?: Record<string, FieldSchema>;
  required?: string[];
  additionalProperties?: boolean;
}

/** Of every operation under `/v1` that the store has. */
export const REQUESTS: readonly DocumentedRequest[] = Object.entries(DOCUMENT.paths)
  .filter(([template]) => template.startsWith("/v1/"))
  .flatMap(([template, item]) => Object.entries(item).map(([method, operation]) => requestTo(template, method.toUpperCase(), operation)))
  .filter(({ method, template }) => !isOnPostgres || !template.startsWith("/v1/backups") || (method === "GET" && !template.includes("{")));

function requestTo(template: string, method: string, operation: Operation & { "x-scope"?: string }): DocumentedRequest {
  const content = operation.requestBody?.content["application/json"];
  const schema = content === undefined ? undefined : resolved<Schema>(DOCUMENT, content.schema);
  const example = content?.example;
  return {
    method,
    template,
    scope: operation["x-scope"] as DocumentedRequest["scope"],
    pathParameters: Array.from(template.matchAll(/\{(\w+)\}/g), ([, name = ""]) => name),
    query: (withPlainParameters(operation).parameters ?? []).map((parameter) => resolved(DOCUMENT, parameter)).filter(isInQuery),
    fields: schema?.properties as DocumentedRequest["fields"],
    required: schema?.required ?? [],
    schema: content?.schema.$ref?.split("/").at(-1) ?? "",
    path: (ids) => template.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? "none"),
    body: (ids) => (example === undefined || !("session_id" in example) ? example : { ...example, session_id: ids["session_id"] }),
  };
}

function isInQuery(parameter: Parameter): parameter is Parameter & { schema: FieldSchema } {
  return parameter.in === "query";
}

/** Everything that concerns the session answers 404 session_not_found. */
export async function expectNoSession(cairn: Cairn, sessionId: string, more: Ids = {}): Promise<void> {
  for (const { method, path, body } of requestsOf(sessionId, more)) {
    const answer = refusal(await cairn.request(method, path, { body }));
    expect({ method, path, ...answer }).toEqual({ method, path, status: 404, code: "session_not_found", param: "session_id" });
  }
}

/** Everything that can be asked of a session, or done with it. */
export function requestsOf(sessionId: string, more: Ids = {}): { method: string; path: string; body?: unknown }[] {
  const ids = { turn_id: "turn_0VQk3aB4x1Zq", version: "0", ...more, session_id: encodeURIComponent(sessionId) };
  const own = REQUESTS.filter(({ pathParameters }) => pathParameters.includes("session_id"));
  return [
    ...own.map(({ method, path, body }) => ({ method, path: path(ids), body: body({ session_id: sessionId }) })),
    { method: "GET", path: `/v1/memory?session_id=${ids.session_id}` },
    { method: "POST", path: "/v1/memory", body: { session_id: sessionId, content: "Likes tea." } },
    { method: "POST", path: "/v1/memory/search", body: { session_id: sessionId, query: "tea" } },
  ];
}
