/**
 * Everything that is kept of one user, read page by page by the API and as the key may see it: a line of JSON for each record, and a
 * last one that counts them.
 *
 * @module
 */
import { api, type List, type UserDetails } from "./api.ts";

const PAGE = 100;

export interface ExportedRecord {
  object: string;
  /** Count in the last line. */
  documents_missing?: number;
}
type Read<Item> = (after: string | null) => Promise<List<Item>>;

async function* pagesOf<Item>(read: Read<Item>): AsyncGenerator<Item> {
  for (let after: string | null = null; ;) {
    const page: List<Item> = await read(after);
    yield* page.data;
    if (!page.has_more) return;
    after = page.last_id;
  }
}

/** Turns, hidden ones too, states, searches and forks of a session in their order; its memories are listed with those of the user. */
async function* entriesOf(sessionId: string, signal: AbortSignal): AsyncGenerator<ExportedRecord> {
  const asked = { kinds: "turn,version,retrieval,fork", status: "all", order: "asc", limit: PAGE };
  for await (const entry of pagesOf((starting_after) => api.timeline(sessionId, { ...asked, starting_after }, signal))) {
    const { version } = entry;
    // Changes are not known where the version before is not kept: then the whole state says it.
    const isAlone = version !== undefined && version.state_diff === null;
    const exported: ExportedRecord = isAlone
      ? Object.assign(entry, { version: await api.version(sessionId, version.version, signal) })
      : entry;
    yield exported;
  }
}

interface DocumentOwner {
  user_id: string;
  agent_id?: string;
}

async function* documentPages<Item>(owner: DocumentOwner, asked: object, signal: AbortSignal): AsyncGenerator<Item> {
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await api.documents<Item>(owner, { ...asked, ...(cursor !== undefined && { cursor }), limit: PAGE }, signal);
    yield* page.data;
    cursor = page.next_cursor;
  }
}

/** Documents of the user that no agent keeps, and those with each of these agents. */
async function* documentsOf(user_id: string, agents: ReadonlySet<string>, signal: AbortSignal): AsyncGenerator<ExportedRecord> {
  for (const owner of [{ user_id }, ...Array.from(agents, (agent_id) => ({ user_id, agent_id }))]) {
    for await (const namespace of documentPages<string[]>(owner, { op: "namespaces", max_depth: 1 }, signal)) {
      const listed = documentPages<ExportedRecord>(owner, { op: "list", namespace, deep: true }, signal);
      for await (const document of listed) yield { ...document, ...owner };
    }
  }
}

async function* agentsOfAll(signal: AbortSignal): AsyncGenerator<string> {
  for await (const { id } of pagesOf((after) => api.named("agents", { starting_after: after }, signal, PAGE))) yield id;
}

/**
 * @yields records, and at the end how many of each kind there were, with how many documents are missing: those with agents that no
 * session or memory names
 */
export async function* exportUser(user: UserDetails, signal: AbortSignal): AsyncGenerator<ExportedRecord> {
  const { id: user_id } = user;
  const agents = new Set<string>();
  const counts = { sessions: 0, entries: 0, memories: 0, searches: 0, documents: 0, traces: 0 };
  for await (const session of pagesOf((after) => api.sessions({ user_id, starting_after: after }, signal, PAGE))) {
    counts.sessions++;
    agents.add(session.agent_id);
    yield session;
    for await (const entry of entriesOf(session.id, signal)) {
      counts.entries++;
      yield entry;
    }
  }
  const lists = {
    memories: (starting_after: string | null) => api.memories({ user_id, status: "all", starting_after }, signal, PAGE),
    searches: (starting_after: string | null) => api.searches({ user_id, starting_after }, signal, PAGE),
    traces: (starting_after: string | null) => api.traces({ user_id, starting_after }, signal, PAGE),
  };
  for (const [kind, read] of Object.entries(lists)) {
    for await (const one of pagesOf<ExportedRecord>(read)) {
      counts[kind as keyof typeof lists]++;
      yield one;
    }
  }
  if (user.documents > 0) {
    for await (const agent of agentsOfAll(signal)) agents.add(agent);
    for await (const document of documentsOf(user_id, agents, signal)) {
      counts.documents++;
      yield document;
    }
  }
  const documents_missing = user.more ? 0 : Math.max(0, user.documents - counts.documents);
  const end = { object: "user_export", user_id, exported_at: new Date().toISOString(), ...counts, documents_missing };
  yield end;
}
