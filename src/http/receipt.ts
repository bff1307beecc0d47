/**
 * Answers to changes for a key without the scope `read`: which record, and where it stands now. A record in full
 * would show what the request did not send.
 *
 * @module
 */
import { Type } from "@sinclair/typebox";
import { toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import type { Endpoint } from "./endpoint.ts";
import { OrNull, Redacted, Timestamp } from "./types.ts";

const RecordMembers = {
  object: Type.String({ description: "What kind of record it is.", examples: ["session"] }),
  id: Type.Optional(Type.String({ description: "Its id." })),
  session_id: Type.Optional(OrNull(Type.String({ description: "The session that it belongs to; null for a memory without one." }))),
  version: Type.Optional(Type.Integer({ description: "Version of the state." })),
  state_version: Type.Optional(Type.Integer({ description: "Version of the session's state." })),
  new_version: Type.Optional(Type.Integer({ description: "Version that a rollback made." })),
  success: Type.Optional(Type.Boolean({ description: "True: it is done." })),
  created_at: Type.Optional(Timestamp("When the record was created.")),
  updated_at: Type.Optional(Timestamp("When it was last changed.")),
  ttl_expires_at: Type.Optional(OrNull(Timestamp("When the session expires; null if it does not."))),
  embedding_id: Type.Optional(Type.String({ description: "ID of the memory's vector." })),
  vector_available: Type.Optional(Type.Boolean({ description: "Whether semantic search finds the memory." })),
};

export const Receipt = Type.Object(
  {
    ...RecordMembers,
    data: Type.Optional(Type.Array(Type.Object(RecordMembers), { description: "The same of each record of a list." })),
    redacted: Redacted,
  },
  {
    title: "Receipt",
    description: "What a key without the scope `read` gets in the place of a record that it has changed, forked or found.",
  },
);

/** Checks whether answers of an endpoint can show what its request did not send. */
export function hasReceipt({ method, scope, echoes, existing }: Endpoint): boolean {
  return scope === "write" && method !== "DELETE" && (!echoes || existing !== undefined);
}

export function receiptOf(answer: JsonText): JsonText {
  const record = JSON.parse(answer) as JsonObject;
  const { data } = record;
  return toJson({ ...membersOf(record), ...(Array.isArray(data) ? { data: (data as JsonObject[]).map(membersOf) } : {}) });
}

function membersOf(record: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(record).filter(([name]) => Object.hasOwn(RecordMembers, name)));
}
