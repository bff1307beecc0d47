/**
 * A turn as a session shows it: its own, or one of the session that it was forked from.
 *
 * @module
 */
import { BARE_ID_LENGTH } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import { hiddenAt } from "../sessions/branches.ts";
import type { LiveSession } from "../sessions/live-session.ts";
import { VersionsInTime } from "../sessions/versions-in-time.ts";
import type { Reader } from "../storage/access.ts";
import type { TurnRow } from "../storage/tables.ts";

/** Members of a turn that depend on the session that shows it. */
interface Shown {
  readonly stateVersion: number;
  /** The session, of a turn that was logged in another one, and the one that it has it from. */
  readonly fork?: { readonly id: string; readonly from: string | undefined };
  readonly rolledBackAt?: number | undefined;
}

/** The member that a row begins with after its first line. */
const SESSION_ID = /^"session_id":"[^"]*"/;

export function turnJson({ shown, rest, more }: TurnRow, { stateVersion, fork, rolledBackAt }: Shown): JsonText {
  const own = fork === undefined ? rest : rest.replace(SESSION_ID, `"session_id":"${fork.id}"`);
  const name = more?.externalId === undefined ? "" : `,"external_id":${toJson(more.externalId)}`;
  const secrets = more?.secrets === undefined ? "" : `,"secrets":${toJson(more.secrets)}`;
  const from = fork?.from === undefined ? "" : `,"forked_from":"${fork.from}"`;
  const hidden = rolledBackAt === undefined ? "" : `,"rolled_back_at":"${toIso(rolledBackAt)}"`;
  return `{"object":"turn",${shown},${own},"state_version":${stateVersion}${name}${secrets}${from}${hidden}}` as JsonText;
}

/** Returns what shows turns of a session, by their keys; good for one snapshot. */
export function shownTurns(reader: Reader, session: LiveSession): (key: string, row: TurnRow) => JsonText {
  const versions = new VersionsInTime(reader, session);
  return (key, row) => {
    const id = key.slice(BARE_ID_LENGTH);
    // Turns that a fork begins with belong to its first version.
    if (!key.startsWith(session.key))
      return turnJson(row, { stateVersion: 0, fork: { id: session.id, from: session.row.forkedFrom?.sessionId } });
    return turnJson(row, { stateVersion: row.more?.stateVersion ?? versions.at(id), rolledBackAt: hiddenAt(reader, session, id) });
  };
}
