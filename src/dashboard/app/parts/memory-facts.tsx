/**
 * What is known of a memory besides its text, as one line, with what can be done to it.
 *
 * @module
 */
import type { ComponentChildren } from "preact";
import type { Memory } from "../api.ts";
import { Time } from "./time.tsx";

interface MemoryFactsProps {
  memory: Pick<Memory, "id" | "type" | "tags" | "session_id" | "created_at">;
  /** Left out for a key that may not change it. */
  onOpen?: ((kind: "edit" | "delete") => void) | undefined;
  /** More that is known. */
  children?: ComponentChildren;
}

export function MemoryFacts({ memory: { id, type, tags, session_id: session, created_at }, onOpen, children }: MemoryFactsProps) {
  return (
    <div class="row meta">
      <span class="kind">{type}</span>
      {tags.map((tag) => (
        <span key={tag} class="tag">
          #{tag}
        </span>
      ))}
      <a href={`/dashboard/sessions/${session}#${id}`}>
        <code>{session}</code>
      </a>
      <Time at={created_at} />
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
