/**
 * Reasons for which a search did not find a memory: the filters that leave it out, or the score that it has.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { api, CairnError, type Match, type Memory } from "../api.ts";
import { statusOf } from "./memory-facts.tsx";

interface WhyNotProps {
  /** The search, without its threshold. */
  body: Readonly<Record<string, unknown>>;
  threshold: number;
}

export function WhyNot({ body, threshold }: WhyNotProps) {
  const id = useSignal("");
  const answer = useSignal<readonly string[]>([]);
  const ask = async (event: Event) => {
    event.preventDefault();
    answer.value = await reasons(id.value.trim(), body, threshold).catch((error: Error) => [error.message]);
  };
  return (
    <details class="why-not">
      <summary>Why is a memory not found?</summary>
      <form class="row" aria-label="Why not found" onSubmit={(event) => void ask(event)}>
        <input
          class="mono"
          aria-label="Memory that is missing"
          placeholder="mem_…"
          autoComplete="off"
          required
          value={id}
          onInput={({ currentTarget }) => (id.value = currentTarget.value)}
        />
        <button class="small">Why</button>
      </form>
      <div role="status">
        {answer.value.map((reason) => (
          <p key={reason}>{reason}</p>
        ))}
      </div>
    </details>
  );
}

async function reasons(id: string, body: WhyNotProps["body"], threshold: number): Promise<string[]> {
  let memory: Memory;
  try {
    memory = await api.memory(id);
  } catch (error) {
    if (error instanceof CairnError && error.status === 404)
      return ["There is no such memory: it was deleted, has expired, or is not this key's."];
    throw error;
  }
  // A fork shows memories of its parent, and others of them as current.
  const match = await scoreOf(memory, body);
  if (match === undefined) {
    const left = leftOut(memory, body);
    return left.length > 0 ? left : ["The filter leaves it out."];
  }
  if (match.score >= threshold)
    return [`It is found, with a score of ${match.score.toFixed(2)}; among very many it can be behind the limit.`];
  return [scored(match, threshold), ...(memory.vector_available ? [] : ["It has no vector yet: it is found by its words alone."])];
}

const FIELDS = { user_id: "user", agent_id: "agent", session_id: "session", type: "type" } as const;

/** Filters that the memory does not pass, in words. */
function leftOut(memory: Memory, body: WhyNotProps["body"]): string[] {
  const found: string[] = [];
  for (const [field, name] of Object.entries(FIELDS)) {
    const wanted = body[field];
    const own = memory[field as keyof typeof FIELDS];
    if (typeof wanted === "string" && wanted !== own) found.push(`The search is for the ${name} ${wanted}; it has ${own ?? "none"}.`);
  }
  const { tags } = body;
  if (Array.isArray(tags) && !tags.some((tag) => memory.tags.includes(tag as string))) found.push("It has none of the tags.");
  const status = statusOf(memory);
  const wanted = typeof body["status"] === "string" ? body["status"] : "current";
  if (wanted !== "all" && wanted !== status)
    found.push(`It is ${status}${memory.superseded_by === null ? "" : ": superseded"}, the search is for ${wanted} ones.`);
  return found;
}

/** The search among the memories of the same moment, of which there are few. */
async function scoreOf({ id, created_at }: Memory, { filter, ...body }: WhyNotProps["body"]): Promise<Match | undefined> {
  const moment = { created_at: { $gte: created_at, $lte: created_at } };
  const { data } = await api.search({ ...body, filter: filter === undefined ? moment : { $and: [filter, moment] } });
  return data.find((match) => match.id === id);
}

function scored({ score, explanation }: Match, threshold: number): string {
  const parts = explanation && ` (meaning ${explanation.semantic.toFixed(2)}, words ${explanation.lexical.toFixed(2)})`;
  return `Its score is ${score.toFixed(2)}${parts ?? ""}, below the threshold of ${threshold.toFixed(2)}.`;
}
