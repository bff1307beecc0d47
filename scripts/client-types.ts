/**
 * Writes src/client/types.ts: the schemas and query parameters of the OpenAPI document as TypeScript. Run it when the API has changed.
 *
 *     scripts/test --fix
 *
 * Types that only the paths for the SDKs of StateBase use are left out: they have clients of their own.
 *
 * @module
 */
import { join } from "node:path";
import { format } from "oxfmt";
import { endpointsOf } from "../src/server/app.ts";
import { openApiDocument } from "../src/http/openapi.ts";

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  /** Type of all other members, where they are described. */
  readonly additionalProperties?: boolean | Schema;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly nullable?: boolean;
  readonly description?: string;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly { name: string; in: string; required?: boolean; description?: string; schema: Schema }[];
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>>; readonly responses: Readonly<Record<string, unknown>> };
}

const FILE = join(import.meta.dir, "../src/client/types.ts");
const FORMAT = { printWidth: 140 };
/** Names that the language has too. */
const RENAMED: Readonly<Record<string, string>> = { Error: "ErrorAnswer" };
export const OTHER_CLIENTS = "StateBase SDKs";

const HEAD = `/**
 * Requests and answers of Cairn, made by scripts/client-types.ts from the OpenAPI document. Do not edit.
 *
 * @module
 */

/** A JSON object of your own. */
// oxlint-disable-next-line typescript/no-explicit-any -- Interfaces fit it, and members can be read without a cast.
export type JsonObject = { [key: string]: any };
/** Any JSON value. */
export type JsonValue = JsonObject | JsonValue[] | string | number | boolean | null;
`;

/** Makes components of the schemas that are written in place with their title. */
export function withTitledComponents<OpenApi extends { components: { schemas: object } }>(document: OpenApi): OpenApi {
  const found: Record<string, object> = {};
  const lifted = (at: unknown): unknown => {
    if (typeof at !== "object" || at === null) return at;
    if (Array.isArray(at)) return at.map(lifted);
    const members = Object.fromEntries(Object.entries(at).map(([name, member]) => [name, lifted(member)]));
    const { title, ...schema } = members;
    if (typeof title !== "string" || schema["type"] !== "object") return members;
    found[title] = schema;
    return { $ref: `#/components/schemas/${title}` };
  };
  const { components, ...rest } = lifted(document) as OpenApi;
  return { ...rest, components: { ...components, schemas: { ...components.schemas, ...found } } } as OpenApi;
}

/** Returns the OpenAPI document from which clients are made. */
export function servedDocument(): Document {
  const document = JSON.parse(JSON.stringify(openApiDocument(endpointsOf({} as never), "0.0.0"))) as Document;
  return withPlainParameters(withTitledComponents(document));
}

/** Gives parameters that are JSON their schema in the place where others have it. */
export function withPlainParameters<OpenApi extends object>(document: OpenApi): OpenApi {
  return JSON.parse(JSON.stringify(document), (_, value: { in?: string; content?: Record<string, { schema: Schema }> }) => {
    if (value?.in !== "query" || value.content === undefined) return value;
    const { content, ...parameter } = value;
    return { ...parameter, schema: content["application/json"]!.schema };
  }) as OpenApi;
}

/** Returns the text of src/client/types.ts. */
export async function clientTypes(): Promise<string> {
  const document = servedDocument();
  const operations = Object.values(document.paths)
    .flatMap((path) => Object.values(path))
    .filter(({ tags }) => !tags.includes(OTHER_CLIENTS));
  const queries = operations.flatMap((operation) => queryOf(operation));
  const { schemas } = document.components;
  const used = schemasUsed(schemas, [operations, document.components.responses]);
  const types = Object.entries(schemas).filter(([name]) => used.has(name));
  const declared = [...types.map(([name, schema]): [string, Schema] => [nameOf(name), schema]), ...queries];
  const text = [HEAD, ...declared.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, schema]) => declaration(name, schema))].join("\n");
  return (await format(FILE, text, FORMAT)).code;
}

function declaration(name: string, schema: Schema): string {
  const isInterface = schema.properties !== undefined && schema.nullable !== true;
  const type = typeOf(schema, "");
  return `${comment(schema.description, "")}export ${isInterface ? `interface ${name} ${type}` : `type ${name} = ${type};`}\n`;
}

/** Parameters of a query string, as a schema with the name of their operation. */
function queryOf({ operationId, parameters = [] }: Operation): [string, Schema][] {
  const inQuery = parameters.filter((parameter) => parameter.in === "query");
  if (inQuery.length === 0) return [];
  const properties = Object.fromEntries(
    inQuery.map(({ name, description = "", schema }): [string, Schema] => [name, { ...schema, description }]),
  );
  const name = `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Query`;
  return [[name, { type: "object", properties, required: inQuery.flatMap(({ name, required }) => (required === true ? [name] : [])) }]];
}

/** The names of the schemas that some JSON refers to, also by way of others. */
export function schemasUsed(schemas: Readonly<Record<string, Schema>>, from: unknown): Set<string> {
  const used = new Set<string>();
  const look = (at: unknown) => {
    for (const [, name = ""] of JSON.stringify(at).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (used.has(name)) continue;
      used.add(name);
      look(schemas[name]);
    }
  };
  look(from);
  return used;
}

function nameOf(component: string): string {
  return RENAMED[component] ?? component;
}

function typeOf(schema: Schema, indent: string): string {
  const isNull = schema.nullable === true && schema.enum?.includes(null) !== true;
  return isNull ? `${plainTypeOf(schema, indent)} | null` : plainTypeOf(schema, indent);
}

function plainTypeOf(schema: Schema, indent: string): string {
  const { $ref, enum: values, anyOf, type, items = {}, properties, additionalProperties, required = [] } = schema;
  if ($ref !== undefined) return nameOf($ref.split("/").at(-1) ?? "");
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (anyOf !== undefined) return anyOf.map((member) => typeOf(member, indent)).join(" | ");
  switch (type) {
    case "string":
    case "boolean":
      return type;
    case "integer":
    case "number":
      return "number";
    case "array": {
      const item = typeOf(items, indent);
      return item.includes(" ") ? `Array<${item}>` : `${item}[]`;
    }
    case "object": {
      if (properties === undefined) return "JsonObject";
      const inner = `${indent}  `;
      const members = Object.entries(properties).map(([name, member]) => {
        const optional = required.includes(name) ? "" : "?";
        return `${comment(member.description, inner)}${inner}${name}${optional}: ${typeOf(member, inner)};\n`;
      });
      const others =
        typeof additionalProperties === "object" ? `${inner}[path: string]: ${typeOf(additionalProperties, inner)} | undefined;\n` : "";
      return `{\n${members.join("")}${others}${indent}}`;
    }
    default:
      return "JsonValue";
  }
}

/** A doc comment, on one line where it fits. */
function comment(description: string | undefined, indent: string): string {
  if (description === undefined || description === "") return "";
  const text = description.replaceAll("*/", "*\\/");
  const line = `${indent}/** ${text} */`;
  if (line.length <= FORMAT.printWidth && !text.includes("\n")) return `${line}\n`;
  const lines = text.split("\n").flatMap((paragraph) => wrapped(paragraph, FORMAT.printWidth - indent.length - 3));
  return `${indent}/**\n${lines.map((each) => `${indent} * ${each}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

export function wrapped(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1) ?? "";
    if (line === "") lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

if (import.meta.main) await Bun.write(FILE, await clientTypes());
