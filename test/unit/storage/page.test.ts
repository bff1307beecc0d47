import { expect, test } from "bun:test";
import { LIMITS } from "../../../src/lib/limits.ts";
import { pageOfSteps } from "../../../src/storage/page.ts";

test("a search for records that finds none ends after the looks of one page", async () => {
  let steps = 0;
  function* endless() {
    for (;;) yield { passed: `mem_${++steps}`, looks: 1_000 };
  }
  const page: unknown = JSON.parse(await pageOfSteps(endless(), 20));
  expect(steps).toBe(LIMITS.listLooksMax / 1_000);
  expect(page).toEqual({ object: "list", data: [], has_more: true, first_id: null, last_id: `mem_${steps}` });
});
