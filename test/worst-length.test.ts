/**
 * No text a caller sends costs more than another of its length: every field of every endpoint gets texts of the greatest
 * length that are made of what patterns, cutters and tables stumble over, and is compared with plain words.
 *
 * What is compared is the time this process spends on a processor, the least of several runs, so that neither a busy machine
 * nor a collection of garbage decides. The gate tries each field with a part of the texts, which a seed decides, `--all` with every one.
 *
 * @module
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { Kind, type TObject, type TSchema } from "@sinclair/typebox";
import { endpointsOf } from "../src/server/app.ts";
import type { Endpoint } from "../src/http/endpoint.ts";
import { pathParameters } from "../src/http/path-parameters.ts";
import { OBJECT_KIND } from "../src/http/types.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { startCairn, type RequestOptions } from "./support/cairn.ts";
import { oneOfEach } from "./support/requests.ts";
import { floodingSyllables, syllables } from "./support/flood.ts";
import { longRounds } from "./support/rounds.ts";

// Thousands of requests, on a machine that may be busy with other tests.
setDefaultTimeout(3_600_000);

/** Each field gets one of so many of the texts; the next field gets the next of them. */
const ONE_OF = longRounds(5, 1);
/** The encoder takes seconds for the longest texts, whatever they say. */
const BY_WORDS = {
  durability: "relaxed",
  // Secrets are looked for in all texts that are kept, whatever they are.
  environment: { embedding: { provider: "words" }, secrets: "redact", secret_kinds: "keys,cards,email,phone" },
} as const;
const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? Math.trunc(Math.random() * 2 ** 32));
const PASSED = { seed: SEED, tooDear: [] };

/** How many times as long as plain text another may take, and what does not matter: a lone surrogate is six characters of JSON. */
const FACTOR = 5;
const FLOOR_MS = 8;
const RUNS_MAX = 30;

/** What is repeated to make a text. */
const UNITS = [
  ..."aTZ1 \t.,:;/*-_'\"\\[{(%@+=<",
  "\0,\ud800,é,\u0301,\ufdfa,ß,а,ال,가,猫,😀,⑪".split(","),
  "T |T +| 00|1.|1,|1,111.|12:34 |2024-01-011|2026-05-07T|+00:0|a_|aB|a'|a-|a@|a b ".split("|"),
  "eyJ|eyJ.|4111 |4111111111111111 |-----BEGIN |ghp_|glpat-.|xoxb-|a@a.|secret_key=|+1 ".split("|"),
  "may |max|less than 1|a\u0301\u0316|://|[::|::1|1.1.1.1.|crn_|sess_|%41|a,|<a>|relationalizationfulnesses ".split("|"),
].flat();

/** What a field's text begins with, where only then more of it is looked at. */
const STARTS: [name: RegExp, start: string][] = [
  [/created_|expires_at/, "2026-05-07T08:00:00."],
  [/url/, "https://"],
];

let groupsMade = 0;

/** A text without anything about it, in words that come once each. */
function plainText(length: number): string {
  const words: string[] = [];
  for (let i = 0, left = length; left > 0; i++) {
    const word = `w${(i * 7919).toString(36)}`;
    words.push(word);
    left -= word.length + 1;
  }
  return words.join(" ").slice(0, length);
}

/** Texts and one without anything about it, that they are compared with. */
interface Group {
  plain: string;
  hostile: { name: string; text: string }[];
}

function groupsOf(field: string, length: number): Group[] {
  const start = STARTS.find(([name]) => name.test(field))?.[1];
  const words: Group = { plain: plainText(length), hostile: [] };
  const turn = SEED + groupsMade++;
  for (const unit of (length > MANY_FROM ? UNITS.slice(0, MANY) : UNITS).filter((_, i) => (i + turn) % ONE_OF === 0)) {
    for (const before of start === undefined ? [""] : ["", start]) {
      // The end is another: a pattern that has gone along with all the rest fails there.
      const text = `${before}${unit.repeat(Math.ceil(length / unit.length))}`.slice(0, length - 1);
      words.hostile.push({ name: JSON.stringify(before + unit), text: `${text}!` });
    }
  }
  if (length > flood.length) return [words];
  // Nearly each character begins a term, so a text has more of them than one of words.
  return [words, { plain: syllables(length), hostile: [{ name: "syllables that flood a table", text: flood.slice(0, length) }] }];
}
/** A text that is longer than any field is gets no further than to be measured. */
const MANY_FROM = 100_000;
const MANY = 6;
const flood = floodingSyllables(LIMITS.queryLengthMax);

