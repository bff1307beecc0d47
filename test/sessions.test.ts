import { expect, test } from "bun:test";
import { startCairn } from "./support/cairn.ts";

test("rolling back to version 1 restores its state as version 3", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ initial_state: { step: 0 } });
  await cairn.setState(session.id, { step: 1 });
  await cairn.setState(session.id, { step: 2 });
  expect(await cairn.rollback(session.id, 1)).toMatchObject({ state: { step: 1 }, state_version: 3 });
  expect(await cairn.traces(session.id, "state.rolled_back")).toMatchObject([{ details: { from_version: 2, to_version: 1 } }]);
});
