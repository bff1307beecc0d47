/**
 * Measures how well search finds by `cairn bench recall` of the executable, next to BM25.
 *
 *     scripts/evaluate                                           the project's own everyday data: `test/retrieval/everyday`
 *     scripts/evaluate DATA_DIR [set,set …]                      data sets of a directory
 *     scripts/evaluate [DATA_DIR] --dense                        with dense vectors, which are no model's: `dense.ts`
 *     scripts/evaluate [DATA_DIR] --url URL --key KEY            a running server, whose key is bound to no user
 *     scripts/evaluate [DATA_DIR] --joined 4400                  with memories joined to texts of so many characters
 *     scripts/evaluate [DATA_DIR] --turns words                  with the texts as turns, found by their words, or by their meaning
 *     scripts/evaluate --record                                  writes what the tests expect of the everyday data
 *
 * Every file of the directory is a set, in one of two forms:
 * - `{ "kind": "retrieval", "corpora": [{ language, "memories": [{ id, text }], "queries": [{ text, category, relevant: [id] }] }] }`:
 *   `docs/reference/benchmark-format.md`. Every corpus is also asked questions of the others, which are about something else.
 * - `{ "kind": "sts", "pairs": [[score 0 to 5, text, text]] }`: how like the order of our scores is to that of people.
 *
 * @module
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { STORED_AS, type Answer, type StoredAs } from "../../src/cli/bench/trial.ts";
import { Executable, providerEnvironment } from "../executable.ts";
import { Failure, readArguments, runScript } from "../failure.ts";
import { Child } from "../benchmark/child.ts";
import type { ProviderOrder } from "../benchmark/provider.ts";
import { type Corpus, type Evaluated, CONTENT_MAX, evaluated, joined, RESULTS, withUnrelated } from "./corpus.ts";
import { EVERYDAY, EXPECTED, expectationOf, type Expectation } from "./expectation.ts";
import { answeredShare, groupsOf, percent, sentencePairFigures, tableOf, THRESHOLD } from "./figures.ts";

type DataSet = { kind: "retrieval"; corpora: Corpus[] } | { kind: "sts"; pairs: [number, string, string][] };

const BINARY = join(dirname(dirname(import.meta.dir)), "dist/cairn");
const CONCURRENCY = "16";

interface Bench {
  readonly scratch: string;
  /** Undefined for a temporary store. */
  readonly server: { readonly url: string; readonly key: string } | undefined;
  readonly storedAs: StoredAs;
}

/** Asks the questions of corpora with `cairn bench recall`. */
async function answersTo(corpora: readonly Corpus[], { scratch, server, storedAs }: Bench): Promise<Answer[]> {
  const [file, results] = [join(scratch, "corpora.json"), join(scratch, "results.jsonl")];
  writeFileSync(file, JSON.stringify({ corpora }));
  const flags = ["--format", "plain", "--store-as", storedAs, "--limit", `${RESULTS}`, "--concurrency", CONCURRENCY];
  const where = server === undefined ? [] : ["--url", server.url];
  const child = Bun.spawn([BINARY, "bench", "recall", file, "--results", results, "--force", ...flags, ...where], {
    env: server === undefined ? {} : { CAIRN_API_KEY: server.key },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
  });
  if ((await child.exited) !== 0) throw new Failure("cairn bench recall has failed.");
  const [, ...lines] = readFileSync(results, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as Answer);
}

async function evaluatePairs(pairs: readonly [number, string, string][], bench: Bench): Promise<string> {
  const corpora = pairs.map(([, first, second]) => ({
    memories: [{ id: "second", text: second }],
    queries: [{ text: first, category: "pair", relevant: ["second"] }],
  }));
  const answers = await answersTo(corpora, bench);
  const scores = answers.toSorted((one, other) => one.haystack - other.haystack).map(({ found }) => found[0]?.score ?? 0);
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

function storedAsOf(turns: string | undefined): StoredAs {
  const found = STORED_AS.find((name) => name === (turns ?? "memories"));
  if (found === undefined || turns === "memories") throw new Failure("--turns must be words or meaning");
  return found;
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
  const storedAs = storedAsOf(values.turns);
  const names =
    only?.split(",") ??
    readdirSync(directory)
      .filter((name) => name.endsWith(".json"))
      .map((name) => basename(name, ".json"));
  const scratch = mkdtempSync(join(tmpdir(), "cairn-evaluation-"));
  const provider = values.dense ? new Child<ProviderOrder, number>("provider.ts") : undefined;
  const dense = provider === undefined ? undefined : await startDense(scratch, await provider.tell({ port: 0 }));
  const named = values.url === undefined ? undefined : { url: values.url, key: values.key ?? "" };
  const expected: Record<string, Expectation> = {};
  try {
    const server = dense === undefined ? named : { url: dense.url, key: await dense.createKey() };
    const bench: Bench = { scratch, server, storedAs };
    for (const name of names) {
      const data = JSON.parse(readFileSync(join(directory, `${name}.json`), "utf8")) as DataSet;
      if (data.kind === "sts") {
        console.log(`${name}\n${await evaluatePairs(data.pairs, bench)}\n`);
        continue;
      }
      const corpora = withUnrelated(length === undefined ? data.corpora : [joined(data.corpora, length)]);
      const found = evaluated(corpora, await answersTo(corpora, bench));
      console.log(`${name}\n${report(found)}\n`);
      expected[name] = expectationOf(found);
    }
    if (values.record) writeFileSync(EXPECTED, `${JSON.stringify(expected, undefined, 2)}\n`);
  } finally {
    await dense?.stop();
    provider?.end();
    rmSync(scratch, { recursive: true, force: true });
  }
});

/** Starts a server whose vectors are those of `dense.ts`. */
async function startDense(scratch: string, port: number): Promise<Executable> {
  const environment = providerEnvironment(port);
  const options = { binary: BINARY, dataDirectory: join(scratch, "data"), logLevel: "warn", log: join(scratch, "log"), environment };
  const server = await Executable.start(options);
  await server.calibrated();
  return server;
}
