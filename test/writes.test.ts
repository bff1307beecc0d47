import { expect, test } from "bun:test";
import { WriteBuffer } from "../src/storage/write-buffer.ts";
import { startCairn } from "./support/cairn.ts";

test("while no webhook wants its events a change puts few rows: six for a turn or a state of a user's session", async () => {
  await using cairn = await startCairn();
  const { store } = cairn.service;
  const { id } = await cairn.createSession({ user_id: "ada" });
  const commit = store.commit.bind(store);
  let puts: string[] = [];
  store.commit = (home, work) =>
    commit(home, (tx) => {
      const result = work(tx);
      if (tx instanceof WriteBuffer) puts = tx.writes.map(({ table }) => table);
      return result;
    });
  await cairn.addTurn(id);
  expect(puts.toSorted()).toEqual(["sessions", "traces", "traces.byAgent", "traces.bySession", "traces.byUser", "turns"]);
  await cairn.setState(id, { step: 1 });
  expect(puts.toSorted()).toEqual(["sessions", "traces", "traces.byAgent", "traces.bySession", "traces.byUser", "versions"]);
  await cairn.addMemory(id, "Likes tea.");
  expect(puts).toHaveLength(12);
});
