/**
 * Lets suites that were written for vitest run under `bun test`: they find their functions among the globals, and an `expect` that has
 * what Bun's lacks, `soft` and functions before `rejects`.
 *
 * @module
 */
import { plugin } from "bun";
import { expect } from "bun:test";

const isAsync = (value: unknown): value is () => Promise<unknown> =>
  typeof value === "function" && value.constructor.name === "AsyncFunction";
const vitestExpect = Object.assign((value: unknown) => expect(isAsync(value) ? value() : value), expect, { soft: expect });

/** Call it before such a suite is imported. */
export function suitesForVitest(): void {
  Object.assign(globalThis, { vitestExpect });
  plugin({
    name: "suites for vitest",
    setup(build) {
      build.onLoad({ filter: /langgraph-checkpoint-validation\/dist\/spec\/.*\.js$/ }, async ({ path }) => ({
        contents: (await Bun.file(path).text())
          .replaceAll(/\bexpect(?=[(.])/g, "vitestExpect")
          // It adds to what the tests of lists expect, and tests run in any order: it gets a checkpointer of its own.
          .replace(/\("should migrate pending sends", async \(\) => \{/, "$& const checkpointer = await initializer.createCheckpointer();"),
        loader: "js",
      }));
    },
  });
}
