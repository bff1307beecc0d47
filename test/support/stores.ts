/**
 * Which store the tests of the front door run on: the embedded one, or PostgreSQL where CAIRN_TEST_STORE says so.
 *
 * @module
 */
import { test } from "bun:test";
import { Postgres } from "./postgres.ts";

export const isOnPostgres = process.env["CAIRN_TEST_STORE"] === "postgres";
/** How many servers share a database. */
export const SERVERS = Number(process.env["CAIRN_TEST_SERVERS"] ?? 1);
/** How much passes from shortly before an end to it. What several servers change one after another takes a millisecond each. */
export const MOMENT_MS = SERVERS === 1 ? 1 : 50;

/** It ends with this process, and not with the first test that needs it: that one may take too long. */
const server = isOnPostgres ? await Postgres.start() : undefined;

/** The URL of an empty database that nobody else has, where there is to be one. */
export async function newDatabase(): Promise<string | undefined> {
  return server?.borrow();
}

/** Has others use it. */
export async function giveBackDatabase(url: string): Promise<void> {
  await server?.giveBack(url);
}

/**
 * Gives the function that registers a test of the embedded store. On PostgreSQL the test is skipped, and its name says why.
 *
 * @param reason - what only the embedded store has
 */
export function onEmbedded(reason: string): (name: string, run: () => void | Promise<unknown>, timeoutMs?: number) => void {
  if (!isOnPostgres) return test;
  return (name, run, timeoutMs) => test.skip(`${name} (on the embedded store only: ${reason})`, run, timeoutMs);
}
