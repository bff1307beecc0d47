/**
 * Writes what follows from the OpenAPI document in src/python/cairn_client: `_types.py`, the answers and what is nested in requests;
 * `_sync.py` and `_async.py`, a method for each operation in both colours. Run it when the API has changed; it needs no Python.
 *
 *     scripts/test --fix
 *
 * @module
 */
import { join } from "node:path";
import type { Operation as Described } from "./client-types.ts";
import { answerOf, argumentsOf, callOf, definition, givenOf } from "./python-client/arguments.ts";
import { AWAITING, BLOCKING, type Colour } from "./python-client/colours.ts";
import { docOf, docstring, withArguments } from "./python-client/docstrings.ts";
import { operations, pascal, refName, WIDTH, type Argument, type Endpoint } from "./python-client/document.ts";
import { documentsClass } from "./python-client/documents.ts";
import { itemsOf, typeOf, types } from "./python-client/types.ts";
import { NAMES } from "./python-names.ts";

const FOLDER = join(import.meta.dir, "../src/python/cairn_client");

/** Returns the made files by their names. */
export function pythonClient(): Readonly<Record<string, string>> {
  return { "_types.py": types(), "_sync.py": client(BLOCKING), "_async.py": client(AWAITING) };
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

if (import.meta.main) for (const [file, text] of Object.entries(pythonClient())) await Bun.write(join(FOLDER, file), text);
