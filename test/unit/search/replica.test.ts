import { expect, test } from "bun:test";
import { ApiError } from "../../../src/lib/errors.ts";
import { createLog } from "../../../src/lib/log.ts";
import { MEMORIES } from "../../../src/storage/collections.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import type { ChangeFeed, FeedPage } from "../../../src/storage/postgres/follow/change-feed.ts";
import { Replica } from "../../../src/search/replica/replica.ts";
import { FakeClock } from "../../support/clock.ts";
import { scratchDirectory } from "../../support/process.ts";

const log = createLog({ level: "silent", pretty: false, now: () => 0, write: () => undefined });
const positionOf = (snapshot: string) => ({ snapshot, anchor: { xid: 1, rev: 1 }, connections: 1 });
const pageOf = (snapshot: string, last?: number): FeedPage => ({ keys: new Map(), transactions: 1, position: positionOf(snapshot), last });

test("a copy that could not take all pages of the feed is given all of them again", async () => {
  using directory = scratchDirectory();
  const clock = new FakeClock();
  const source = await Store.open(directory.at("source"), clock);
  const asked: [snapshot: string, after: number][] = [];
  const pages: (FeedPage | Error)[] = [];
  const feed = {
    begin: () => Promise.resolve(positionOf("first")),
    since: ({ snapshot }: { snapshot: string }, after = 0) => {
      asked.push([snapshot, after]);
      const page = pages.shift()!;
      return page instanceof Error ? Promise.reject(page) : Promise.resolve(page);
    },
  } as unknown as ChangeFeed;
  const replica = new Replica({
    source: {
      readNewest: (work) => Promise.resolve(source.read(work)),
      changeFeed: () => feed,
    },
    directory: directory.path,
    clock,
    log,
  });
  pages.push(pageOf("first"));
  await replica.open();
  // The second page does not come.
  pages.push(pageOf("second", 7), new ApiError("service_unavailable", "The database does not answer."));
  await expect(replica.followed(MEMORIES)).rejects.toThrow("The database does not answer.");
  pages.push(pageOf("third", 7), pageOf("third"));
  expect(await replica.followed(MEMORIES)).toBeDefined();
  pages.push(pageOf("fourth"));
  await replica.followed(MEMORIES);
  expect(asked).toEqual([
    ["first", 0],
    ["first", 0],
    ["first", 7],
    ["first", 0],
    ["first", 7],
    ["third", 0],
  ]);
  await replica.close();
  await source.close();
});
