/** Whatever is done to sessions, in turn or at once: the counters of each equal the length of its lists. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { memories, sessions as sessionRows, turns as turnRows } from "../../src/storage/tables.ts";
import { pagesOf } from "../support/answers.ts";
import { startCairn } from "../support/cairn.ts";

const change = fc.record({
  kind: fc.constantFrom("turn", "turn", "turn", "memory", "memory", "forget", "forget", "rewrite", "state", "fork", "delete", "refused"),
  /** Pick the session and the memory. */
  of: fc.nat(),
  memory: fc.nat(),
});
/** Changes of one batch are sent at once; then the clock moves on. */
const batches = fc.array(fc.record({ changes: fc.array(change, { maxLength: 8 }), laterSeconds: fc.constantFrom(0, 0, 0, 0, 30) }), {
  maxLength: 10,
});

test("turn_count and memory_count equal the lists, for any mix of changes at once, deletions and expiry", async () => {
  await fc.assert(
    fc.asyncProperty(batches, async (plan) => {
      await using cairn = await startCairn();
      const sessions: string[] = [];
      const memoriesMade: string[] = [];
      const make = async (ttl_seconds: number) => void sessions.push((await cairn.createSession({ ttl_seconds })).id);
      await make(20);
      await make(50);
      await make(10_000);
      for (const { changes, laterSeconds } of plan) {
        // What finds its session or memory gone is refused and must change nothing.
        await Promise.all(
          changes.map(async ({ kind, of, memory }) => {
            const path = `/v1/sessions/${sessions[of % sessions.length]}`;
            const forgotten = `/v1/memory/${memoriesMade[memory % Math.max(1, memoriesMade.length)]}`;
            const turn = { input: { type: "text", content: "" }, output: { type: "text", content: "" } };
            switch (kind) {
              case "turn":
                return cairn.post(`${path}/turns`, turn);
              case "memory": {
                const session_id = path.split("/").at(-1);
                const { status, body } = await cairn.post("/v1/memory", { session_id, content: "Likes tea.", embed: memory % 2 === 0 });
                return status === 201 ? memoriesMade.push(body.id) : status;
              }
              case "forget":
                return cairn.delete(forgotten);
              case "rewrite":
                return cairn.patch(forgotten, { content: "Likes coffee." });
              case "state":
                return cairn.post(`${path}/state`, { state: {} });
              case "fork": {
                const { status, body } = await cairn.post(`${path}/fork`);
                return status === 201 ? sessions.push(body.id) : status;
              }
              case "delete":
                return cairn.delete(path);
              default:
                return cairn.post(`${path}/turns`, { ...turn, output: { type: "nothing", content: "" } });
            }
          }),
        );
        cairn.clock.advance({ seconds: laterSeconds });
        if (laterSeconds > 0) await cairn.runTask("session expiry");
      }

      let turnsAll = 0;
      const listed = (await pagesOf(cairn, "/v1/sessions?limit=100")).flatMap(({ data }) => data);
      for (const { id, turn_count, memory_count } of listed) {
        const turns = (await pagesOf(cairn, `/v1/sessions/${id}/turns?limit=100&order=asc`)).flatMap(({ data }) => data);
        const kept = (await pagesOf(cairn, `/v1/memory?limit=100&session_id=${id}`)).flatMap(({ data }) => data);
        expect({ id, turn_count, memory_count }).toEqual({ id, turn_count: turns.length, memory_count: kept.length });
        expect(turns.map(({ turn_number }: { turn_number: number }) => turn_number)).toEqual(turns.map((_, i) => i + 1));
        turnsAll += turns.length;
      }
      // Nothing is left of sessions that are gone but the memories of those that expired, and their index agrees.
      await cairn.runTask("session removal");
      const everywhere = (await pagesOf(cairn, "/v1/memory?limit=100")).flatMap(({ data }) => data);
      expect(await cairn.counts([sessionRows, turnRows, memories, memories.index.bySession])).toEqual([
        listed.length,
        turnsAll,
        everywhere.length,
        everywhere.length,
      ]);
    }),
    { numRuns: 15 },
  );
});
