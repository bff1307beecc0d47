/**
 * Writes what follows from the OpenAPI document in src/python/cairn_client: `_types.py`, the answers and what is nested in requests;
 * `_sync.py` and `_async.py`, a method for each operation in both colours. Run it when the API has changed; it needs no Python.
 *
 *     scripts/test --fix
 *
 * @module
 */
import { join } from "node:path";
import { OPEN } from "../src/client/filters.ts";
import { OTHER_CLIENTS, schemasUsed, servedDocument, wrapped, type Operation as Described, type Schema } from "./client-types.ts";
import { DOCUMENT_METHODS, NAMES, POSITIONAL, type DocumentMethod } from "./python-names.ts";

interface Operation extends Described {
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly (Parameter & { $ref?: string })[];
  readonly requestBody?: { content: { "application/json": { schema: Schema } } };
  readonly responses: Readonly<Record<string, { $ref?: string; content?: Readonly<Record<string, { schema: Schema }>> }>>;
}

type Parameter = NonNullable<Described["parameters"]>[number];
type Mode = "answer" | "request";

/** Differences between the two colours. */
interface Colour {
  readonly module: "_sync" | "_async";
  readonly head: string;
  readonly prefix: "" | "Async";
  readonly define: "def" | "async def";
  readonly run: string;
  readonly iterate: "iterate" | "aiterate";
  readonly generator: (item: string) => string;
}

const FOLDER = join(import.meta.dir, "../src/python/cairn_client");
const WIDTH = 140;
const MADE = "made by scripts/python-client.ts from the OpenAPI document. Do not edit.";

const BLOCKING: Colour = {
  module: "_sync",
  head: `"""The client whose calls block, ${MADE}"""`,
  prefix: "",
  define: "def",
  run: "self._client.run",
  iterate: "iterate",
  generator: (item) => `Generator[${item}, None, None]`,
};
const AWAITING: Colour = {
  module: "_async",
  head: `"""The client whose calls are awaited, ${MADE}"""`,
  prefix: "Async",
  define: "async def",
  run: "await self._client.arun",
  iterate: "aiterate",
  generator: (item) => `AsyncGenerator[${item}, None]`,
};

const document = servedDocument();
const { schemas } = document.components;
const responses = document.components.responses as Readonly<Record<string, { readonly description?: string }>>;

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods as Readonly<Record<string, Operation>>)
    // Probes are for what supervises the server.
    .filter(([, { tags }]) => !tags.includes(OTHER_CLIENTS) && !path.startsWith("/health/"))
    .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
);
type Endpoint = (typeof operations)[number];

const answers = schemasUsed(
  schemas,
  operations.flatMap(({ operation }) => Object.entries(operation.responses).filter(([status]) => status < "300")),
);
const requests = schemasUsed(
  schemas,
  operations.map(({ operation }) => operation.requestBody),
);

/** Returns the made files by their names. */
export function pythonClient(): Readonly<Record<string, string>> {
  return { "_types.py": types(), "_sync.py": client(BLOCKING), "_async.py": client(AWAITING) };
}

// Types

/** Classes of objects that are written in place, by their names. */
type Lifted = Map<string, { readonly schema: Schema; readonly mode: Mode }>;

function types(): string {
  const classes: Lifted = new Map();
  for (const [name, schema] of Object.entries(schemas)) {
    if (schema.properties === undefined || hasOtherMembers(schema)) continue;
    if (answers.has(name) && itemsOf(name) === undefined) classes.set(name, { schema, mode: "answer" });
    if (requests.has(name) && isNested(name)) classes.set(nameIn("request", name), { schema, mode: "request" });
    for (const [member, field] of requests.has(name) ? Object.entries(schema.properties) : [])
      typeOf(field, "request", { name: `${name}${pascal(member)}`, lifted: classes });
  }
  // Iterating a map gives what is added meanwhile.
  const made = Array.from(drawn(classes), ([name, text]): [string, string] => [name, text]);
  const codes = (schemas["Error"]?.properties?.["error"]?.properties?.["code"]?.enum ?? []) as string[];
  const literals = [...codes, "connection_failed", "timeout", "unexpected_answer"].map((code) => `    ${JSON.stringify(code)},\n`);
  return `"""Requests and answers of Cairn, ${MADE}"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

from ._record import Record

OPEN = frozenset(${JSON.stringify(OPEN).replaceAll(",", ", ")})
"""Fields that have a default or say where a page begins: as None they let nothing more through."""

ErrorCode = Literal[
${literals.join("")}]
${made
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([, text]) => text)
  .join("")}`;
}

