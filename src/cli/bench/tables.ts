/**
 * Results of a benchmark as text (pure).
 *
 * @module
 */
import { CUTS, THRESHOLD, type Level, type Summary } from "./figures.ts";
import { USUAL_RESULTS, type StoredAs } from "./trial.ts";

const MEMORY_OF_OTHERS = "not known of a server that is named with --url";

/** Outcome of a run, besides the figures. */
export interface Done {
  readonly format: string;
  readonly haystacks: number;
  /** Conversations of all haystacks: of one in each no figures are shown. */
  readonly conversations: number;
  readonly questions: number;
  /** Questions whose results were there already. */
  readonly before: number;
  /** Messages that this run has stored. */
  readonly messages: number;
  readonly stored_as: StoredAs;
  readonly limit: number;
  readonly seconds: number;
  /** Highest of the server while it was asked, in megabytes; null where the server is not this command's own. */
  readonly memory_mb: { readonly rss: number; readonly own: number } | null;
  readonly cairn: string;
}

export function tablesOf(
  done: Done,
  { groups, unanswerable, missing, tokens, search_ms: ms, results_at_threshold: shown }: Summary,
): string[] {
  const { haystacks, questions, before, memory_mb: memory } = done;
  const kind = { memories: "memories", words: "turns, found by their words", meaning: "turns, found by meaning" }[done.stored_as];
  const levels = (of: "messages" | "conversations") => groups.map(({ name, [of]: level }) => ({ name, level }));
  return [
    `cairn ${done.cairn}, ${done.format}: ${whole(haystacks)} ${haystacks === 1 ? "haystack" : "haystacks"} and ${whole(questions)} questions; ` +
      `messages as ${kind}; ${done.limit} results asked for`,
    ...(before > 0 ? [`${whole(before)} questions were answered by an earlier run`] : []),
    "",
    ...levelTable("messages", levels("messages"), done.limit),
    "",
    ...(done.conversations === haystacks ? [] : [...levelTable("conversations", levels("conversations"), done.limit), ""]),
    ...Object.entries(unanswerable).map(
      ([category, { questions: asked, answered }]) =>
        `${category}: ${percent(answered / asked)} % of ${whole(asked)} questions that nothing answers get a result at ${THRESHOLD} or more`,
    ),
    `left out, since the file has no evidence of theirs: ${whole(missing.left_out)} questions; of ${whole(missing.partly)} others it lacks some`,
    `tokens of the first ${USUAL_RESULTS} results: ${whole(tokens.mean)} on average, p95 ${whole(tokens.p95)}; ${shown.toFixed(1)} of them at ${THRESHOLD} or more`,
    `search: p50 ${ms.p50.toFixed(1)} ms, p95 ${ms.p95.toFixed(1)} ms`,
    `memory of the server: ${memory === null ? MEMORY_OF_OTHERS : `${memory.rss} MB, ${memory.own} MB of it its own`}`,
    `${whole(done.messages)} messages stored and asked in ${whole(done.seconds)} s`,
  ];
}

function levelTable(what: string, levels: readonly { name: string; level: Level }[], limit: number): string[] {
  const cuts = CUTS.filter((cut) => cut > 1 && cut <= limit);
  const columns = [what, "n", "hit@1", ...cuts.map((cut) => `r@${cut}`), "MRR", "nDCG@10"];
  const rows = levels.map(({ name, level }) => [
    name,
    whole(level.questions),
    percent(level.hit_at_1),
    ...cuts.map((cut) => percent(level.recall_at[cut] ?? 0)),
    percent(level.mrr),
    percent(level.ndcg_at_10),
  ]);
  return aligned([columns, ...rows]);
}

/** Aligns the first column to the left, the others to the right. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows.map((cells) =>
    cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join("  "),
  );
}

const percent = (share: number) => (100 * share).toFixed(1);
export const whole = (number: number) => Math.round(number).toLocaleString("en");
