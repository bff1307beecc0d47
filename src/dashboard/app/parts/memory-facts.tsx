/**
 * Facts of a memory besides its text, as one line, with what can be done to it.
 *
 * @module
 */
import type { ComponentChildren } from "preact";
import type { Memory } from "../api.ts";
import { Time } from "./time.tsx";

interface MemoryFactsProps {
  memory: Pick<Memory, "id" | "type" | "tags" | "session_id" | "user_id" | "agent_id" | "created_at"> &
    Partial<Pick<Memory, "external_id" | "expires_at" | "valid_until" | "superseded_by">>;
  /** Left out for a key that may not change it. */
  onOpen?: ((kind: "edit" | "delete") => void) | undefined;
  /** More that is known. */
  children?: ComponentChildren;
}

export function MemoryFacts({ memory, onOpen, children }: MemoryFactsProps) {
  const {
    id,
    type,
    tags,
    session_id: session,
    user_id: user,
    agent_id: agent,
    created_at,
    external_id: name,
    expires_at: end,
    valid_until: until,
    superseded_by: by,
  } = memory;
  return (
    <div class="row meta">
      <span class="kind">{type}</span>
      {tags.map((tag) => (
        <span key={tag} class="tag">
          #{tag}
        </span>
      ))}
      {session !== null && (
        <a href={`/dashboard/sessions/${session}#${id}`}>
          <code>{session}</code>
        </a>
      )}
      {session === null && user !== null && <a href={`/dashboard/users/${encodeURIComponent(user)}`}>{user}</a>}
      {session === null && agent !== null && <span>{agent}</span>}
      <Time at={created_at} />
      {typeof name === "string" && <code>{name}</code>}
      {typeof until === "string" && (
        <span>
          valid until <Time at={until} />
        </span>
      )}
      {typeof by === "string" && (
        <a href={`/dashboard/go/${by}`}>
          superseded by <code>{by}</code>
        </a>
      )}
      {typeof end === "string" && (
        <span>
          expires <Time at={end} />
        </span>
      )}
      {children}
      {onOpen && (
        <span class="row actions">
          <button class="small" onClick={() => onOpen("edit")}>
            Edit
          </button>
          <button class="small danger" onClick={() => onOpen("delete")}>
            Delete
          </button>
        </span>
      )}
    </div>
  );
}
