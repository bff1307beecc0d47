/**
 * The methods of documents, each one operation of a batch or query.
 *
 * @module
 */
import { DOCUMENT_METHODS, type DocumentMethod } from "../python-names.ts";
import { definition, field, givenOf, KEY, TIMEOUT } from "./arguments.ts";
import { BLOCKING, type Colour } from "./colours.ts";
import { docstring, withArguments } from "./docstrings.ts";
import { schemas, type Argument } from "./document.ts";

export function documentsClass(colour: Colour): string {
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
