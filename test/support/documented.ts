/**
 * Compares answers with the OpenAPI document, from which clients are generated: status, headers, body and error code of every
 * answer that a test gets must be in it, and an object whose fields it lists has no others.
 *
 * @module
 */
import Ajv, { type ValidateFunction } from "ajv";
import { endpointsOf } from "../../src/server/app.ts";
import { withTitledComponents } from "../../scripts/client-types.ts";
import { openApiDocument } from "../../src/http/openapi.ts";

export interface Documented {
  $ref?: string;
}
export interface Header extends Documented {
  required?: boolean;
}
export interface Schema extends Documented {
  required?: string[];
  properties: Record<string, Record<string, unknown>>;
}
export interface Content {
  schema: Schema;
  example?: Record<string, unknown>;
  examples?: Record<string, { value: { error: { code: string; type: string } } }>;
}
export interface Body extends Documented {
  required?: boolean;
  description: string;
  headers: Record<string, Header>;
  content: { "application/json": Content };
}
/** What a body is, whatever its type. */
export function contentOf({ content }: Body): Content & { media: string } {
  const [[media, described]] = Object.entries(content) as [[string, Content]];
  return { media, ...described };
}
export interface Parameter extends Documented {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
}
export interface Operation {
  /** What a key without the scope `read` gets instead of a success. */
  "x-without-read"?: Schema;
  operationId: string;
  tags: string[];
  summary: string;
  parameters?: Parameter[];
  requestBody?: Body;
  responses: Record<string, Body>;
}
export interface OpenApi extends Record<string, unknown> {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; headers: Record<string, Header> };
}

/** The document as it is served, with a component for each schema with a title; what it says does not depend on a running service. */
export const DOCUMENT = withTitledComponents(JSON.parse(JSON.stringify(openApiDocument(endpointsOf({} as never), "test"))) as OpenApi);

/** What a reference refers to, or the thing itself. */
export function resolved<Thing extends Documented>(document: OpenApi, thing: Thing): Thing {
  if (thing.$ref === undefined) return thing;
  const names = thing.$ref.slice("#/".length).split("/");
  return names.reduce<unknown>((found, name) => (found as Record<string, unknown>)[name], document) as Thing;
}

/** Says what is wrong with a value; each schema is compiled when it is first needed. */
export function checker(document: OpenApi): (schema: Schema, value: unknown) => string[] {
  const ajv = new Ajv({ strict: false, allErrors: true, validateSchema: false });
  ajv.addFormat("date-time", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  ajv.addFormat("binary", true);
  ajv.addSchema({ $id: "document", components: closed(document.components) });
  const compiled = new Map<string, ValidateFunction>();
  return ({ $ref = "" }, value) => {
    let check = compiled.get($ref);
    if (check === undefined) compiled.set($ref, (check = ajv.compile({ $ref: `document${$ref}` })));
    check(value);
    return (check.errors ?? []).map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`);
  };
}

/** Objects that list their fields may have no others. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const members = Object.fromEntries(Object.entries(schema).map(([name, member]) => [name, closed(member)]));
  return members["type"] === "object" && "properties" in members ? { additionalProperties: false, ...members } : members;
}

const check = checker(DOCUMENT);
const ERROR: Schema = { $ref: "#/components/schemas/Error", properties: {} };
/** Served, but no part of the API that the document describes. */
const OTHER_PAGES = /^\/((docs|dashboard)(\/.*)?|openapi\.json|metrics)?$/;

/** Speak protocols of their own, unless they refuse. */
const OTHER_PROTOCOLS = /^\/(mcp|authorize|register|token|revoke|\.well-known\/oauth-.*)$/;

/** The paths of the document, those without parameters first: `/v1/memory/search` is not a memory. */
const PATHS = Object.entries(DOCUMENT.paths)
  .toSorted(([a], [b]) => a.split("{").length - b.split("{").length)
  .map(([path, operations]) => ({ pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}/?$`), operations }));

export interface Answered {
  status: number;
  headers: Headers;
  /** The value of its JSON; undefined where there is none. */
  body: unknown;
}

/** The path that a target leads to, without dots. */
function pathIn(target: string): string {
  const url = target.startsWith("/") ? `http://localhost${target}` : target;
  return URL.canParse(url) ? new URL(url).pathname : url;
}

/** What an answer has that the document does not, or lacks of what the document requires. */
export function undocumented(method: string, target: string, answer: Answered): string[] {
  const path = pathIn(target);
  const { status, headers, body } = answer;
  // An operator's settings lead to these: the preflight of a browser, and a redirection to HTTPS.
  if ((status === 204 && method === "OPTIONS") || (status === 308 && headers.has("location"))) return [];
  if (status === 200 && OTHER_PAGES.test(path)) return [];
  if (OTHER_PROTOCOLS.test(path) && !isRefusal(body)) return headerProblems(undefined, answer);
  const operations = PATHS.find(({ pattern }) => pattern.test(path))?.operations;
  const operation = operations?.[method === "HEAD" ? "get" : method.toLowerCase()];
  const reference = operation?.responses[status];
  if (operation !== undefined && reference === undefined) return [`the status ${status}`];
  const response = reference === undefined ? undefined : resolved(DOCUMENT, reference);
  const problems = headerProblems(response, answer);
  if (response === undefined && operations !== undefined && status === 405 && !headers.has("allow")) problems.push("no header Allow");
  if (method === "HEAD") return problems;
  const { media, schema, examples } =
    response === undefined ? { media: "application/json", schema: ERROR, examples: undefined } : contentOf(response);
  if (headers.get("content-type") !== media) problems.push(`the type ${headers.get("content-type")}`);
  if (media !== "application/json") return problems;
  const found = check(schema, body);
  const receipt = operation?.["x-without-read"];
  const isReceipt = found.length > 0 && status < 300 && receipt !== undefined && check(receipt, body).length === 0;
  if (!isReceipt) problems.push(...found);
  if (examples !== undefined && problems.length === 0) {
    const { code, type } = (body as { error: { code: string; type: string } }).error;
    if (examples[code]?.value.error.type !== type) problems.push(`the error ${code} of the type ${type}`);
  }
  return problems;
}

function isRefusal(body: unknown): boolean {
  const { error } = (body ?? {}) as { error?: { type?: unknown } };
  return error?.type !== undefined;
}

/** What every response has, also where the path or the method is unknown. */
const COMMON_HEADERS = resolved(DOCUMENT, DOCUMENT.paths["/v1/sessions"]!["get"]!.responses[400]!).headers;

function headerProblems(response: Body | undefined, { status, headers }: Answered): string[] {
  const documented = response?.headers ?? COMMON_HEADERS;
  const isRequired = (name: string) => resolved(DOCUMENT, documented[name] ?? {}).required === true;
  // What fails may be what the headers are made of.
  const missing = Object.keys(documented).filter((name) => status !== 500 && isRequired(name) && !headers.has(name));
  const unknown = Object.keys(DOCUMENT.components.headers).filter((name) => headers.has(name) && !(name in documented));
  return [...missing.map((name) => `no header ${name}`), ...(response === undefined ? [] : unknown.map((name) => `the header ${name}`))];
}

/** @throws with what of the answer is not as the document says */
export function expectDocumented(method: string, target: string, answer: Answered): void {
  const problems = undocumented(method, target, answer);
  if (problems.length === 0) return;
  const text = JSON.stringify(answer.body)?.slice(0, 1000);
  throw new Error(`not as the OpenAPI document says: ${method} ${target} answered ${answer.status} ${text}: ${problems.join("; ")}`);
}
