/**
 * Of a user who was erased no file of the data directory holds a text.
 *
 * @module
 */
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Cairn } from "../../client/client.ts";
import { systemClock } from "../../lib/clock.ts";
import { OwnServer } from "./own-server.ts";

const USER = "selftest user";
const RECORDS = 40;
const POLL_MS = 50;
const DONE_MS_MAX = 60_000;

/** The files below a directory that hold one of some texts. */
export function filesWith(directory: string, texts: readonly string[]): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => {
      const bytes = readFileSync(file);
      return texts.some((text) => bytes.includes(text));
    });
}

/** Texts that stand nowhere by chance. */
const marks = (count: number): string[] => Array.from({ length: count }, () => `mark${randomBytes(9).toString("hex")}`);

export async function checkErasure(directory: string, key: string): Promise<string> {
  const [turn, state, memory, note] = marks(4) as [string, string, string, string];
  const texts = [turn, state, memory, note];
  {
    await using server = await OwnServer.start(directory, key);
    const { cairn } = server;
    for (let i = 0; i < RECORDS; i++) {
      const body = { agent_id: "selftest", user_id: USER, initial_state: { state, i }, metadata: { note } };
      const { id } = await cairn.sessions.create(body);
      const said = (content: string) => ({ type: "text" as const, content });
      await cairn.turns.add(id, { input: said(`${turn} ${i}`), output: said(turn), reasoning: turn });
      const { id: old } = await cairn.memories.add({ session_id: id, content: `${memory} ${i}`, embed: false });
      await cairn.memories.update(old, { content: `${memory} has changed ${i}` });
    }
  }
  if (filesWith(directory, texts).length === 0)
    throw new Error("the texts of the user are in no file before the erasure, so that it proves nothing");
  {
    await using server = await OwnServer.start(directory, key);
    await server.cairn.users.erase(USER);
    await untilDone(server.cairn);
  }
  const left = filesWith(directory, texts);
  if (left.length > 0) throw new Error(`texts of the erased user are in ${left.join(", ")}`);
  return `${RECORDS} sessions of a user erased: none of their texts is in a file of the data directory`;
}

async function untilDone(cairn: Cairn): Promise<void> {
  const until = systemClock.elapsed() + DONE_MS_MAX;
  while (systemClock.elapsed() < until) {
    const { status } = await cairn.users.erasure(USER);
    if (status === "done") return;
    await systemClock.sleep(POLL_MS);
  }
  throw new Error(`the erasure was not done after ${DONE_MS_MAX / 1_000} s`);
}
