/**
 * Records stored before measuring, but for the memories (`filling.ts`), and the requests that are measured. A seed decides all of it.
 *
 * Sizes are those of an agent in conversation: turns of 1 KB in and 1 KB out, memories of 200 characters, a state of 2 KB
 * of which an update changes a few keys.
 *
 * @module
 */
import { Collection } from "./texts.ts";

export const TURNS_PER_SESSION = 20;
export const SESSIONS_PER_USER = 5;
const TURN_TEXT_LENGTH = 1024;
const MEMORY_LENGTH = 200;
const MEMORIES_PER_BATCH = 100;
const STATE_NOTES_LENGTH = 1700;

export interface Request {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
}

const collection = new Collection("varied");
/** Questions are about the first texts of the collection: every store has them. */
const ASKED_ABOUT = 10_000;
/** Texts that fill a turn are others than the memories'. */
const PROSE_FROM = 1 << 24;

/** Sentences of exactly this length. */
export function prose(length: number, seed: number): string {
  let text = "";
  for (let index = PROSE_FROM + seed * 64; text.length < length; index++)
    text += `${text === "" ? "" : " "}${collection.text(index).content}`;
  return text.slice(0, length);
}

export function question(seed: number): string {
  return collection.question(seed, ASKED_ABOUT);
}

export function memoryContent(seed: number): string {
  return prose(MEMORY_LENGTH, seed);
}

/** About 2 KB of JSON; between two steps the step, a score and a short list change. */
function state(session: number, step: number): Record<string, unknown> {
  return {
    goal: "Answer the customer and keep the order up to date",
    customer: { name: `Customer ${session}`, since: 2000 + (session % 25) },
    step,
    confidence: (step % 100) / 100,
    open_questions: [question(step), question(step + 1)],
    notes: prose(STATE_NOTES_LENGTH, session),
  };
}

const user = (session: number) => `user-${Math.floor(session / SESSIONS_PER_USER)}`;

const addTurn = (id: string, seed: number): Request => ({
  method: "POST",
  path: `/v1/sessions/${id}/turns`,
  body: {
    input: { type: "text", content: prose(TURN_TEXT_LENGTH, seed) },
    output: { type: "text", content: prose(TURN_TEXT_LENGTH, seed + 7) },
  },
});
const newMemory = (id: string, seed: number) => ({ session_id: id, content: memoryContent(seed), type: "fact", tags: ["benchmark"] });
const addMemory = (id: string, seed: number): Request => ({ method: "POST", path: "/v1/memory", body: newMemory(id, seed) });
const addMemories = (id: string, seed: number): Request => ({
  method: "POST",
  path: "/v1/memory/batch",
  body: { memories: Array.from({ length: MEMORIES_PER_BATCH }, (_, i) => newMemory(id, seed * MEMORIES_PER_BATCH + i)) },
});
const setState = (id: string, session: number, step: number): Request => ({
  method: "POST",
  path: `/v1/sessions/${id}/state`,
  body: { state: state(session, step), reasoning: "The customer answered." },
});
const createSession = (session: number): Request => ({
  method: "POST",
  path: "/v1/sessions",
  body: { agent_id: "agent", user_id: user(session), initial_state: state(session, 0), metadata: { channel: "web" } },
});
const getContext = (id: string, seed: number): Request => ({
  method: "POST",
  path: `/v1/sessions/${id}/context`,
  body: { query: question(seed) },
});
/** Step in one request: turn, state and memory, which are three requests otherwise. */
const step = (id: string, session: number, variant: number): Request => ({
  method: "POST",
  path: `/v1/sessions/${id}/turns`,
  body: {
    ...(addTurn(id, session).body as object),
    reasoning: "The customer answered.",
    state: state(session, 20 + variant),
    memories: [{ content: memoryContent(session * 2 + variant), type: "fact", tags: ["benchmark"] }],
  },
});
const search = (seed: number, filter: Record<string, string>): Request => ({
  method: "POST",
  path: "/v1/memory/search",
  body: { query: question(seed), ...filter },
});

