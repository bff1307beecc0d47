import { expect, test } from "bun:test";
import { toJson } from "../../../src/lib/json.ts";
import { LIMITS } from "../../../src/lib/limits.ts";
import { pageOfBatches, type PageEntry } from "../../../src/storage/page.ts";

test("a search for records that finds none ends after the looks of one page", async () => {
  let steps = 0;
  function* endless() {
    for (;;) yield { passed: `mem_${++steps}`, probes: 1_000 };
  }
  const page: unknown = JSON.parse(await pageOfBatches([endless()], 20));
  expect(steps).toBe(LIMITS.listProbesMax / 1_000);
  expect(page).toEqual({ object: "list", data: [], has_more: true, first_id: null, last_id: `mem_${steps}` });
});

test("a page that holds much ends instead of letting others through first", async () => {
  const large = { id: "mem_1", json: toJson("x".repeat(70_000)) };
  const small = { id: "mem_2", json: toJson("x".repeat(60_000)) };
  const passed = { passed: "mem_0", probes: 1_000 };
  const pageOfThese = async (...records: PageEntry[]) => JSON.parse(await pageOfBatches([records], 10));
  expect(await pageOfThese(large, passed, small)).toMatchObject({ data: [expect.any(String)], has_more: true, last_id: "mem_0" });
  expect(await pageOfThese(small, passed, large)).toMatchObject({ data: [expect.any(String), expect.any(String)], has_more: false });
  expect(await pageOfThese(large, { ...passed, probes: 999 }, small)).toMatchObject({ has_more: false });
});
