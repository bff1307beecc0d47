/**
 * Table of answers that are kept for their Idempotency-Key.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { HASH_KEY_LENGTH, NUMBER_KEY_LENGTH, numberKey } from "../keys.ts";
import { ObjectText, Text, Whole } from "../row-types.ts";
import { withBody } from "./codecs.ts";
import { HASH, table } from "./table.ts";

const IdempotencyRow = Type.Object({
  /** Hash of method, path and body: another request under the same key is refused. */
  fingerprint: Text,
  status: Whole,
  createdAt: Whole,
  /** Set when the body is the answer encrypted, since it shows a secret. */
  sealed: Type.Optional(Type.Literal(true)),
  /** Set when the body is the answer compressed. */
  packed: Type.Optional(Type.Literal(true)),
  /** `hashKey` of the users whose content the answer shows; left out by a Cairn that did not save them: there the answer has to say it. */
  users: Type.Optional(Type.Array(Type.String({ pattern: HASH.source }))),
  body: ObjectText,
});
export type IdempotencyRow = Static<typeof IdempotencyRow>;
export const idempotency = table("idempotency", HASH, IdempotencyRow, withBody<IdempotencyRow>(), {
  byTime: { of: (key, row) => numberKey(row.createdAt) + key, record: (entry) => entry.slice(NUMBER_KEY_LENGTH) },
  byUser: {
    of: (key, { users }) => users?.map((user) => user + key),
    hasMany: true,
    record: (entry) => entry.slice(HASH_KEY_LENGTH),
  },
});
