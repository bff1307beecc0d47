/**
 * Usage of turns, where their metadata say so: tokens, time, cost and the model, as chips of a turn and as sums.
 *
 * @module
 */
import type { Turn } from "../api.ts";
import { counted, number } from "../words.ts";

type Metadata = Turn["metadata"];

/** Names that agents and tracing tools give. */
const TOKENS = ["tokens", "total_tokens", "token_count"];
const TOKENS_IN = ["input_tokens", "prompt_tokens"];
const TOKENS_OUT = ["output_tokens", "completion_tokens"];
const MS = ["ms", "latency_ms", "duration_ms"];
const COST = ["cost", "cost_usd", "total_cost"];
const MODEL = ["model", "model_name", "model_id"];

interface Usage {
  readonly tokens: number;
  readonly ms: number;
  readonly cost: number;
}

function amountOf(metadata: Metadata, names: readonly string[]): number {
  const found = names.map((name) => metadata[name]).find((value) => typeof value === "number" && Number.isFinite(value) && value >= 0);
  return (found as number | undefined) ?? 0;
}

/** Token counts are as often in `usage` as next to it. */
function usageOf({ metadata }: Pick<Turn, "metadata">): Usage {
  const { usage } = metadata;
  const all = typeof usage === "object" && usage !== null && !Array.isArray(usage) ? { ...metadata, ...usage } : metadata;
  return {
    tokens: amountOf(all, TOKENS) || amountOf(all, TOKENS_IN) + amountOf(all, TOKENS_OUT),
    ms: amountOf(all, MS),
    cost: amountOf(all, COST),
  };
}

/** A sum of numbers that are each too large says nothing. */
function chipsOf(usage: Usage): string[] {
  const [tokens, ms, cost] = [usage.tokens, usage.ms, usage.cost].map((sum) => (Number.isFinite(sum) ? sum : 0)) as [
    number,
    number,
    number,
  ];
  return [
    ...(tokens > 0 ? [counted(tokens, "tokens")] : []),
    ...(ms > 0 ? [ms < 10_000 ? `${number(Math.round(ms))} ms` : `${number(Math.round(ms / 1000))} s`] : []),
    ...(cost > 0 ? [`cost ${cost.toLocaleString("en", { maximumSignificantDigits: 3 })}`] : []),
  ];
}

export function UsageChips({ turn }: { turn: Turn }) {
  const model = MODEL.map((name) => turn.metadata[name]).find((value) => typeof value === "string" && value !== "");
  const chips = [...(typeof model === "string" ? [model] : []), ...chipsOf(usageOf(turn))];
  return (
    <>
      {chips.map((chip) => (
        <span key={chip} class="kind">
          {chip}
        </span>
      ))}
    </>
  );
}

/** Sums of turns; nothing where their metadata say nothing. @param isAll - false while there are more turns than these */
export function UsageSums({ turns, isAll }: { turns: readonly Turn[]; isAll: boolean }) {
  const sums = turns.map(usageOf).reduce(
    (one, other) => ({
      tokens: one.tokens + other.tokens,
      ms: one.ms + other.ms,
      cost: one.cost + other.cost,
    }),
    { tokens: 0, ms: 0, cost: 0 },
  );
  const chips = chipsOf(sums);
  if (chips.length === 0) return null;
  return (
    <p class="row quiet sums">
      {isAll ? `In ${counted(turns.length, "turns")}:` : `In the ${counted(turns.length, "turns")} read so far:`}
      {chips.map((chip) => (
        <span key={chip} class="kind">
          {chip}
        </span>
      ))}
    </p>
  );
}