function* drawn(classes: Lifted): Generator<[string, string]> {
  for (const [name, { schema, mode }] of classes)
    yield [name, mode === "answer" ? recordClass(name, schema, classes) : typedDict(name, schema, classes)];
}

function recordClass(name: string, { description = "", properties = {}, required = [] }: Schema, lifted: Lifted): string {
  const nested: string[] = [];
  const members = Object.entries(properties).map(([member, schema]) => {
    const type = typeOf(schema, "answer", { name: `${name}${pascal(member)}`, lifted });
    const kind = recordIn(schema, `${name}${pascal(member)}`);
    if (kind !== undefined) nested.push(`${JSON.stringify(member)}: ${JSON.stringify(kind)}`);
    const isOptional = !required.includes(member);
    const optional = type.endsWith("| None") ? type : `${type} | None`;
    return `    ${member}: ${isOptional ? `${optional} = None` : type}\n${docstring(schema.description, 4)}`;
  });
  const table = nested.length === 0 ? "" : `    __nested__: ClassVar[Mapping[str, str]] = {${nested.join(", ")}}\n`;
  return `\n\nclass ${name}(Record):\n${docstring(description, 4)}${description === "" ? "" : "\n"}${table}${members.join("")}`;
}

function typedDict(name: string, { description = "", properties = {}, required = [] }: Schema, lifted: Lifted): string {
  const members = Object.entries(properties).map(([member, schema]) => {
    const type = typeOf(schema, "request", { name: `${name}${pascal(member)}`, lifted });
    return `    ${member}: ${required.includes(member) ? type : `NotRequired[${type}]`}\n${docstring(schema.description, 4)}`;
  });
  return `\n\nclass ${name}(TypedDict):\n${docstring(description, 4)}${description === "" ? "" : "\n"}${members.join("")}`;
}

interface Place {
  /** The name of an object that is written in place. */
  readonly name: string;
  readonly lifted?: Lifted;
  /** `list` as it is called where a method has its name. */
  readonly list?: string;
}

function typeOf(schema: Schema, mode: Mode, place: Place): string {
  const isNull = schema.nullable === true || schema.enum?.includes(null) === true;
  if (!isNull) return plainTypeOf(schema, mode, place);
  return schema.enum?.every((value) => value === null) === true ? "None" : `${plainTypeOf(schema, mode, place)} | None`;
}

function plainTypeOf(schema: Schema, mode: Mode, place: Place): string {
  const { $ref, enum: values, anyOf, type, items = {}, properties } = schema;
  if ($ref !== undefined) return hasOtherMembers(schemas[refName($ref)]) ? "Mapping[str, Any]" : nameIn(mode, refName($ref));
  if (values !== undefined)
    return `Literal[${values
      .filter((value) => value !== null)
      .map(literal)
      .join(", ")}]`;
  if (anyOf !== undefined) return anyOf.map((member) => typeOf(member, mode, place)).join(" | ");
  switch (type) {
    case "string":
      return "str";
    case "boolean":
      return "bool";
    case "integer":
      return "int";
    case "number":
      return "float";
    case "array":
      return `${mode === "answer" ? (place.list ?? "list") : "Sequence"}[${typeOf(items, mode, place)}]`;
    case "object":
      if (properties === undefined) return mode === "answer" ? "dict[str, Any]" : "Mapping[str, Any]";
      place.lifted?.set(place.name, { schema, mode });
      return place.name;
    default:
      return "Any";
  }
}

/** Checks whether an object has members besides those with names, so that it is a mapping. */
function hasOtherMembers(schema: Schema | undefined): boolean {
  return typeof schema?.additionalProperties === "object";
}