/** Requests that fill a session before measuring, after `createSession`, in order. */
export function* filling(id: string, session: number): Generator<Request> {
  for (let turn = 0; turn < TURNS_PER_SESSION; turn++) yield addTurn(id, session * 1000 + turn);
  yield setState(id, session, 1);
}
export { addMemory, createSession };

export interface Operation {
  title: string;
  writes?: true;
  /** Is measured while memories are added. */
  searches?: true;
  /** Leaves work for the index behind it. */
  indexes?: true;
  /** Number of sessions at most. */
  sessionsMax?: number;
  /** The requests of one, in order, for the session at this index; `variant` is 0 or 1. */
  requests(id: string, session: number, variant: number): Request[];
}

/** In the order of measuring: what writes comes after what reads, and what adds memories last. */
export const OPERATION_NAMES = [
  "get-session",
  "list-turns",
  "search-session",
  "search-user",
  "search-all",
  "context",
  "set-state",
  "rollback",
  "fork",
  "create-session",
  "add-turn",
  "one-session",
  "add-memory",
  "add-memories",
  "agent-loop",
  "agent-step",
] as const;
export type OperationName = (typeof OPERATION_NAMES)[number];

export const OPERATIONS: Record<OperationName, Operation> = {
  "get-session": { title: "get session", requests: (id) => [{ method: "GET", path: `/v1/sessions/${id}` }] },
  "list-turns": { title: "list 20 turns", requests: (id) => [{ method: "GET", path: `/v1/sessions/${id}/turns` }] },
  "search-session": {
    title: "search in a session",
    searches: true,
    requests: (id, session) => [search(session, { session_id: id })],
  },
  "search-user": { title: "search of a user", searches: true, requests: (_, session) => [search(session, { user_id: user(session) })] },
  "search-all": { title: "search of everything", searches: true, requests: (_, session) => [search(session, {})] },
  context: { title: "context", searches: true, requests: (id, session) => [getContext(id, session)] },
  "set-state": { title: "set state", writes: true, requests: (id, session, variant) => [setState(id, session, 10 + variant)] },
  rollback: {
    title: "roll back",
    writes: true,
    requests: (id) => [{ method: "POST", path: `/v1/sessions/${id}/rollback`, body: { version: 1 } }],
  },
  fork: { title: "fork", writes: true, requests: (id) => [{ method: "POST", path: `/v1/sessions/${id}/fork`, body: {} }] },
  "create-session": { title: "create session", writes: true, requests: (_, session) => [createSession(session)] },
  "add-turn": { title: "add turn", writes: true, requests: (id, session) => [addTurn(id, session)] },
  "one-session": {
    title: "add turn to one session",
    writes: true,
    sessionsMax: 1,
    requests: (id, session, variant) => [addTurn(id, session + variant)],
  },
  "add-memory": {
    title: "add memory",
    writes: true,
    indexes: true,
    requests: (id, session, variant) => [addMemory(id, session * 2 + variant)],
  },
  "add-memories": {
    title: "add 100 memories in one request",
    writes: true,
    indexes: true,
    requests: (id, session, variant) => [addMemories(id, session * 2 + variant)],
  },
  "agent-loop": {
    title: "agent loop",
    writes: true,
    indexes: true,
    requests: (id, session, variant) => [
      getContext(id, session),
      addTurn(id, session),
      setState(id, session, 20 + variant),
      addMemory(id, session * 2 + variant),
    ],
  },
  "agent-step": {
    title: "agent loop as a step",
    writes: true,
    indexes: true,
    requests: (id, session, variant) => [getContext(id, session), step(id, session, variant)],
  },
};

const encoder = new TextEncoder();

/** A request as it goes over the wire. */
export function encodeRequest({ method, path, body }: Request, key: string, host = "127.0.0.1"): Uint8Array {
  const content = body === undefined ? "" : JSON.stringify(body);
  const length = body === undefined ? "" : `Content-Type: application/json\r\nContent-Length: ${encoder.encode(content).byteLength}\r\n`;
  return encoder.encode(`${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nX-API-Key: ${key}\r\n${length}\r\n${content}`);
}
