/**
 * The mutations: faults that would cost somebody data, order, privacy or money, each with the tests that are to notice it.
 *
 * If the code under one changes, it follows in `mutations.txt`: `test/mutations.test.ts` names those that no longer apply.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseMutations, type Mutation } from "./mutation.ts";

export const MUTATIONS: readonly Mutation[] = parseMutations(readFileSync(join(import.meta.dir, "mutations.txt"), "utf8"));