function literal(value: unknown): string {
  return value === true ? "True" : value === false ? "False" : JSON.stringify(value);
}

/** Returns the class of the records that a member holds, one or several. */
function recordIn({ $ref, type, items, properties }: Schema, name: string): string | undefined {
  if ($ref !== undefined) return schemas[refName($ref)]?.properties === undefined ? undefined : refName($ref);
  if (type === "array" && items !== undefined) return recordIn(items, name);
  return type === "object" && properties !== undefined ? name : undefined;
}

/** Type of the items of a list of the API; undefined for what is no list. */
function itemsOf(name: string): Schema | undefined {
  const { properties } = schemas[name] ?? {};
  return properties?.["last_id"] !== undefined && properties["has_more"] !== undefined ? properties["data"]?.items : undefined;
}

/** Bodies are the arguments of methods: only what is in them has a type. */
function isNested(name: string): boolean {
  const reference = `"#/components/schemas/${name}"`;
  return Object.entries(schemas).some(
    ([other, schema]) => requests.has(other) && JSON.stringify(schema.properties ?? {}).includes(reference),
  );
}

function nameIn(mode: Mode, name: string): string {
  return mode === "request" && answers.has(name) ? `${name}Param` : name;
}

function refName(ref: string): string {
  return ref.split("/").at(-1) ?? "";
}

function pascal(member: string): string {
  return member.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
}

// Methods

interface Argument {
  readonly name: string;
  readonly type: string;
  /** Undefined for one that must be given. */
  readonly fallback?: string;
  readonly description: string;
  /** The name of the field, where that is another. */
  readonly field?: string;
}

function client(colour: Colour): string {
  const groups = Map.groupBy(operations, ({ operation }) => nameOf(operation)[0]);
  const names = [...groups.keys()]
    .filter((group) => group !== "" && group !== "documents")
    .concat("documents")
    .sort();
  const classes = names.map((group) =>
    group === "documents" ? documentsClass(colour) : groupClass(colour, group, groups.get(group) ?? []),
  );
  const text = [...classes, cairnClass(colour, names, groups.get("") ?? [])].join("");
  return `${colour.head}\n\nfrom __future__ import annotations\n\n${imports(text, colour)}${text}`;
}

/** Names of this module of its own package, and those of the standard library, as far as they are used. */
function imports(text: string, colour: Colour): string {
  const used = (names: readonly string[]) => names.filter((name) => new RegExp(`(?<![\\w."])${name}(?![\\w"])`).test(text));
  const from = (module: string, names: readonly string[]) => {
    const some = used(names);
    if (some.length === 0) return "";
    const line = `from ${module} import ${some.join(", ")}\n`;
    return line.length <= WIDTH ? line : `from ${module} import (\n${some.map((name) => `    ${name},\n`).join("")})\n`;
  };
  const made = Array.from(types().matchAll(/^class (\w+)/gm), ([, name = ""]) => name).sort();
  return [
    text.includes("builtins.") ? "import builtins\n" : "",
    from("collections.abc", ["AsyncGenerator", "Generator", "Iterable", "Mapping", "Sequence"]),
    from("typing", ["Any", "Literal"]),
    "\n",
    text.includes("documents.") ? "from . import documents, events\n" : "from . import events\n",
    from("._client", colour === BLOCKING ? ["Blocking", "Client"] : ["Awaiting", "Client"]),
    from("._core", ["Call", "answered"]),
    from("._given", ["OMIT", "Omit", "given", "path", "texts"]),
    from("._page", colour === BLOCKING ? ["Page", "listed"] : ["Listing", "listed"]),
    from("._types", made),
  ].join("");
}

function nameOf({ operationId }: Described): [group: string, method: string] {
  const name = NAMES[operationId];
  if (name === undefined) throw new Error(`scripts/python-names.ts has no name for ${operationId}`);
  const [group = "", method] = name.split(".");
  return method === undefined ? ["", group] : [group, method];
}

function groupClass(colour: Colour, group: string, endpoints: readonly Endpoint[]): string {
  const name = className(colour, group);
  return `

class ${name}:
    """Calls of \`cairn.${group}\`."""

    def __init__(self, client: Client) -> None:
        self._client = client
${endpoints.map((endpoint) => method(colour, endpoint)).join("")}`;
}

