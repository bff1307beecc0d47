/**
 * A session in a list, with what a person knows it by on request: what the user said first, and how often it was rolled back.
 *
 * The first turn is read with each session instead of being kept in its row: that is one range of one key more, the turn may be of a
 * store of before, and nothing of it has to be erased twice.
 *
 * @module
 */
import type { JsonText } from "../lib/json.ts";
import { firstCodePoints } from "../lib/text.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { MAX_KEY } from "../storage/keys.ts";
import type { ComparedRecord } from "../storage/list.ts";
import { turns } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { sessionJson, type LiveSession } from "./live-session.ts";
import { FIRST_INPUT_LENGTH_MAX, type SESSION_PARTS } from "./schema.ts";
import { readState } from "./versions.ts";

export type SessionPart = (typeof SESSION_PARTS)[number];

/** Reading this many characters of a turn takes as long as comparing a row. */
const CHARACTERS_PER_ROW = 2_000;

export function listedSession(
  reader: Reader,
  { id, key, row }: LiveSession,
  include: readonly SessionPart[] = [],
): ComparedRecord & { json: JsonText } {
  const parts = [
    () => ({ state: readState(reader, key, row.version) }),
    () => (include.includes("first_input") ? unlessUnreadable(() => firstInput(reader, key)) : undefined),
  ];
  const [read, first] = eachFetched(parts, (part) => part()) as [{ state: JsonText }, FirstInput | undefined];
  const more = {
    first_input: first?.text,
    rollback_count: include.includes("rollback_count") ? (row.rollbackCount ?? 0) : undefined,
  };
  return { json: sessionJson(id, row, read.state, more), rows: (first?.length ?? 0) / CHARACTERS_PER_ROW };
}

interface FirstInput {
  readonly text: string;
  /** Characters of the turn that were read for it. */
  readonly length: number;
}

function firstInput(reader: Reader, session: string): FirstInput | undefined {
  const [first] = reader.rows(turns, { from: session, to: session + MAX_KEY, limit: 1 });
  if (first === undefined) return undefined;
  const { shown } = first.row;
  const { input } = JSON.parse(`{${shown}}`) as { input: { content: string } };
  return { text: firstCodePoints(input.content, FIRST_INPUT_LENGTH_MAX), length: shown.length };
}
