import { expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { parametersOf, readQuery } from "../../../src/http/query.ts";
import { Timestamp, UserObject } from "../../../src/http/types.ts";

const SCHEMA = Type.Object({
  limit: Type.Integer(),
  threshold: Type.Number(),
  tags: Type.Array(Type.String()),
  user_id: Type.String(),
  created_after: Timestamp("A time."),
  filter: UserObject(),
});

const cases: { query: string; read: Record<string, unknown> }[] = [
  { query: "", read: {} },
  { query: "?", read: {} },
  { query: "?limit=5&user_id=u", read: { limit: 5, user_id: "u" } },
  { query: "?limit=-1", read: { limit: -1 } },
  { query: "?limit=007", read: { limit: 7 } },
  // Not plain decimal integers: they stay text, which the schema refuses.
  ...["", "5.0", "1e1", "0x10", "+5", "%2B5", " 5", "5 ", "٥", "1_000", "Infinity", "NaN", "null", "9".repeat(16)].map((text) => ({
    query: `?limit=${text}`,
    read: { limit: decodeURIComponent(text.replace("+", " ")) },
  })),
  ...["0.7", "1", "-0.25", "007.50"].map((text) => ({ query: `?threshold=${text}`, read: { threshold: Number(text) } })),
  ...["", ".5", "5.", "1e-1", "0x1", "0,7", "1.2.3", "NaN", "-", `0.${"1".repeat(16)}`].map((text) => ({
    query: `?threshold=${text}`,
    read: { threshold: text },
  })),
  // A number only where a number is meant.
  { query: "?user_id=5", read: { user_id: "5" } },
  { query: "?limit=1&limit=2", read: { limit: 1 } },
  { query: "?tags=a,b", read: { tags: ["a,b"] } },
  { query: "?tags=a&tags=b%2Cc&tags=", read: { tags: ["a", "b,c", ""] } },
  { query: "?page=2&__proto__=x&constructor=y&limit=3", read: { limit: 3 } },
  { query: "?user_id=a%20b+c%2Bd", read: { user_id: "a b c+d" } },
  { query: "?user_id=%ff%ZZ%", read: { user_id: "\ufffd%ZZ%" } },
  { query: "?user_id", read: { user_id: "" } },
  { query: "?user_id=a=b?c", read: { user_id: "a=b?c" } },
  { query: "?created_after=2026-05-07T10:00:00%2B02:00", read: { created_after: "2026-05-07T10:00:00+02:00" } },
  { query: "?created_after=2026-05-07T10:00:00+02:00", read: { created_after: "2026-05-07T10:00:00+02:00" } },
  { query: "?created_after=2026-05-07T10:00:00.123+0530", read: { created_after: "2026-05-07T10:00:00.123+0530" } },
  { query: "?filter=%7B%22a%22:%7B%22$gt%22:1%7D%7D", read: { filter: { a: { $gt: 1 } } } },
  { query: "?filter=%7B%22__proto__%22:1%7D", read: { filter: JSON.parse('{"__proto__":1}') as object } },
  // Not an object: it stays text, which the schema refuses.
  { query: "?filter=%7B", read: { filter: "{" } },
  { query: "?filter=", read: { filter: "" } },
  { query: "?filter=null", read: { filter: "null" } },
  { query: "?created_after=2026-05-07+10:00:00", read: { created_after: "2026-05-07 10:00:00" } },
];

for (const { query, read } of cases) {
  test(`the query ${JSON.stringify(query)} is read as ${JSON.stringify(read)}`, () => {
    expect(readQuery(parametersOf(`http://localhost/v1/traces${query}`), SCHEMA)).toEqual(read);
  });
}
