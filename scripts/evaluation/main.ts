/**
 * Measures how well search finds, through the public API of the real executable.
 *
 *     scripts/evaluate DATA_DIR [set,set …]                      starts the executable on a fresh directory
 *     scripts/evaluate DATA_DIR [sets] --dense                   the same with dense vectors, which are no model's: `dense.ts`
 *     scripts/evaluate DATA_DIR [sets] --url URL --key KEY       a running server
 *
 * Every file of the directory is a set, in one of two forms:
 * - `{ "kind": "retrieval", "corpora": [{ "memories": [{ id, text }], "queries": [{ text, category, relevant: [id] }] }] }`: each
 *   corpus becomes a session. A query without anything relevant asks about nothing stored; the category `adversarial` is left out.
 * - `{ "kind": "sts", "pairs": [[score 0 to 5, text, text]] }`: how like the order of our scores is to that of people.
 *
 * @module
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { Executable, providerEnvironment } from "../executable.ts";
import { readArguments, runScript } from "../failure.ts";
import { Child } from "../benchmark/child.ts";
import type { ProviderOrder } from "../benchmark/provider.ts";
import { found, retrievalFigures, sentencePairFigures, type Found, type Ranked } from "./figures.ts";

interface Corpus {
  memories: { id: string; text: string }[];
  queries: { text: string; category: string; relevant: string[] }[];
}
type DataSet = { kind: "retrieval"; corpora: Corpus[] } | { kind: "sts"; pairs: [number, string, string][] };

interface Api {
  createSession(): Promise<string>;
  addMemory(session: string, content: string): Promise<string>;
  search(session: string, query: string): Promise<{ id: string; score: number }[]>;
}

const BINARY = join(dirname(dirname(import.meta.dir)), "dist/cairn");
const CONCURRENCY = 16;
const RESULTS = 20;
const CONTENT_MAX = 10_000;

function apiOf(url: string, key: string): Api {
  const post = async <Answer>(path: string, body: unknown): Promise<Answer> => {
    const headers = { "content-type": "application/json", "x-api-key": key };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as Answer;
  };
  return {
    createSession: async () => (await post<{ id: string }>("/v1/sessions", { agent_id: "evaluation" })).id,
    addMemory: async (session, content) =>
      (await post<{ id: string }>("/v1/memory", { session_id: session, content: content.slice(0, CONTENT_MAX) || " " })).id,
    search: async (session, query) =>
      (
        await post<{ data: { id: string; score: number }[] }>("/v1/memory/search", {
          query,
          session_id: session,
          limit: RESULTS,
          threshold: 0,
        })
      ).data,
  };
}

/** Does `work` for each item, so many at a time, and keeps the order. */
async function inParallel<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await work(items[i] as Item);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return results;
}

async function evaluateCorpus(api: Api, { memories, queries }: Corpus): Promise<Found[]> {
  const session = await api.createSession();
  const ids = await inParallel(memories, ({ text }) => api.addMemory(session, text));
  const indexOf = new Map(ids.map((id, index) => [id, index]));
  const indexOfText = new Map(memories.map(({ id }, index) => [id, index]));
  const asked = queries.filter(({ category }) => category !== "adversarial");
  return inParallel(asked, async ({ text, relevant }) => {
    const ranked: Ranked = (await api.search(session, text)).map(({ id, score }) => ({ index: indexOf.get(id) ?? -1, score }));
    return found(
      relevant.flatMap((id) => indexOfText.get(id) ?? []),
      ranked,
    );
  });
}

async function evaluate(api: Api, data: DataSet): Promise<string> {
  if (data.kind === "sts") {
    const scores = await inParallel(data.pairs, async ([, first, second]) => {
      const session = await api.createSession();
      await api.addMemory(session, second);
      return (await api.search(session, first))[0]?.score ?? 0;
    });
    return sentencePairFigures(
      data.pairs.map(([human]) => human),
      scores,
    );
  }
  const all: Found[] = [];
  for (const corpus of data.corpora) all.push(...(await evaluateCorpus(api, corpus)));
  return retrievalFigures(all);
}

await runScript(async () => {
  const { values, positionals } = readArguments({
    allowPositionals: true,
    options: { url: { type: "string" }, key: { type: "string" }, dense: { type: "boolean", default: false } },
  });
  const [directory, only] = positionals;
  if (directory === undefined) {
    console.error("scripts/evaluate DATA_DIR [set,set …] [--dense | --url URL --key KEY]");
    process.exit(2);
  }
  const names =
    only?.split(",") ??
    readdirSync(directory)
      .filter((name) => name.endsWith(".json"))
      .map((name) => basename(name, ".json"));
  const scratch = mkdtempSync(join(tmpdir(), "cairn-evaluation-"));
  const provider = values.dense ? new Child<ProviderOrder, number>("provider.ts") : undefined;
  const environment = providerEnvironment(await provider?.tell({ port: 0 }));
  const options = { binary: BINARY, dataDirectory: join(scratch, "data"), logLevel: "warn", log: join(scratch, "log"), environment };
  const server = values.url === undefined ? await Executable.start(options) : undefined;
  try {
    if (values.dense) await server?.calibrated();
    const api = apiOf(server?.url ?? values.url ?? "", (await server?.createKey()) ?? values.key ?? "");
    for (const name of names) {
      const data = JSON.parse(readFileSync(join(directory, `${name}.json`), "utf8")) as DataSet;
      console.log(name.padEnd(12), await evaluate(api, data));
    }
  } finally {
    await server?.stop();
    provider?.end();
    rmSync(scratch, { recursive: true, force: true });
  }
});