/** A part of the client; settings and others are also records. */
function className(colour: Colour, group: string): string {
  return `${colour.prefix}${pascal(group)}${group === "documents" ? "" : "Api"}`;
}

function method(colour: Colour, endpoint: Endpoint, client = "self._client"): string {
  const { operation } = endpoint;
  const [, name] = nameOf(operation);
  const { ids, fields, own } = argumentsOf(endpoint);
  const body = callOf(endpoint, fields);
  const { $ref } = answerOf(operation);
  const answer = $ref === undefined ? "" : refName($ref);
  const items = itemsOf(answer);
  const documented = { ids, fields, own, doc: docOf(operation, [...ids, ...fields, ...own]) };
  const sent = `${client}.options`;
  if (name === "events") {
    const after: Argument = {
      name: "last_event_id",
      type: "str | None",
      fallback: "None",
      description: "The id of a trace: those that followed it come first.",
    };
    const arguments_ = { ids, fields, own: [after] };
    const doc = `${operation.summary}: traces as they happen, until the loop is left. It reconnects by itself, and misses nothing meanwhile.`;
    const code = `return ${client}.${colour.iterate}(events.traces(${givenOf(fields)}, last_event_id, ${sent}))`;
    return definition(
      "def",
      name,
      { ...arguments_, doc: docstring(withArguments(doc, [...fields, after]), 8) },
      colour.generator("Trace"),
      code,
    );
  }
  if (name === "download")
    return definition(
      "def",
      name,
      documented,
      colour.generator("bytes"),
      `return ${client}.${colour.iterate}(events.pieces(${body}, ${sent}))`,
    );
  if (items !== undefined) {
    const item = typeOf(items, "answer", { name: "" });
    if (colour === BLOCKING)
      return definition(
        "def",
        name,
        documented,
        `Page[${item}]`,
        `return Page(${client}, ${client}.run(listed(${body}, ${sent}, ${item})))`,
      );
    return definition(
      "def",
      name,
      documented,
      `Listing[${item}]`,
      `call = ${body}\nreturn Listing(${client}, lambda: listed(call, ${sent}, ${item}))`,
    );
  }
  const run = colour.run.replace("self._client", client);
  return definition(colour.define, name, documented, answer, `return ${run}(answered(${body}, ${sent}, ${answer}))`);
}

interface Signature {
  readonly ids: readonly Argument[];
  readonly fields: readonly Argument[];
  readonly own: readonly Argument[];
  readonly doc: string;
}

