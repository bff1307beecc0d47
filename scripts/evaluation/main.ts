/**
 * Measures how well search finds, through the public API of the real executable, beside BM25.
 *
 *     scripts/evaluate                                           the project's own everyday data: `test/retrieval/everyday`
 *     scripts/evaluate DATA_DIR [set,set …]                      data sets of a directory
 *     scripts/evaluate [DATA_DIR] --dense                        with dense vectors, which are no model's: `dense.ts`
 *     scripts/evaluate [DATA_DIR] --url URL --key KEY            a running server
 *     scripts/evaluate [DATA_DIR] --joined 4400                  with memories joined to texts of so many characters
 *     scripts/evaluate [DATA_DIR] --turns words                  with the texts as turns, found by their words, or by their meaning
 *     scripts/evaluate --record                                  writes what the tests expect of the everyday data
 *
 * Every file of the directory is a set, in one of two forms:
 * - `{ "kind": "retrieval", "corpora": [{ language, "memories": [{ id, text }], "queries": [{ text, category, relevant: [id] }] }] }`:
 *   each corpus becomes a session (`corpus.ts`). Every corpus is also asked questions of the others, which are about something else.
 * - `{ "kind": "sts", "pairs": [[score 0 to 5, text, text]] }`: how like the order of our scores is to that of people.
 *
 * @module
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { Executable, providerEnvironment } from "../executable.ts";
import { Failure, readArguments, runScript } from "../failure.ts";
import { Child } from "../benchmark/child.ts";
import type { ProviderOrder } from "../benchmark/provider.ts";
import { type Api, type Corpus, type Evaluated, CONTENT_MAX, evaluateCorpora, inParallel, joined } from "./corpus.ts";
import { EVERYDAY, EXPECTED, expectationOf, type Expectation } from "./expectation.ts";
import { answeredShare, groupsOf, percent, sentencePairFigures, tableOf, THRESHOLD } from "./figures.ts";

type DataSet = { kind: "retrieval"; corpora: Corpus[] } | { kind: "sts"; pairs: [number, string, string][] };

const BINARY = join(dirname(dirname(import.meta.dir)), "dist/cairn");
const RESULTS = 20;
const PAUSE_MS = 100;

/** What becomes of the texts of a data set. */
type Stored = "memories" | "words" | "meaning";

function apiOf(url: string, key: string, stored: Stored): Api {
  const send = async <Answer>(method: string, path: string, body?: unknown): Promise<Answer> => {
    const headers = { "content-type": "application/json", "x-api-key": key };
    const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as Answer;
  };
  const get = <Answer>(path: string) => send<Answer>("GET", path);
  const post = <Answer>(path: string, body: unknown) => send<Answer>("POST", path, body);
  return {
    createSession: async () => {
      const session = { agent_id: "evaluation", ...(stored === "memories" ? {} : { index_turns: stored }) };
      return (await post<{ id: string }>("/v1/sessions", session)).id;
    },
    vectorsMade: async () => {
      const pending = async () => {
        const { vectors, turn_index: turns } = await get<Record<"vectors" | "turn_index", { pending: number }>>("/v1/stats");
        return vectors.pending + turns.pending;
      };
      while ((await pending()) > 0) await Bun.sleep(PAUSE_MS);
    },
    addMemory: async (session, content) => {
      if (stored === "memories") return (await post<{ id: string }>("/v1/memory", { session_id: session, content })).id;
      const turn = { input: { type: "text", content }, output: { type: "text", content: "" } };
      return (await post<{ id: string }>(`/v1/sessions/${session}/turns`, turn)).id;
    },
    search: async (session, query) => {
      const body = { query, session_id: session, limit: RESULTS, threshold: 0 };
      const path = stored === "memories" ? "/v1/memory/search" : "/v1/turns/search";
      return (await post<{ data: { id: string; score: number }[] }>(path, body)).data;
    },
  };
}

async function evaluatePairs(api: Api, pairs: readonly [number, string, string][]): Promise<string> {
  const scores = await inParallel(pairs, async ([, first, second]) => {
    const session = await api.createSession();
    await api.addMemory(session, second);
    return (await api.search(session, first))[0]?.score ?? 0;
  });
  return sentencePairFigures(
    pairs.map(([human]) => human),
    scores,
  );
}

function report({ answerable, unanswerable, unrelated }: Evaluated): string {
  const answered = (what: string, results: Evaluated["unrelated"]) =>
    results.length === 0 ? [] : [`${what}: ${percent(answeredShare(results))} % of ${results.length} get an answer at ${THRESHOLD}`];
  return [
    tableOf(groupsOf(answerable)),
    ...answered("questions about something else", unrelated),
    ...answered("questions about the subject that nothing stored answers", unanswerable),
  ].join("\n");
}

await runScript(async () => {
  const { values, positionals } = readArguments({
    allowPositionals: true,
    options: {
      url: { type: "string" },
      key: { type: "string" },
      dense: { type: "boolean", default: false },
      joined: { type: "string" },
      turns: { type: "string" },
      record: { type: "boolean", default: false },
    },
  });
  const [directory = EVERYDAY, only] = positionals;
  const length = values.joined === undefined ? undefined : Number(values.joined);
  if (length !== undefined && !(length > 0 && length <= CONTENT_MAX)) throw new Failure(`--joined must be a number up to ${CONTENT_MAX}`);
  const stored = values.turns ?? "memories";
  if (stored !== "memories" && stored !== "words" && stored !== "meaning") throw new Failure("--turns must be words or meaning");
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
  const expected: Record<string, Expectation> = {};
  try {
    if (values.dense) await server?.calibrated();
    const api = apiOf(server?.url ?? values.url ?? "", (await server?.createKey()) ?? values.key ?? "", stored);
    for (const name of names) {
      const data = JSON.parse(readFileSync(join(directory, `${name}.json`), "utf8")) as DataSet;
      if (data.kind === "sts") {
        console.log(`${name}\n${await evaluatePairs(api, data.pairs)}\n`);
        continue;
      }
      const evaluated = await evaluateCorpora(api, length === undefined ? data.corpora : [joined(data.corpora, length)]);
      console.log(`${name}\n${report(evaluated)}\n`);
      expected[name] = expectationOf(evaluated);
    }
    if (values.record) writeFileSync(EXPECTED, `${JSON.stringify(expected, undefined, 2)}\n`);
  } finally {
    await server?.stop();
    provider?.end();
    rmSync(scratch, { recursive: true, force: true });
  }
});
