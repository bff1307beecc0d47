/**
 * How adapters try a change again when others were faster.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { untilUnchanged } from "../../../src/adapters/shared/documents.ts";
import { CairnError } from "../../../src/client/index.ts";

const conflict = () => new CairnError("Somebody was faster.", { code: "version_conflict", status: 409 });

/** Fails so often, and says how long each next try may wait. */
async function tried(failures: number, error: () => Error) {
  const pauses: number[] = [];
  let count = 0;
  const attempt = async () => {
    if (count++ < failures) throw error();
    return "done";
  };
  const outcome = await untilUnchanged(attempt, async (ms) => void pauses.push(ms)).catch((error: Error) => error.message);
  return { outcome, count, pauses };
}

test("a change that others were faster than is tried 20 times, after waits that grow: who loses once does not lose again for long", async () => {
  const pauses = [2, 4, 8, 16, 32, 64, 128, 256, ...Array.from({ length: 11 }, () => 500)];
  expect(await tried(19, conflict)).toEqual({ outcome: "done", count: 20, pauses });
  expect(await tried(20, conflict)).toEqual({ outcome: "Somebody was faster.", count: 20, pauses });
});

test("a change that fails otherwise is not tried again", async () => {
  expect(await tried(1, () => new Error("It is wrong."))).toEqual({ outcome: "It is wrong.", count: 1, pauses: [] });
  expect(await tried(0, conflict)).toEqual({ outcome: "done", count: 1, pauses: [] });
});
