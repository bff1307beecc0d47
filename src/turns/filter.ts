/**
 * Filters of turns: the members that one may name, and what a turn is compared by.
 *
 * @module
 */
import type { Members, RecordFilter } from "../filters/filter.ts";
import { NUMBER, TEXT, TEXTS, TIME } from "../filters/kinds.ts";
import type { JsonObject } from "../lib/json.ts";
import { CHARACTERS_PER_ROW } from "../memories/filter.ts";
import type { ShownTurn } from "./scope.ts";

export const TURN_MEMBERS: Members = {
  metadata: "object",
  session_id: TEXT,
  user_id: TEXT,
  agent_id: TEXT,
  external_id: TEXT,
  turn_number: NUMBER,
  "input.type": TEXT,
  "output.type": TEXT,
  secrets: TEXTS,
  created_at: TIME,
  occurred_at: TIME,
};

export interface ComparedTurn {
  readonly isPassing: boolean;
  /** Number of rows that the comparison counts as: more of a long turn, which is read as a whole. */
  readonly rows: number;
}

/** Compares a turn, as the session has it that shows it. */
export function compareTurn(filter: RecordFilter, { json, session }: ShownTurn): ComparedTurn {
  const turn = JSON.parse(json) as JsonObject;
  const { userId, agentId } = session.row;
  const isPassing = filter.passes({
    ...turn,
    user_id: userId ?? undefined,
    agent_id: agentId,
    created_at: timeOf(turn["created_at"]),
    occurred_at: timeOf(turn["occurred_at"]),
  });
  const passes = filter.weight === 1 ? 0 : filter.weight * JSON.stringify(turn["metadata"]).length;
  return { isPassing, rows: 1 + (json.length + passes + filter.length) / CHARACTERS_PER_ROW };
}

function timeOf(sent: unknown): number | undefined {
  return typeof sent === "string" ? Date.parse(sent) : undefined;
}
