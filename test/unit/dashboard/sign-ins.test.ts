/**
 * Which traces a screen shows of those that it reads.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { isSignIn, readWanted } from "../../../src/dashboard/app/sign-ins.ts";

/** Pages of ten traces, of which those with these numbers are changes. */
function pagesOf(count: number, changes: readonly number[]) {
  const reads: (string | null)[] = [];
  const read = (after: string | null) => {
    reads.push(after);
    const from = after === null ? 0 : Number(after) + 1;
    const data = Array.from({ length: Math.min(10, count - from) }, (_, i) => {
      const isChange = changes.includes(from + i);
      return { id: String(from + i), action: "api_key.created" as const, details: { kind: isChange ? "key" : "session" } };
    });
    return Promise.resolve({ data, has_more: from + 10 < count, last_id: String(from + data.length - 1) });
  };
  return { reads, read };
}

const cases = [
  { name: "the first change is on the third page", count: 25, changes: [21], shown: ["21"], hidden: 24, last: "24", more: false, reads: 3 },
  { name: "there are sign-ins alone", count: 100, changes: [], shown: [], hidden: 40, last: "39", more: true, reads: 4 },
  {
    name: "there are enough changes",
    count: 100,
    changes: Array.from({ length: 100 }, (_, i) => i),
    shown: Array.from({ length: 20 }, (_, i) => String(i)),
    hidden: 0,
    last: "19",
    more: true,
    reads: 2,
  },
];
for (const { name, count, changes, shown, hidden, last, more, reads } of cases) {
  test(`pages are read until there are enough changes or four were read: ${name}`, async () => {
    const pages = pagesOf(count, changes);
    const { data, ...rest } = await readWanted(pages.read, (trace) => !isSignIn(trace), null);
    expect({ shown: data.map(({ id }) => id), ...rest, reads: pages.reads.length }).toEqual({
      shown,
      hidden,
      last_id: last,
      has_more: more,
      reads,
    });
  });
}

test("what is read next begins behind what was read and left out", async () => {
  const { read, reads } = pagesOf(60, [55]);
  const first = await readWanted(read, (trace) => !isSignIn(trace), null);
  const second = await readWanted(read, (trace) => !isSignIn(trace), first.last_id);
  expect([first.data.length, second.data.map(({ id }) => id), second.has_more]).toEqual([0, ["55"], false]);
  expect(reads).toEqual([null, "9", "19", "29", "39", "49"]);
});
