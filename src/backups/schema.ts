/**
 * Backups on the wire.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { OneOf, OrNull, RecordId, Text, Timestamp } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";

export const Backup = Type.Object(
  {
    object: Type.Literal("backup"),
    id: RecordId("bkp", "`bkp_` and 12 characters."),
    trigger: OneOf(["request", "schedule"], {
      description: "What had it made: a request, or the setting `backups.schedule`.",
      examples: ["request"],
    }),
    status: OneOf(["running", "ready", "failed"], {
      description: "`running`: it is being made; `failed`: there is none, and the next one takes its place.",
      examples: ["ready"],
    }),
    created_at: Timestamp("When it was asked for. It holds all that was there then, and what came until it was made."),
    bytes: OrNull(Type.Integer({ description: "Length of the file; null unless it is ready.", examples: [1_052_672] })),
    version: OrNull(Type.String({ description: "Version of the Cairn that made it; null unless it is ready.", examples: ["0.1.0"] })),
    error: OrNull(Type.String({ description: "Why it failed; in an event also why it could not be copied." })),
  },
  { title: "Backup", description: "The whole store at one moment, in one file." },
);

/** Differences of the answer to the request for one. */
export const RUNNING_EXAMPLE = { status: "running", bytes: null, version: null } as const;

export const BackupTicket = Type.Object(
  {
    object: Type.Literal("backup_ticket"),
    backup_id: RecordId("bkp", "The backup."),
    url: Text(1, undefined, {
      description: "Where the file is, without a key, for one download.",
      examples: ["/v1/backups/bkp_0VQk3aB4x1Zq/file?ticket=tkt_5hGqk2LmZp8RtVwXyB3nC6dF9sJ1aE4u"],
    }),
    expires_at: Timestamp(`When the ticket ends unless it was used: after ${LIMITS.ticketSeconds} s.`),
  },
  { title: "BackupTicket", description: "A download that needs no key." },
);

export const BackupFile = Type.String({
  title: "BackupFile",
  description: "The file, which `cairn restore` takes.",
  format: "binary",
  examples: ["…"],
});
