/** Which traces of the servers that share a database a look gives. */
import { expect, test } from "bun:test";
import { firstBareIdAt } from "../../../src/lib/ids.ts";
import { TraceFollower } from "../../../src/storage/postgres/follow/trace-follower.ts";
import { FakeClock } from "../../support/clock.ts";

test("a look gives each trace once, and none that this server has told of, until nobody watches any more", async () => {
  const clock = new FakeClock();
  const since = clock.now();
  const committed: string[] = [];
  const follower = new TraceFollower(async ({ values: [from] }) => {
    return committed.filter((key) => key.slice(1) >= String(from)).map((key) => ({ key }));
  }, clock);
  const keyNow = () => {
    clock.advance({ ms: 1 });
    return `c${firstBareIdAt(clock.now())}`;
  };
  const [own, others, late] = [keyNow(), keyNow(), keyNow()];
  committed.push(own, others);
  expect(follower.unseen([own])).toEqual([own]);
  expect(await follower.look(since)).toEqual([others]);
  expect(follower.unseen([others])).toEqual([]);
  committed.push(late);
  expect(await follower.look(since)).toEqual([late]);
  expect(await follower.look(since)).toEqual([]);
  follower.forget();
  expect(await follower.look(since)).toEqual([own, others, late]);
});
