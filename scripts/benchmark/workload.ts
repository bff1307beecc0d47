/**
 * What is stored before measuring, and the requests that are measured. A seed decides all of it.
 *
 * Sizes are those of an agent in conversation: turns of 1 KB in and 1 KB out, memories of 200 characters, a state of 2 KB
 * of which an update changes a few keys.
 *
 * @module
 */

export const TURNS_PER_SESSION = 20;
export const MEMORIES_PER_SESSION = 20;
export const SESSIONS_PER_USER = 10;
const TURN_TEXT_LENGTH = 1024;
const MEMORY_LENGTH = 200;
const QUERY_WORDS = 6;
const STATE_NOTES_LENGTH = 1700;

/** Everyday English with names, places and numbers between, so that texts share words as memories do. */
const WORDS = `account address afternoon agreed airport allergic anniversary answer apartment appointment asked bakery balance bicycle
  birthday blue booking bought breakfast brother budget calendar called cancelled chapter cheaper children cinema coffee colleague
  confirmed contract cousin customer daughter decided delivery dentist deposit dinner discount doctor dog driver early email evening
  expensive family favourite ferry finished flight friend garden gift guitar holiday hospital hotel house insurance interview invoice
  kitchen laptop late lesson letter library light living manager market meeting membership missed mobile moved museum music neighbour
  newspaper office order package parents passport password payment phone piano picture plan plans prefers price printer problem project
  promised quiet received recipe refund rent repair report reserved restaurant returned river salad school season seat shoes signed
  sister size slept station street student subscription summer teacher team theatre ticket train travel unusual vegetarian visited
  waiting warranty website wedding weekend window winter work wrote yesterday`.split(/\s+/);
const NAMES = "Amara Bruno Chiara Dmitri Elif Farid Greta Hiro Ines Jonas Kofi Leila Marta Nadia Oscar Priya Quentin Rosa Sven Tomas".split(
  " ",
);
const PLACES =
  "Antwerp Bergen Cairo Dakar Edinburgh Florence Ghent Hanoi Izmir Kyoto Lisbon Madrid Naples Oslo Porto Riga Seville Turin".split(" ");

export interface Request {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
}

/** Numbers below `end` that depend on the seed alone. */
type Below = (end: number) => number;

function seeded(seed: number): Below {
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  return (end) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % end;
  };
}

const SMALL_WORDS = "a and at for from has in is of on she that the they to was with".split(" ");

function word(below: Below): string {
  const kind = below(16);
  if (kind === 0) return NAMES[below(NAMES.length)] as string;
  if (kind === 1) return PLACES[below(PLACES.length)] as string;
  if (kind === 2) return String(below(10_000));
  if (kind < 8) return SMALL_WORDS[below(SMALL_WORDS.length)] as string;
  return WORDS[below(WORDS.length)] as string;
}

/** Sentences of such words, of exactly this length. */
export function prose(length: number, seed: number): string {
  const below = seeded(seed + 1);
  let text = "";
  while (text.length < length) {
    const sentence = Array.from({ length: 8 + below(8) }, () => word(below)).join(" ");
    text += `${text === "" ? "" : " "}${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
  }
  return text.slice(0, length);
}

export function question(seed: number): string {
  const below = seeded(seed + 1_000_003);
  return `What about ${Array.from({ length: QUERY_WORDS }, () => word(below)).join(" ")}?`;
}

export function memoryContent(seed: number): string {
  return prose(MEMORY_LENGTH, seed);
}

/** About 2 KB of JSON; between two steps the step, a score and a short list change. */
function state(session: number, step: number): Record<string, unknown> {
  return {
    goal: "Answer the customer and keep the order up to date",
    customer: { name: NAMES[session % NAMES.length], city: PLACES[session % PLACES.length], since: 2000 + (session % 25) },
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
const addMemory = (id: string, seed: number): Request => ({
  method: "POST",
  path: "/v1/memory",
  body: { session_id: id, content: memoryContent(seed), type: "fact", tags: ["benchmark"] },
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
const search = (seed: number, filter: Record<string, string>): Request => ({
  method: "POST",
  path: "/v1/memory/search",
  body: { query: question(seed), ...filter },
});

/** What fills a session before measuring, after `createSession`, in order. */
export function* filling(id: string, session: number): Generator<Request> {
  for (let turn = 0; turn < TURNS_PER_SESSION; turn++) yield addTurn(id, session * 1000 + turn);
  for (let memory = 0; memory < MEMORIES_PER_SESSION; memory++) yield addMemory(id, session * 1000 + memory);
  yield setState(id, session, 1);
}
export { createSession };

export interface Operation {
  title: string;
  writes?: true;
  /** Leaves work for the index behind it. */
  indexes?: true;
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
  "add-memory",
  "agent-loop",
] as const;
export type OperationName = (typeof OPERATION_NAMES)[number];

export const OPERATIONS: Record<OperationName, Operation> = {
  "get-session": { title: "get session", requests: (id) => [{ method: "GET", path: `/v1/sessions/${id}` }] },
  "list-turns": { title: "list 20 turns", requests: (id) => [{ method: "GET", path: `/v1/sessions/${id}/turns` }] },
  "search-session": {
    title: "search in a session",

    requests: (id, session) => [search(session, { session_id: id })],
  },
  "search-user": { title: "search of a user", requests: (_, session) => [search(session, { user_id: user(session) })] },
  "search-all": { title: "search of everything", requests: (_, session) => [search(session, {})] },
  context: { title: "context", requests: (id, session) => [getContext(id, session)] },
  "set-state": { title: "set state", writes: true, requests: (id, session, variant) => [setState(id, session, 10 + variant)] },
  rollback: {
    title: "roll back",
    writes: true,
    requests: (id) => [{ method: "POST", path: `/v1/sessions/${id}/rollback`, body: { version: 1 } }],
  },
  fork: { title: "fork", writes: true, requests: (id) => [{ method: "POST", path: `/v1/sessions/${id}/fork`, body: {} }] },
  "create-session": { title: "create session", writes: true, requests: (_, session) => [createSession(session)] },
  "add-turn": { title: "add turn", writes: true, requests: (id, session) => [addTurn(id, session)] },
  "add-memory": {
    title: "add memory",
    writes: true,
    indexes: true,
    requests: (id, session, variant) => [addMemory(id, session * 2 + variant)],
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
};

const encoder = new TextEncoder();

/** A request as it goes over the wire. */
export function encodeRequest({ method, path, body }: Request, key: string): Uint8Array {
  const content = body === undefined ? "" : JSON.stringify(body);
  const length = body === undefined ? "" : `Content-Type: application/json\r\nContent-Length: ${encoder.encode(content).byteLength}\r\n`;
  return encoder.encode(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: ${key}\r\n${length}\r\n${content}`);
}
