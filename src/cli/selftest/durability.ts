/**
 * Check of what is there after `kill -9`: all that was acknowledged, whole, and what was not whole or not at all.
 *
 * @module
 */
import { OwnServer } from "./own-server.ts";

const KILLS = 3;
const LANES = 8;
/** Steps that are acknowledged before a server is killed while others are under way. */
const STEPS_PER_LIFE = 100;

interface Step {
  readonly session: string;
  readonly turn: string;
  readonly memory: string;
}

/** A step of an agent: a turn, a state and a memory in one request. */
async function takeStep({ cairn }: OwnServer, session: string, number: number): Promise<Step> {
  const answer = await cairn.turns.add(session, {
    input: { type: "text", content: `Question ${number}` },
    output: { type: "text", content: `Answer ${number}` },
    state: { number },
    memories: [{ content: `Fact ${number}`, embed: false }],
  });
  return { session, turn: answer.id, memory: answer.memories![0]!.id };
}

export async function checkDurability(directory: string, key: string): Promise<string> {
  const steps: Step[] = [];
  const sessions: string[] = [];
  for (let life = 0; life < KILLS; life++) {
    const server = await OwnServer.start(directory, key);
    const own: string[] = [];
    for (let lane = 0; lane < LANES; lane++)
      own.push((await server.cairn.sessions.create({ agent_id: "selftest", user_id: `user ${lane}` })).id);
    sessions.push(...own);
    await stepUntilKilled(server, own, steps, steps.length + STEPS_PER_LIFE);
  }
  await using server = await OwnServer.start(directory, key);
  const turns = new Set<string>();
  const memories = new Set<string>();
  for (const session of sessions) await collect(server, session, { turns, memories });
  const lost = steps.filter(({ turn, memory }) => !turns.has(turn) || !memories.has(memory));
  if (lost.length > 0) throw new Error(`${lost.length} of ${steps.length} acknowledged steps are lost, such as turn ${lost[0]!.turn}`);
  return `${steps.length} steps acknowledged before ${KILLS} kills: none lost, none half there`;
}

async function stepUntilKilled(server: OwnServer, sessions: readonly string[], steps: Step[], enough: number): Promise<void> {
  let isKilled = false;
  const lane = async (session: string) => {
    for (let number = 1; !isKilled; number++) {
      try {
        steps.push(await takeStep(server, session, number));
      } catch (error) {
        if (isKilled) return;
        throw error;
      }
      if (steps.length >= enough && !isKilled) {
        isKilled = true;
        await server.kill();
      }
    }
  };
  await Promise.all(sessions.map(lane));
}

/** @throws {Error} where a session has not as many states and memories as turns */
async function collect({ cairn }: OwnServer, session: string, found: { turns: Set<string>; memories: Set<string> }): Promise<void> {
  const { state_version: states } = await cairn.sessions.get(session);
  const turns = await Array.fromAsync(cairn.turns.list(session));
  const memories = await Array.fromAsync(cairn.memories.list({ session_id: session }));
  if (turns.length !== states || memories.length !== states)
    throw new Error(`session ${session} has ${states} states, ${turns.length} turns and ${memories.length} memories of the same steps`);
  for (const { id } of turns) found.turns.add(id);
  for (const { id } of memories) found.memories.add(id);
}
