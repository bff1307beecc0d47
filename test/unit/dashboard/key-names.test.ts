/**
 * What actors are called whose keys begin alike.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { namesByPrefix } from "../../../src/dashboard/app/key-names.ts";

test("a prefix has the name of its keys only if they all have that name", () => {
  const keys = [
    { prefix: "crn_aaaa", name: "bot" },
    { prefix: "crn_bbbb", name: "new" },
    { prefix: "crn_bbbb", name: "old" },
    { prefix: "crn_cccc", name: "named" },
    { prefix: "crn_cccc", name: null },
    { prefix: "crn_dddd", name: "same" },
    { prefix: "crn_dddd", name: "same" },
    { prefix: "crn_eeee", name: null },
  ];
  expect(Array.from(namesByPrefix(keys))).toEqual([
    ["crn_aaaa", "bot"],
    ["crn_dddd", "same"],
  ]);
});