interface Field {
  name: string;
  length: number;
  /** The request with a text in this field, or undefined where such a text cannot be there. */
  request: (text: string) => { path: string; options: RequestOptions } | undefined;
}

/** What a request line or header takes before the server refuses it unread: 16 KB altogether. */
const LINE_LENGTH = 15_500;
const BODY_LENGTH = 1_000_000;

/** The field's texts as they go into a URL, cut to what a line may hold. */
function inUrl(text: string): string {
  let encoded = encodedBefore.get(text) ?? "";
  if (encoded !== "") return encoded;
  for (const character of text.toWellFormed()) {
    if (encoded.length > LINE_LENGTH - 12) break;
    encoded += encodeURIComponent(character);
  }
  encodedBefore.set(text, encoded);
  return encoded;
}
const encodedBefore = new Map<string, string>();

/** Where texts can stand in a body: each with what makes the body around one. */
interface InBody {
  name: string;
  lengths: number[];
  /** How many times the body holds the text: arrays within arrays multiply. */
  times: number;
  body: (text: string) => unknown;
}

function textsIn(schema: TSchema, base: unknown): InBody[] {
  if (schema[Kind] === OBJECT_KIND) {
    return [
      { name: ".key", lengths: [LIMITS.metadataBytesMax / 8], times: 1, body: (text) => ({ [text]: 1 }) },
      { name: ".value", lengths: [LIMITS.metadataBytesMax / 8], times: 1, body: (text) => ({ a: text }) },
    ];
  }
  if (schema["type"] === "object") {
    return Object.entries((schema as TObject).properties).flatMap(([name, property]) => {
      const object = (typeof base === "object" ? base : {}) as Record<string, unknown>;
      return textsIn(property, object[name]).map((inner) => ({
        ...inner,
        name: `.${name}${inner.name}`,
        body: (text: string) => ({ ...object, [name]: inner.body(text) }),
      }));
    });
  }
  if (schema["type"] === "array") {
    const maxItems = (schema["maxItems"] as number | undefined) ?? 8;
    return textsIn(schema["items"] as TSchema, undefined).map(({ lengths, times, body, name }) => ({
      name: `[]${name}`,
      lengths: lengths.filter((length) => length * times * maxItems < BODY_LENGTH),
      times: times * maxItems,
      body: (text) => Array.from({ length: maxItems }, (_, i) => body(i + text.slice(`${i}`.length))),
    }));
  }
  if (["boolean", "integer", "number"].includes(schema["type"] as string)) return [];
  const max = schema["maxLength"] as number | undefined;
  const lengths = max === undefined ? [LIMITS.memoryContentLengthMax, BODY_LENGTH] : [max, 20 * max];
  return [{ name: "", lengths, times: 1, body: (text) => text }];
}

/** These would call another server. */
const NEVER_SENT = new Set([".embedding"]);

function fieldsOf({ path, query, body, example, method }: Endpoint, ids: Record<string, string>): Field[] {
  const pathWith = (values: Record<string, string>) => path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? ids[name] ?? "0");
  const real = pathWith({});
  const base = { ...(example.request as object | undefined), ...(path === "/v1/memory" ? { session_id: ids["session_id"] } : {}) };
  const options: RequestOptions = body === null ? {} : { body: base };
  const fields: Field[] = [];
  for (const name of pathParameters(path)) {
    fields.push({ name, length: LINE_LENGTH, request: (text) => ({ path: pathWith({ [name]: inUrl(text) }), options }) });
  }
  for (const name of Object.keys(query.properties)) {
    fields.push({ name: `?${name}`, length: LINE_LENGTH, request: (text) => ({ path: `${real}?${name}=${inUrl(text)}`, options }) });
  }
  for (const inner of body === null ? [] : textsIn(body, base)) {
    if ([...NEVER_SENT].some((name) => inner.name.startsWith(name))) continue;
    for (const length of inner.lengths) {
      fields.push({ name: inner.name, length, request: (text) => ({ path: real, options: { body: inner.body(text) } }) });
    }
  }
  const isFirst = path === "/v1/sessions";
  for (const name of isFirst && method === "POST" ? HEADERS : []) {
    fields.push({
      name: `${name}:`,
      length: LINE_LENGTH,
      request: (text) => (NO_HEADER.test(text) ? undefined : { path: real, options: { ...options, headers: { [name]: text } } }),
    });
  }
  return fields;
}

