import { expect, test } from "bun:test";
import { Idempotency } from "../../../src/http/idempotency.ts";
import { KeptBytes } from "../../../src/http/kept-bytes.ts";
import { toJson } from "../../../src/lib/json.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { FakeClock } from "../../support/clock.ts";
import { scratchDirectory } from "../../support/process.ts";

test("of requests with one key that find nothing to change at the same time, all give the answer of the first", async () => {
  using directory = scratchDirectory();
  const clock = new FakeClock();
  const store = await Store.open(directory.path, clock);
  const kept = new Idempotency(store, { refuseGrowth: () => undefined }, new KeptBytes(clock));
  const request = {
    method: "PATCH",
    path: "/v1/sessions/sess_000000000000",
    body: Buffer.from("{}"),
    presentedKey: "crn_key",
    limitsId: "key_x",
    idempotencyKey: "one",
  };
  // Each has looked for a kept answer before any has one.
  const all = Promise.withResolvers<void>();
  let works = 0;
  const send = () =>
    kept.run(request, 200, async () => {
      const number = ++works;
      if (number === 3) all.resolve();
      await all.promise;
      return toJson({ as_found_by: number });
    });
  const answers = await Promise.all([send(), send(), send()]);
  expect(works).toBe(3);
  expect(new Set(answers.map(({ answer }) => answer)).size).toBe(1);
  expect(answers.filter(({ replayed }) => !replayed).length).toBe(1);
  expect(await send()).toEqual({ ...answers[0], replayed: true });
  await store.close();
});
