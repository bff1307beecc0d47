/**
 * Table of traces: what every change leaves.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { bare, BARE_ID_LENGTH } from "../../lib/ids.ts";
import { hashKey } from "../keys.ts";
import { Finite, IdText, ObjectText, Text, Whole } from "../row-types.ts";
import { having, withBody } from "./codecs.ts";
import { table } from "./table.ts";

const TraceRow = Type.Object({
  /** Place in a chain, its salt and the digest there (`audit/format.ts`); the first member. Left out in traces of before. */
  link: Type.Optional(
    Type.String({
      pattern: "^[0-9A-Za-z]{12}\\.(0|[1-9][0-9]{0,11})\\.[\\w-]{22}\\.[\\w-]{43}$",
      description: "a chain, a place in it, a salt and a digest",
    }),
  ),
  expiresAt: Whole,
  /** Set where the time of the id is later than the trace's own, which this is: the clock was behind an earlier id. */
  at: Type.Optional(Whole),
  actor: Text,
  /** Left out for a change that concerns no session; only keys with the scope `admin` see it. */
  sessionId: Type.Optional(IdText("sess")),
  userId: Type.Optional(Text),
  agentId: Type.Optional(Text),
  /** The request that asked for the change, and how long it had taken by then; left out for a timer. */
  requestId: Type.Optional(Text),
  latencyMs: Type.Optional(Finite),
  /** `details` of the trace. */
  body: ObjectText,
});
export type TraceRow = Static<typeof TraceRow>;
const traceOf = (entry: string) => entry.slice(-1) + entry.slice(-1 - BARE_ID_LENGTH, -1);
/** The id and the action of a trace's key, the other way round: in the order of ids. */
const traceEntry = (key: string): string => key.slice(1) + key.slice(0, 1);
export const traces = table("traces", /^[0-9A-Za-z]{13}$/, TraceRow, having(withBody<TraceRow>(), { notifies: "traces" }), {
  bySession: {
    of: (key, row) => (row.sessionId === undefined ? undefined : bare(row.sessionId) + traceEntry(key)),
    record: traceOf,
    isBuffered: true,
  },
  byUser: {
    of: (key, row) => (row.userId === undefined ? undefined : hashKey(row.userId) + traceEntry(key)),
    record: traceOf,
    isBuffered: true,
  },
  byAgent: {
    of: (key, row) => (row.agentId === undefined ? undefined : hashKey(row.agentId) + traceEntry(key)),
    record: traceOf,
    isBuffered: true,
  },
  ahead: { of: (key, row) => (row.at === undefined ? undefined : traceEntry(key)), record: traceOf },
});