const HEADERS = ["x-api-key", "authorization", "idempotency-key", "x-request-id", "host", "content-type", "content-encoding", "origin"];
HEADERS.push("x-forwarded-proto", "x-forwarded-host", "x-forwarded-for", "accept", "access-control-request-method");
const NO_HEADER = /[^\t\x20-\x7e\x80-\xff]/;

/** Milliseconds of a processor. */
async function costOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Those of a group that cost too much, by the least that each costs: again and again where it seems to be too much. */
async function dearOf({ plain, hostile }: Group, prepare: (text: string) => Promise<() => Promise<unknown>>): Promise<string[]> {
  const usual = await prepare(plain);
  let usualMs = Math.min(await costOf(usual), await costOf(usual));
  const dear: string[] = [];
  for (const { name, text } of hostile) {
    const work = await prepare(text);
    let ms = Number.POSITIVE_INFINITY;
    const isDear = () => ms > FACTOR * usualMs + FLOOR_MS;
    for (let run = 0; run < RUNS_MAX && isDear(); run++) {
      ms = Math.min(ms, await costOf(work));
      if (isDear()) usualMs = Math.min(usualMs, await costOf(usual));
    }
    if (isDear()) dear.push(`${name}: ${ms.toFixed(1)} ms, plain text ${usualMs.toFixed(1)} ms`);
  }
  return dear;
}

test("every text of every request takes about as long as plain words of its length", async () => {
  await using cairn = await startCairn({ ...BY_WORDS, requireHttps: true, corsOrigins: ["https://app.example.com"] });
  const ids = { ...(await oneOfEach(cairn)), delivery_id: "dlv_000000000000" };
  const tooDear: string[] = [];
  let sent = 0;
  for (const endpoint of endpointsOf(cairn.service)) {
    const { method, path } = endpoint;
    for (const { name, length, request } of fieldsOf(endpoint, ids)) {
      const send = (text: string) => {
        const made = request(text);
        if (method === "DELETE" && made !== undefined)
          made.path = made.path.replace(/(mem|sess|key|whk)_\w{12}(?=$|\?)/, "$1_000000000000");
        sent++;
        return made === undefined ? Promise.resolve() : cairn.plain(method, made.path, made.options);
      };
      for (const group of groupsOf(name, length)) {
        const dear = await dearOf(group, (text) => Promise.resolve(() => send(text)));
        tooDear.push(...dear.map((what) => `${method} ${path} ${name} (${length}) of ${what}`));
      }
    }
  }
  expect({ seed: SEED, tooDear }).toEqual(PASSED);
  expect(sent).toBeGreaterThan(longRounds(2_000, 5_000));
});

/** Where texts stand in operations on documents, each with the length that is looked at. */
const DOCUMENT_TEXTS: { kind: "batch" | "query"; name: string; length: number; operation: (text: string) => object }[] = [
  ...(["put", "delete"] as const).map((op) => ({
    kind: "batch" as const,
    name: `${op}.key`,
    length: LIMITS.documentNameBytesMax / 4,
    operation: (text: string) => ({ op, namespace: ["n"], key: text, ...(op === "put" ? { value: {} } : {}) }),
  })),
  ...["namespace", "value", "index", "session_id"].map((field) => ({
    kind: "batch" as const,
    name: `put.${field}`,
    length: { namespace: LIMITS.documentNameBytesMax / 4, value: LIMITS.documentTextLengthMax }[field] ?? LIMITS.documentIndexPathLengthMax,
    operation: (text: string) => ({
      op: "put",
      key: "k",
      namespace: ["n"],
      value: { a: "x" },
      index: ["a"],
      [field]: {
        value: { a: text },
        session_id: text,
      }[field] ?? [text],
    }),
  })),
  ...["to", "cursor"].map((field) => ({
    kind: "batch" as const,
    name: `copy_all.${field}`,
    length: LIMITS.documentNameBytesMax / 4,
    operation: (text: string) => ({ op: "copy_all", namespace: ["n"], to: ["m"], [field]: field === "to" ? [text] : text }),
  })),
  ...["after", "before", "cursor"].map((field) => ({
    kind: "query" as const,
    name: `list.${field}`,
    length: LIMITS.documentNameBytesMax / 4,
    operation: (text: string) => ({ op: "list", namespace: ["n"], [field]: text }),
  })),
  ...["prefix", "suffix"].map((field) => ({
    kind: "query" as const,
    name: `namespaces.${field}`,
    length: LIMITS.documentNameBytesMax / 4,
    operation: (text: string) => ({ op: "namespaces", [field]: [text] }),
  })),
  ...Object.entries({
    path: (text: string) => ({ [text]: 1 }),
    operator: (text: string) => ({ a: { [`$${text}`]: 1 } }),
    value: (text: string) => ({ a: { $in: [text], $gt: text } }),
  }).map(([name, filter]) => ({
    kind: "query" as const,
    name: `list.filter ${name}`,
    length: LIMITS.metadataBytesMax,
    operation: (text: string) => ({ op: "list", namespace: ["n"], filter: filter(text) }),
  })),
  {
    kind: "query",
    name: "search.query",
    length: LIMITS.queryLengthMax,
    operation: (query) => ({ op: "search", namespace: SEARCHED, query }),
  },
];
/** Holds none of the texts: one that has been put there costs more to compare with than another. */
const SEARCHED = ["searched"];

