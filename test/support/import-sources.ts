/**
 * A small export of each source of `cairn import --from`.
 *
 * @module
 */
export interface SmallExport {
  readonly from: string;
  readonly name: string;
  readonly content: string;
  /** What the import says of what is new, at first and again. */
  readonly first: string;
  readonly again: string;
}

const AT = 1_740_823_200;
const message = (role: string, content: object) => ({ id: `m-${role}`, author: { role }, create_time: AT, content });
const CHATGPT = {
  id: "c",
  title: "Shop",
  create_time: AT,
  current_node: "3",
  mapping: {
    1: { parent: null, message: message("system", { content_type: "user_editable_context", user_instructions: "Answer briefly." }) },
    2: { parent: "1", message: message("user", { content_type: "text", parts: ["Which database?"] }) },
    3: { parent: "2", message: message("assistant", { content_type: "text", parts: ["PostgreSQL."] }) },
  },
};

export const SMALL_EXPORTS: readonly SmallExport[] = [
  {
    from: "chatgpt",
    name: "conversations.json",
    content: JSON.stringify([CHATGPT]),
    first: "1 turn and 1 memory",
    again: "0 turns and 0 memories",
  },
  {
    from: "claude-ai",
    name: "memories.json",
    content: JSON.stringify([{ conversations_memory: "Runs a shop.\n\nSells tea." }]),
    first: "2 memories",
    again: "0 memories",
  },
  {
    from: "mem0",
    name: "mem0.json",
    content: JSON.stringify({ results: [{ id: "m-1", memory: "Drinks tea", user_id: "grace", run_id: "r-1" }] }),
    first: "1 memory",
    again: "0 memories",
  },
  { from: "memory-files", name: "CLAUDE.md", content: "- Use tabs.\n- Use English.\n", first: "2 memories", again: "0 memories" },
];
