/**
 * A session's versions against the smallest model there is: an array of states. Any sequence of updates, rollbacks, stale
 * writes, forks and restarts leaves the versions, and the traces from which they can be told again, that the array says.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { applyDiff } from "../support/diff.ts";
import { startCairn } from "../support/cairn.ts";

/** For a machine that is busy with other things: a run takes a second or two. */
const TIMEOUT_MS = 60_000;

const state = fc.dictionary(fc.constantFrom("a", "b", "__proto__", "ü"), fc.constantFrom(0, 1, null, "x", [], { c: 1 }), {
  noNullPrototype: true,
});
/** Relative to the current version: what a caller holds for the current one is mostly right, sometimes old, rarely nonsense. */
const expected = fc.option(fc.constantFrom(0, 0, 0, -1, 1), { nil: undefined });
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("update" as const), state, expected }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("rollback" as const), version: fc.integer({ min: -12, max: 12 }), expected }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("fork" as const), version: fc.option(fc.integer({ min: -12, max: 12 }), { nil: undefined }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
);

interface Version {
  json: string;
  source: "initial" | "update" | "rollback";
}

/** The version that a number means, or undefined. */
function meant(version: number, current: number): number | undefined {
  const resolved = version < 0 ? current + version : version;
  return resolved < 0 || resolved > current ? undefined : resolved;
}

test(
  "any sequence of updates, rollbacks, stale writes, forks and restarts leaves the versions of the model",
  async () => {
    await fc.assert(
      fc.asyncProperty(state, fc.array(step, { maxLength: 25 }), async (initial, steps) => {
        await using cairn = await startCairn();
        const { id } = await cairn.createSession({ initial_state: initial });
        const model: Version[] = [{ json: JSON.stringify(initial), source: "initial" }];
        for (const one of steps) {
          const current = model.length - 1;
          if (one.kind === "restart") {
            await cairn.restart();
          } else if (one.kind === "fork") {
            const version = meant(one.version ?? current, current);
            const { status, body } = await cairn.post(`/v1/sessions/${id}/fork`, { version: one.version });
            if (version === undefined) expect([status, body.error.code]).toEqual([404, "version_not_found"]);
            else expect([status, JSON.stringify(body.state), body.state_version]).toEqual([201, model[version]?.json ?? "", 0]);
          } else {
            const expected_version = one.expected === undefined ? undefined : Math.max(0, current + one.expected);
            const conflict = expected_version !== undefined && expected_version !== current;
            const version = one.kind === "update" ? undefined : meant(one.version, current);
            const { status, body } =
              one.kind === "update"
                ? await cairn.post(`/v1/sessions/${id}/state`, { state: one.state, expected_version })
                : await cairn.post(`/v1/sessions/${id}/rollback`, { version: one.version, expected_version });
            if (conflict) {
              expect([status, body.error.code]).toEqual([409, "version_conflict"]);
            } else if (one.kind === "rollback" && version === undefined) {
              expect([status, body.error.code]).toEqual([404, "version_not_found"]);
            } else {
              const json = one.kind === "update" ? JSON.stringify(one.state) : (model[version ?? 0]?.json ?? "");
              model.push({ json, source: one.kind });
              expect([status, JSON.stringify(body.state), body.state_version]).toEqual([200, json, current + 1]);
            }
          }
        }

        const session = await cairn.session(id);
        expect([JSON.stringify(session.state), session.state_version]).toEqual([model.at(-1)?.json ?? "", model.length - 1]);
        const listed = (await cairn.get(`/v1/sessions/${id}/versions?limit=100`)).body.data.toReversed();
        expect(listed.map(({ version, source }: any) => ({ version, source }))).toEqual(
          model.map(({ source }, version) => ({ version, source })),
        );
        for (const [version, { json }] of model.entries()) {
          expect(JSON.stringify((await cairn.get(`/v1/sessions/${id}/versions/${version}`)).body.state)).toBe(json);
        }
        expect(await retold(cairn, id)).toEqual(model.map(({ json }) => sorted(JSON.parse(json))));
      }),
      { numRuns: 15 },
    );
  },
  TIMEOUT_MS,
);

/** All states of a session, from its traces alone. */
async function retold(cairn: Awaited<ReturnType<typeof startCairn>>, id: string): Promise<string[]> {
  const states: any[] = [];
  for (const { action, details } of (await cairn.traces(id)).toReversed()) {
    if (action === "session.created") states.push(details.initial_state);
    if (action === "state.updated") states.push(applyDiff(states.at(-1), details.state_diff));
    if (action === "state.rolled_back") states.push(states[details.to_version]);
  }
  return states.map(sorted);
}

function sorted(state: Record<string, unknown>): string {
  return JSON.stringify(Object.entries(state).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