test("every text of an operation on documents takes about as long as plain words of its length", async () => {
  await using cairn = await startCairn(BY_WORDS);
  const searched = { op: "put", namespace: SEARCHED, key: "k", value: { a: "The parcel is blue." }, index: ["a"] };
  await cairn.ok(cairn.post("/v1/documents/batch", { operations: [searched] }));
  const tooDear: string[] = [];
  let understood = 0;
  for (const { kind, name, length, operation } of DOCUMENT_TEXTS) {
    const send = async (text: string) => {
      const { status } = await cairn.post(`/v1/documents/${kind}`, { operations: [operation(text)] });
      if (status === 200) understood++;
    };
    for (const group of groupsOf(name, length)) {
      const dear = await dearOf(group, (text) => Promise.resolve(() => send(text)));
      tooDear.push(...dear.map((what) => `${name} (${length}) of ${what}`));
    }
  }
  expect({ seed: SEED, tooDear }).toEqual(PASSED);
  expect(understood).toBeGreaterThan(longRounds(100, 500));
});

test("every text of a message of MCP takes about as long as plain words of its length", async () => {
  await using cairn = await startCairn(BY_WORDS);
  const headers = { Accept: "application/json, text/event-stream" };
  const request = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });
  const call = (name: string, given: object) => request("tools/call", { name, arguments: given });
  const messages: Record<string, (text: string) => object> = {
    method: (text) => request(text, {}),
    id: (text) => ({ ...request("ping", {}), id: text }),
    "name of a tool": (text) => call(text, {}),
    "name of an argument": (text) => call("get_context", { [text]: 1 }),
    query: (text) => call("get_context", { query: text }),
    session_id: (text) => call("get_state", { session_id: text }),
    // Removed in the same call: a state that grew with each text would make the later ones dear.
    changes: (text) => call("update_state", { changes: { [text]: null, x: text } }),
    uri: (text) => request("resources/read", { uri: text }),
    "uri of a session": (text) => request("resources/read", { uri: `cairn://sessions/${text}` }),
    prompt: (text) => request("prompts/get", { name: "continue", arguments: { about: text } }),
    revision: (text) => request("initialize", { protocolVersion: text, capabilities: {}, clientInfo: { name: text, version: text } }),
  };
  const tooDear: string[] = [];
  for (const [name, message] of Object.entries(messages)) {
    for (const group of groupsOf(name, LIMITS.queryLengthMax)) {
      const dear = await dearOf(group, (text) => Promise.resolve(() => cairn.plain("POST", "/mcp", { body: message(text), headers })));
      tooDear.push(...dear.map((what) => `${name} of ${what}`));
    }
  }
  expect({ seed: SEED, tooDear }).toEqual(PASSED);
});

test("finding and explaining long texts takes about as long as with plain words", async () => {
  await using cairn = await startCairn(BY_WORDS);
  const length = LIMITS.memoryContentLengthMax;
  /** A search and a context, explained, among memories that are much like the query. */
  const searchOf = async (hostile: string) => {
    const text = hostile.toWellFormed();
    const { id } = await cairn.createSession();
    for (let i = 1; i <= 3; i++) await cairn.addMemory(id, text.slice(i));
    return async () => {
      await cairn.search(text, { session_id: id, threshold: 0, explain: true });
      await cairn.context(id, { query: text, explain: true });
    };
  };
  const tooDear: string[] = [];
  for (const group of groupsOf("query", length)) tooDear.push(...(await dearOf(group, searchOf)));
  expect({ seed: SEED, tooDear }).toEqual(PASSED);
});
