/**
 * Arguments of a method, and the request that it makes of them.
 *
 * @module
 */
import { OPEN } from "../../src/client/filters.ts";
import type { Schema } from "../client-types.ts";
import { POSITIONAL } from "../python-names.ts";
import { pascal, refName, schemas, type Argument, type Endpoint, type Operation } from "./document.ts";
import { typeOf } from "./types.ts";

export interface Signature {
  readonly ids: readonly Argument[];
  readonly fields: readonly Argument[];
  readonly own: readonly Argument[];
  readonly doc: string;
}

export function definition(define: string, name: string, { ids, fields, own, doc }: Signature, gives: string, code: string): string {
  const [required, optional] = [fields.filter((one) => one.fallback === undefined), fields.filter((one) => one.fallback !== undefined)];
  const keywords = [...required, ...optional, ...own];
  const lines = ["self", ...ids.map(declared), ...(keywords.length === 0 ? [] : ["*", ...keywords.map(declared)])];
  const parameters = lines.map((line) => `        ${line},\n`).join("");
  const statements = code
    .split("\n")
    .map((line) => `        ${line}\n`)
    .join("");
  return `\n    ${define} ${name}(\n${parameters}    ) -> ${gives}:\n${doc}${statements}`;
}

const declared = ({ name, type, fallback }: Argument) => `${name}: ${type}${fallback === undefined ? "" : ` = ${fallback}`}`;

export function argumentsOf({ method: verb, operation }: Endpoint): { ids: Argument[]; fields: Argument[]; own: Argument[] } {
  const parameters = operation.parameters ?? [];
  const ids = parameters
    .filter((one) => one.in === "path")
    .map(({ name, schema, description = "" }): Argument => ({ name, type: typeOf(schema, "request", { name: "" }), description }));
  const query = parameters.filter((one) => one.in === "query");
  const body = bodyOf(operation);
  const positional = POSITIONAL[operation.operationId] ?? {};
  const fields = [
    ...query.map((one) => field(one.name, { ...one.schema, description: one.description ?? "" }, one.required === true)),
    ...Object.entries(body.properties ?? {}).map(([name, schema]) =>
      field(name, schema, body.required?.includes(name) === true, body.name),
    ),
  ].map((one) => ({ ...one, name: positional[one.name] ?? one.name, field: one.name }));
  const isFirst = (one: Argument) => positional[one.field ?? ""] !== undefined;
  const hasKey = verb !== "GET" && parameters.some(({ $ref }) => $ref?.endsWith("/IdempotencyKey") === true);
  return {
    ids: [...ids, ...fields.filter(isFirst)],
    fields: fields.filter((one) => !isFirst(one)),
    own: [TIMEOUT, ...(hasKey ? [KEY] : [])],
  };
}

export const TIMEOUT: Argument = {
  name: "timeout",
  type: "float | None",
  fallback: "None",
  description: "How many seconds an attempt may take, instead of the client's `timeout`.",
};
export const KEY: Argument = {
  name: "idempotency_key",
  type: "str | None",
  fallback: "None",
  description: "For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new one unless given.",
};

function bodyOf({ requestBody }: Operation): Schema & { name: string } {
  const { $ref } = requestBody?.content["application/json"].schema ?? {};
  const name = $ref === undefined ? "" : refName($ref);
  return { ...schemas[name], name };
}

export function answerOf({ responses: all }: Operation): Schema {
  const [, success] = Object.entries(all).find(([status]) => status < "300") ?? [];
  return success?.content?.["application/json"]?.schema ?? {};
}

const isOpen = (name: string) => (OPEN as readonly string[]).includes(name);

export function field(name: string, schema: Schema, isRequired: boolean, owner = ""): Argument {
  const type = typeOf(schema, "request", { name: `${owner}${pascal(name)}` });
  const { description = "" } = schema;
  if (isRequired) return { name, type, description };
  if (isOpen(name)) return { name, type: `${type} | None`, fallback: "None", description };
  return {
    name,
    type: type.endsWith(" | None") ? `${type.slice(0, -"None".length)}Omit | None` : `${type} | Omit`,
    fallback: "OMIT",
    description,
  };
}

export function givenOf(fields: readonly Argument[]): string {
  const nullable = fields.filter(({ name, type }) => type.includes("| None") && !isOpen(name)).map(({ name }) => JSON.stringify(name));
  const members = fields.map(({ name, field: key = name }) => `${JSON.stringify(key)}: ${name}`);
  return `given({${members.join(", ")}}${nullable.length === 0 ? "" : `, nullable=(${nullable.join(", ")},)`})`;
}

/** The \`Call\` of an operation. */
export function callOf(endpoint: Endpoint, keywords: readonly Argument[]): string {
  const { method: verb, path, operation } = endpoint;
  const { ids, own } = argumentsOf(endpoint);
  const inPath = ids.filter(({ name }) => path.includes(`{${name}}`));
  const fields = [...ids.filter((one) => !inPath.includes(one)), ...keywords];
  const place =
    inPath.length === 0
      ? JSON.stringify(path)
      : `path("${path.replaceAll(/\{\w+\}/g, "{}")}", ${inPath.map(({ name }) => name).join(", ")})`;
  const parts = [JSON.stringify(verb), place];
  if (fields.length > 0) parts.push(`${verb === "GET" || verb === "DELETE" ? "query" : "body"}=${givenOf(fields)}`);
  const answer = schemas[refName(answerOf(operation).$ref ?? "")];
  const [id] = inPath.slice(-1);
  const kind = answer?.properties?.["object"]?.enum?.[0];
  if (verb === "DELETE" && id !== undefined && answer?.properties?.["deleted"] !== undefined)
    parts.push(`gone={"object": ${JSON.stringify(kind)}, "id": ${id.name}, "deleted": True}`);
  if (own.includes(KEY)) parts.push("idempotency_key=idempotency_key");
  else if (verb === "POST" || verb === "PATCH") parts.push("is_change=False");
  if (path === "/health") parts.push("accepts=503");
  return `Call(${parts.join(", ")}, timeout=timeout)`;
}
