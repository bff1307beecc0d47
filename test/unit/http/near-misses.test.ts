import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { FieldNames } from "../../../src/http/near-misses.ts";

/** How many letters have to be left out, added, replaced or swapped with the next one (optimal string alignment), letter by letter. */
function distance(one: string, other: string): number {
  const table = Array.from({ length: one.length + 1 }, (_, i) => Array.from({ length: other.length + 1 }, (_j, j) => (i === 0 ? j : i)));
  const at = (i: number, j: number) => table[i]![j]!;
  for (let i = 1; i <= one.length; i++) {
    for (let j = 1; j <= other.length; j++) {
      const replaced = at(i - 1, j - 1) + (one[i - 1] === other[j - 1] ? 0 : 1);
      table[i]![j] = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced);
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1])
        table[i]![j] = Math.min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(one.length, other.length);
}

const plain = (name: string) => name.replaceAll(/[_\-. ]/g, "").toLowerCase();
/** Few letters, so that names are often near each other. */
const name = fc.string({ unit: fc.constantFrom("a", "b", "B", "_", "-"), minLength: 1, maxLength: 8 });

test("a name is near the field of the same letters, or else the first from which one letter takes it, unless it is more than twice as long", () => {
  fc.assert(
    fc.property(fc.uniqueArray(name, { minLength: 1, maxLength: 4 }), name, (fields, sent) => {
      const letters = plain(sent);
      const same = fields.find((field) => plain(field) === letters);
      const near = same ?? fields.find((field) => distance(plain(field), letters) === 1);
      const isLong = sent.length > 2 * Math.max(...fields.map(({ length }) => length)) + 2;
      expect(new FieldNames(fields).nearest(sent)).toBe(letters === "" || isLong ? undefined : near);
    }),
    { numRuns: 5_000 },
  );
});

test("of fields that are there, one letter off leads to none: another one, or another spelling, is found all the same", () => {
  const fields = new FieldNames(["type", "typed", "user_id"]);
  const nearest = (sent: string, ...there: string[]) => fields.nearest(sent, (name) => there.includes(name));
  expect(nearest("types")).toBe("type");
  expect(nearest("types", "type")).toBe("typed");
  expect(nearest("types", "type", "typed")).toBeUndefined();
  expect(nearest("userId", "user_id")).toBe("user_id");
  expect(nearest("userIds", "user_id")).toBeUndefined();
});

const FIELDS = new FieldNames(["agent_id", "user_id", "type", "op"]);
for (const [sent, near] of Object.entries({
  agentId: "agent_id",
  "AGENT-ID": "agent_id",
  "agent id": "agent_id",
  "agent.id": "agent_id",
  agent_ids: "agent_id",
  agnet_id: "agent_id",
  usr_id: "user_id",
  userI: "user_id",
  typ: "type",
  tpye: "type",
  ops: "op",
  id: undefined,
  agent: undefined,
  user: undefined,
  typed_x: undefined,
  "": undefined,
  ___: undefined,
  "😀": undefined,
  [`user${"_".repeat(1_000_000)}id`]: undefined,
  ["a".repeat(1_000_000)]: undefined,
}))
  test(`${JSON.stringify(sent.slice(0, 20))} is ${near === undefined ? "near nothing" : `nearly ${near}`}`, () => {
    expect(FIELDS.nearest(sent)).toBe(near);
  });
