/**
 * Statistics on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { OneOf, OrNull, Timestamp } from "../http/types.ts";
import { TURN_INDEXES } from "../storage/tables.ts";
import { HISTORY_SPANS } from "./spans.ts";

const count = (description: string, example: number) => Type.Integer({ description, examples: [example] });
const Milliseconds = (share: string) =>
  OrNull(
    Type.Number({
      description: `Milliseconds within which ${share} of the requests were answered; null where there was none.`,
      examples: [1.8],
    }),
  );

const Point = Type.Object(
  {
    at: Timestamp("When this part of the time span began."),
    requests: count("Requests answered.", 540),
    errors: count("Requests answered with a status of 500 or more.", 0),
    changes: count("Changes made, by requests and by the server itself.", 120),
    memories: count("Memories created.", 14),
    searches: count("Searches in memories and turns, and contexts.", 33),
    p50_ms: Milliseconds("half"),
    p99_ms: Milliseconds("99 %"),
  },
  { title: "HistoryPoint", description: "What happened in one part of the time span." },
);

const History = Type.Object(
  {
    bucket_seconds: count("Seconds that each point covers.", 60),
    points: Type.Array(Point, {
      description: "Oldest first; the last one is still being counted.",
    }),
  },
  {
    title: "History",
    description:
      "What the servers of this store have seen. It is kept over a restart; a crash forgets the last minute, which other servers do not know yet.",
  },
);

export const Stats = Type.Object(
  {
    object: Type.Literal("stats"),
    sessions: count("Sessions, including those that have expired and are not removed yet.", 1_204),
    turns: count("Turns.", 18_331),
    versions: count("Versions of states.", 9_120),
    memories: count("Memories.", 20_002),
    traces: count("Traces.", 48_655),
    vectors: Type.Object({
      stored: count("Vectors of memories and documents.", 19_990),
      pending: count("Vectors that are still to be made.", 12),
    }),
    turn_index: Type.Object(
      {
        index_turns: OneOf(TURN_INDEXES, { description: "The setting.", examples: ["words"] }),
        state: OneOf(["ready", "indexing", "unused"], {
          description:
            "`indexing` while the turns that were there before follow a change of the setting; `unused` under `words` until turns are searched for the first time, with which their index begins.",
          examples: ["ready"],
        }),
        looked_at: count("Turns that follow the setting already.", 18_331),
        indexed: count("Turns that searches find.", 18_331),
        pending: count("Turns whose vectors are still to be made.", 0),
      },
      { description: "How far the index of turns is." },
    ),
    deliveries: Type.Object({
      pending: count("Deliveries of webhooks that are still to be made, those that failed and are tried again included.", 2),
      failed: count("Attempts that failed in this hour and the 24 before it, the first ones of a delivery included.", 5),
      exhausted: count("Deliveries that are not tried again: all their attempts have failed.", 1),
    }),
    store: Type.Object({
      bytes: count("Size of the store on disk.", 83_886_080),
      used_bytes: count("Bytes of it that hold records.", 79_691_776),
      max_bytes: OrNull(Type.Integer({ description: "The setting `max_store_bytes`; null without a limit." })),
    }),
    backups: OrNull(
      Type.Object(
        {
          schedule: OrNull(
            Type.String({ description: "The setting `backups.schedule`; null while none are made by themselves.", examples: ["03:00"] }),
          ),
          newest_at: OrNull(Timestamp("When the newest backup was made, by request or by the schedule; null where there is none.")),
          age_seconds: OrNull(Type.Integer({ description: "Seconds since then.", examples: [3_600] })),
          next_at: OrNull(Timestamp("When the next one is due; null without a schedule.")),
          error: OrNull(Type.String({ description: "Why the last one failed; null once one has been made since." })),
          failures: count("Backups of the schedule that have failed since the start of the server.", 0),
          overdue: Type.Boolean({ description: "True if one, or its copy, has been due for more than an hour.", examples: [false] }),
          copies: OrNull(
            Type.Object(
              {
                url: Type.String({ description: "The setting `backups.copy_to`.", examples: ["s3://backups/cairn"] }),
                newest_at: OrNull(
                  Timestamp("When the newest backup in the bucket was made; null where there is none, or it is not known yet."),
                ),
                error: OrNull(Type.String({ description: "Why the last copy failed; null once one has been made since." })),
                failures: count("Copies that have failed since the start of the server.", 0),
                overdue: Type.Boolean({
                  description: "True if the newest backup has had no copy for more than an hour.",
                  examples: [false],
                }),
              },
              { description: "Copies in a bucket; null while none are made." },
            ),
          ),
        },
        { description: "Backups, and how their schedule stands; null on PostgreSQL, which has backups of its own." },
      ),
    ),
    certificate: OrNull(
      Type.Object(
        {
          domains: Type.Array(Type.String(), { description: "Names that it is for.", examples: [["memory.example.org"]] }),
          expires_at: OrNull(Timestamp("When the certificate in use ends; null while there is none.")),
          renews_at: OrNull(Timestamp("When the next one is ordered.")),
          overdue: Type.Boolean({
            description: "True if it ends in less than 20 days, or less than 2/9 of the time for which it was given.",
            examples: [false],
          }),
          error: OrNull(Type.String({ description: "Why the last order failed; null once one has succeeded since." })),
          failures: count("Orders that have failed since the last one that succeeded.", 0),
        },
        { description: "The certificate that the server gets and renews by itself; null where it has no `--domain`." },
      ),
    ),
    uptime_seconds: count("Seconds since the start of the server.", 86_400),
    history: Type.Optional(History),
  },
  { title: "Stats", description: "Counts of records, and recent traffic." },
);

export const STATS_QUERY = Type.Object({
  history: Type.Optional(
    OneOf(HISTORY_SPANS, {
      description:
        "Add what the servers have seen: in the last hour by the minute, in the last day by the quarter of an hour, or in the last 7 days by two hours.",
    }),
  ),
});