function definition(define: string, name: string, { ids, fields, own, doc }: Signature, gives: string, code: string): string {
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

function argumentsOf({ method: verb, operation }: Endpoint): { ids: Argument[]; fields: Argument[]; own: Argument[] } {
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

const TIMEOUT: Argument = {
  name: "timeout",
  type: "float | None",
  fallback: "None",
  description: "How many seconds an attempt may take, instead of the client's `timeout`.",
};
const KEY: Argument = {
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

function answerOf({ responses: all }: Operation): Schema {
  const [, success] = Object.entries(all).find(([status]) => status < "300") ?? [];
  return success?.content?.["application/json"]?.schema ?? {};
}

const isOpen = (name: string) => (OPEN as readonly string[]).includes(name);

function field(name: string, schema: Schema, isRequired: boolean, owner = ""): Argument {
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

function givenOf(fields: readonly Argument[]): string {
  const nullable = fields.filter(({ name, type }) => type.includes("| None") && !isOpen(name)).map(({ name }) => JSON.stringify(name));
  const members = fields.map(({ name, field: key = name }) => `${JSON.stringify(key)}: ${name}`);
  return `given({${members.join(", ")}}${nullable.length === 0 ? "" : `, nullable=(${nullable.join(", ")},)`})`;
}

/** The \`Call\` of an operation. */
function callOf(endpoint: Endpoint, keywords: readonly Argument[]): string {
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

// Documents

function documentsClass(colour: Colour): string {
  const name = `${colour.prefix}Documents`;
  return `

class ${name}:
    """Documents: JSON under a namespace and a key. Each method is one operation; \`batch\` and \`query\` make several in one request."""

    def __init__(self, client: Client, scope: documents.Scope | None = None) -> None:
        self._client = client
        self._scope = scope or documents.Scope()

    @property
    def client(self) -> Client:
        """The client that they are used with."""
        return self._client

    @property
    def scope(self) -> documents.Scope:
        """Whose they are, as far as that was said."""
        return self._scope
${[...narrowed(name), severalChanges(colour), severalReads(colour), ...DOCUMENT_METHODS.map((one) => documentMethod(colour, one))].join("")}`;
}

/** The methods that give the documents of somebody. */
function narrowed(name: string): string[] {
  const owners = schemas["DocumentBatch"]?.properties ?? {};
  const fields = ["user_id", "agent_id"].map((one) => field(one, owners[one] ?? {}, false));
  const of = "Returns the documents of a user, of an agent, or of an agent for a user; without either those of nobody, which all share.";
  const ofSession = "Returns the same documents; whatever is put belongs to a session and is deleted with it.";
  const ids = [{ name: "session_id", type: "str", description: "" }];
  const narrow = (changes: string) => `return ${name}(self._client, self._scope._replace(${changes}))`;
  const session = 'given({"session_id": session_id})["session_id"]';
  return [
    definition(
      "def",
      "of",
      { ids: [], fields, own: [], doc: docstring(withArguments(of, fields), 8) },
      name,
      narrow(`owner=${givenOf(fields)}`),
    ),
    definition("def", "of_session", { ids, fields: [], own: [], doc: docstring(ofSession, 8) }, name, narrow(`session_id=${session}`)),
  ];
}

function severalChanges(colour: Colour): string {
  const doc = `Makes up to 100 changes in one transaction, in their order: all of them or none. Returns the result of each: of \`put\` a
\`DocumentWritten\`, of \`touch\` a \`DocumentTouched\` or None, of \`copy_all\` a \`DocumentsCopied\`, of \`pop\` a \`Document\` or None, of others a \`DocumentsDeleted\`.`;
  return several(colour, "batch", "DocumentChange", doc.replaceAll("\n", " "), [TIMEOUT, KEY]);
}

function severalReads(colour: Colour): string {
  const doc =
    "Runs up to 100 reads in one request. Returns the result of each: of `get` a `Document` or None, of others a page or a count.";
  return several(colour, "query", "DocumentQueryOperation", doc, [TIMEOUT]);
}

function several(colour: Colour, kind: "batch" | "query", element: string, text: string, own: readonly Argument[]): string {
  const ids = [{ name: "operations", type: `Iterable[${element}]`, description: "At most 100, in their order." }];
  const signature = { ids, fields: [], own, doc: docstring(withArguments(text, own), 8) };
  const code = `return ${colour.run}(documents.${kind}(self._scope, operations, ${sentOf(own)}))`;
  return definition(colour.define, kind, signature, "builtins.list[Any]", code);
}

const sentOf = (own: readonly Argument[]) => `documents.Sent(self._client.options, timeout${own.includes(KEY) ? ", idempotency_key" : ""})`;

function documentMethod(colour: Colour, { name, op, kind, takes, more, gives, doc, member, of }: DocumentMethod): string {
  const properties = schemas[kind === "batch" ? "DocumentChange" : "DocumentQueryOperation"]?.properties ?? {};
  const argument = (one: string, isRequired: boolean) => {
    const schema = properties[one];
    if (schema === undefined) throw new Error(`an operation of documents has no ${one}, which scripts/python-names.ts names`);
    return field(one, schema, isRequired, kind === "batch" ? "DocumentChange" : "DocumentQueryOperation");
  };
  const [ids, fields] = [takes.map((one) => argument(one, true)), more.map((one) => argument(one, false))];
  const own = kind === "batch" ? [TIMEOUT, KEY] : [TIMEOUT];
  const values = takes.map((one) => `"${one}": ${one === "namespace" || one === "to" ? `texts("${one}", ${one})` : one}`);
  const rest = fields.length === 0 ? "" : `, **${givenOf(fields)}`;
  const operation = `{${[`"op": "${op}"`, ...values].join(", ")}${rest}}`;
  const signature = { ids, fields, own, doc: docstring(withArguments(doc, [...fields, ...own]), 8) };
  if (of !== undefined) {
    const steps = `documents.pages(self._scope, operation, ${sentOf(own)})`;
    const first = `operation: dict[str, Any] = ${operation}\n`;
    if (colour === BLOCKING)
      return definition("def", name, signature, `Page[${of}]`, `${first}return Page(self._client, self._client.run(${steps}))`);
    return definition("def", name, signature, `Listing[${of}]`, `${first}return Listing(self._client, lambda: ${steps})`);
  }
  const run = `${colour.run}(documents.${kind === "batch" ? "change" : "read"}(self._scope, ${operation}, ${sentOf(own)}))`;
  const code = member === undefined ? `result: ${gives} = ${run}\nreturn result` : `result: ${gives} = (${run}).${member}\nreturn result`;
  return definition(colour.define, name, signature, gives, code);
}

function cairnClass(colour: Colour, names: readonly string[], endpoints: readonly Endpoint[]): string {
  const [base, doc] =
    colour === BLOCKING
      ? ["Blocking", "Cairn from a program whose calls block."]
      : ["Awaiting", "Cairn from a program whose calls are awaited, with asyncio or trio."];
  const call = colour === BLOCKING ? "" : "await ";
  return `

class ${colour.prefix}Cairn(${base}):
    """${doc}

    A method is an operation of the API, and its arguments and answers have the names of the API. A call that fails raises a \`CairnError\`.

    Example:
        cairn = ${colour.prefix}Cairn("crn_…")
        session = ${call}cairn.sessions.create(agent_id="support-bot", user_id="user-42")
        ${call}cairn.memories.add(session_id=session.id, content="Prefers e-mail to phone calls.")
    """

${names.map((name) => `    ${name}: ${className(colour, name)}\n`).join("")}
    def _bind(self) -> None:
${names.map((name) => `        self.${name} = ${className(colour, name)}(self)\n`).join("")}${endpoints.map((endpoint) => method(colour, endpoint, "self")).join("")}`;
}

// Docstrings

function docOf({ summary, description = "", responses: all }: Operation, arguments_: readonly Argument[]): string {
  const errors = Object.entries(all)
    .filter(([status]) => ["404", "409"].includes(status))
    .flatMap(([, { $ref }]) => (responses[refName($ref ?? "")]?.description ?? "").split("\n\n"))
    .filter(Boolean);
  const raises = errors.length === 0 ? "" : `\n\nRaises:\n${errors.map((error) => `    CairnError: ${error}`).join("\n")}`;
  return docstring(withArguments(`${summary}.${description === "" ? "" : `\n\n${description}`}`, arguments_) + raises, 8);
}

function withArguments(text: string, arguments_: readonly Argument[]): string {
  const lines = arguments_
    .filter(({ description }) => description !== "")
    .map(({ name, description }) => `    ${name}: ${description.replaceAll(/\s+/g, " ")}`);
  return lines.length === 0 ? text : `${text}\n\nArgs:\n${lines.join("\n")}`;
}

/** Wraps a text as a docstring; lines of an argument are set in below its name. */
function docstring(text: string | undefined, indent: number): string {
  if (text === undefined || text === "") return "";
  const space = " ".repeat(indent);
  const escaped = text.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"');
  const lines = escaped.split("\n").flatMap((line) => {
    const own = /^ */.exec(line)?.[0] ?? "";
    const [first = "", ...rest] = wrapped(line.trim(), WIDTH - indent - own.length - 8);
    return [own + first, ...rest.map((more) => `${own}${own === "" ? "" : "    "}${more}`)];
  });
  if (lines.length === 1 && !escaped.endsWith('"')) return `${space}"""${escaped}"""\n`;
  return `${[`"""${lines[0] ?? ""}`, ...lines.slice(1), '"""'].map((line) => `${space}${line}`.trimEnd()).join("\n")}\n`;
}

if (import.meta.main) for (const [file, text] of Object.entries(pythonClient())) await Bun.write(join(FOLDER, file), text);
