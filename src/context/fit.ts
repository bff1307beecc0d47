/**
 * The answer of a context: all that was found, or as much of it as fits.
 *
 * @module
 */
import { countQuoted, countTokens } from "../embeddings/builtin/token-count.ts";
import { ApiError } from "../lib/errors.ts";
import { jsonArray, jsonWith, toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { onOneLine } from "../lib/quoted.ts";
import { countTurn, turnsJson, type RecentTurn } from "../turns/recent-turns.ts";
import {
  blockMessages,
  blockText,
  frameTokens,
  memoryCost,
  stateCost,
  turnCost,
  type Block,
  type ShownMemory,
  type ShownTurn,
} from "./block.ts";
import { choose, leastTokens, type Choice, type ChosenRecord, type Costs } from "./budget.ts";
import type { ContextRequest } from "./request.ts";
import { shortened, shortenedTurn } from "./shorten.ts";

/** A state that is not shown: one that is empty, or not asked for. */
export const NO_STATE = "{}" as JsonText;

/** Records that were found, of one snapshot and before anything is left out. */
export interface ContextRecords {
  readonly state: JsonText;
  /** First those that are pinned, … */
  readonly memories: readonly FoundMemory[];
  /** … as many as these. */
  readonly pinned: number;
  readonly turns: readonly RecentTurn[];
  /** True if there may be better memories among those that were not compared with a filter. */
  readonly isPartial?: boolean;
}

export interface FoundMemory extends ShownMemory {
  /** Tokens of its content; undefined where that is still to be counted. */
  readonly tokens: number | undefined;
  readonly json: JsonText;
}

function contextJson(
  { state, memories, turns, isPartial = false }: ContextRecords,
  more: Readonly<Record<string, JsonText | undefined>> = {},
): JsonText {
  const partial = isPartial ? toJson(true) : undefined;
  return jsonWith({}, { state, memories: jsonArray(memories.map(({ json }) => json)), recent_turns: turnsJson(turns), partial, ...more });
}

export async function answerOf(found: ContextRecords, request: Pick<ContextRequest, "format" | "maxTokens">): Promise<JsonText> {
  if (request.maxTokens === undefined && request.format === "json") return contextJson(found);
  return fittedJson(found, request, "refuse too few");
}

/** The same for a context of before, of which a record may be longer now: too few tokens for the least are as many as that takes. */
export async function answerAgain(found: ContextRecords, request: Pick<ContextRequest, "format" | "maxTokens">): Promise<JsonText> {
  if (request.maxTokens === undefined && request.format === "json") return contextJson(found);
  return fittedJson(found, request, "take the least");
}

/** The answer with as much of what was found as fits, and the block or the messages that say the same. */
async function fittedJson(
  found: ContextRecords,
  { format, maxTokens }: Pick<ContextRequest, "format" | "maxTokens">,
  ifTooFew: "refuse too few" | "take the least",
): Promise<JsonText> {
  const hasState = found.state !== NO_STATE;
  const costs = await costsOf(found);
  const least = leastTokens(costs);
  if (maxTokens !== undefined && maxTokens < least && ifTooFew === "refuse too few") throw tooFew(maxTokens, least);
  const choice = choose(costs, Math.max(least, maxTokens ?? Number.MAX_SAFE_INTEGER));
  const fitted = await chosen(found, choice);
  const pinned = choice.memories.filter(({ place }) => place < found.pinned).length;
  const omitted = {
    memories: found.memories.length - found.pinned - (choice.memories.length - pinned),
    pinned: found.pinned - pinned,
    turns: found.turns.length - choice.turns.length,
    state: hasState && !choice.hasState ? 1 : 0,
  };
  const shown = format === "json" ? undefined : blockOf(fitted);
  return contextJson(fitted, {
    token_count: toJson(choice.tokens),
    omitted: toJson(omitted),
    text: format === "text" && shown !== undefined ? toJson(blockText(shown)) : undefined,
    messages: format === "messages" && shown !== undefined ? toJson(blockMessages(shown)) : undefined,
  });
}

function tooFew(maxTokens: number, least: number): ApiError {
  const message = `max_tokens must be at least ${least} here, for something of each kind that there is; got ${maxTokens}.`;
  return new ApiError("invalid_request", message, { param: "max_tokens" });
}

/** Tokens of each part. Of records that a Cairn wrote that did not count, the texts are counted now. */
async function costsOf({ state, memories, pinned, turns }: ContextRecords): Promise<Costs> {
  const memoryCosts = [];
  for (const [i, { row, tokens, content }] of memories.entries())
    memoryCosts.push(memoryCost(row.type, tokens ?? (await countQuoted(content)), i === 0));
  const turnCosts = [];
  for (const [i, turn] of turns.entries()) turnCosts.push(turnCost(turn.tokens ?? (await countedTurn(turn)), i === 0));
  return {
    frame: frameTokens(),
    state: state === NO_STATE ? undefined : stateCost(countTokens(onOneLine(state), LIMITS.contextTokensMax)),
    memories: memoryCosts,
    pinned,
    turns: turnCosts,
  };
}

async function countedTurn(turn: RecentTurn): Promise<number> {
  const { input, output } = turnOf(turn);
  return countTurn(input.content, output.content);
}

function turnOf({ shown }: RecentTurn): ShownTurn {
  return JSON.parse(`{${shown}}`) as ShownTurn;
}

async function chosen({ state, memories, pinned, turns, isPartial = false }: ContextRecords, choice: Choice): Promise<ContextRecords> {
  const keep = async <Item>(
    items: readonly Item[],
    places: readonly ChosenRecord[],
    shorten: (item: Item, tokens: number) => Promise<Item>,
  ) => {
    const kept: Item[] = [];
    for (const { place, shortenedTo } of places)
      kept.push(shortenedTo === undefined ? items[place]! : await shorten(items[place]!, shortenedTo));
    return kept;
  };
  return {
    state: choice.hasState ? state : NO_STATE,
    memories: await keep(memories, choice.memories, shorterMemory),
    pinned,
    turns: await keep(turns, choice.turns, shorterTurn),
    isPartial,
  };
}

async function shorterMemory(memory: FoundMemory, tokens: number): Promise<FoundMemory> {
  const content = await shortened(memory.content, tokens);
  return { ...memory, content, json: toJson({ ...(JSON.parse(memory.json) as object), content, truncated: true }) };
}

async function shorterTurn(turn: RecentTurn, tokens: number): Promise<RecentTurn> {
  const shorter = await shortenedTurn(turnOf(turn), tokens);
  return { ...turn, shown: toJson({ ...shorter, truncated: true }).slice(1, -1) };
}

function blockOf({ state, memories, turns }: ContextRecords): Block {
  return { state: state === NO_STATE ? undefined : state, memories, turns: turns.map(turnOf).reverse() };
}
