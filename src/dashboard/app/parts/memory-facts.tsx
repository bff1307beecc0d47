/**
 * Facts of a memory besides its text, as one line, with what can be done to it.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Memory } from "../api.ts";
import { MemoryHistory } from "./memory-history.tsx";
import { Time } from "./time.tsx";

type Validity = Pick<Memory, "valid_from" | "valid_until" | "superseded_by" | "superseded_at">;

/** A search result says nothing of these: it is current. */
export function statusOf({
  valid_from: from,
  valid_until: until,
  superseded_at: superseded,
}: Partial<Validity>): "current" | "past" | "future" {
  const hasCome = (at: string | null | undefined) => typeof at === "string" && Date.parse(at) <= Date.now();
  if (typeof from === "string" && !hasCome(from)) return "future";
  return hasCome(until) || hasCome(superseded) ? "past" : "current";
}

/** Changes of a memory that a person makes. */
export type MemoryAction = "edit" | "supersede" | "delete";

interface MemoryFactsProps {
  memory: Pick<Memory, "id" | "type" | "tags" | "session_id" | "user_id" | "agent_id" | "created_at"> &
    Partial<Pick<Memory, "external_id" | "pinned" | "expires_at" | "supersedes" | keyof Validity>>;
  /** Left out for a key that may not change it. */
  onOpen?: ((kind: MemoryAction) => void) | undefined;
  /** More that is known. */
  children?: ComponentChildren;
}

export function MemoryFacts({ memory, onOpen, children }: MemoryFactsProps) {
  const { id, type, tags, session_id: session, user_id: user, agent_id: agent, created_at, external_id: name, pinned = false } = memory;
  const status = statusOf(memory);
  return (
    <div class="row meta">
      <span class="kind">{type}</span>
      {pinned && <span class="kind">pinned</span>}
      {status !== "current" && <span class="kind">{status}</span>}
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
      {user !== null && <a href={`/dashboard/users/${encodeURIComponent(user)}`}>{user}</a>}
      {agent !== null && <span>{agent}</span>}
      <Time at={created_at} />
      {typeof name === "string" && <code>{name}</code>}
      <Times memory={memory} />
      {children}
      <Actions id={id} onOpen={onOpen} />
    </div>
  );
}

/** From when until when it holds and is there, and its neighbours in time. */
function Times({ memory }: Pick<MemoryFactsProps, "memory">) {
  const { expires_at: end, valid_from: from, valid_until: until, supersedes = [], superseded_by: by } = memory;
  const times = { "valid from": from, "valid until": until, expires: end };
  return (
    <>
      {Object.entries(times).map(
        ([says, at]) =>
          typeof at === "string" && (
            <span key={says}>
              {says} <Time at={at} />
            </span>
          ),
      )}
      {typeof by === "string" && (
        <a href={`/dashboard/go/${by}`}>
          superseded by <code>{by}</code>
        </a>
      )}
      {supersedes.map((old) => (
        <a key={old} href={`/dashboard/go/${old}`}>
          supersedes <code>{old}</code>
        </a>
      ))}
    </>
  );
}

function Actions({ id, onOpen }: Pick<MemoryFactsProps, "onOpen"> & { id: string }) {
  const showsHistory = useSignal(false);
  return (
    <>
      <span class="row actions">
        <button class="small" onClick={() => (showsHistory.value = true)}>
          History
        </button>
        {onOpen && (
          <>
            <button class="small" onClick={() => onOpen("edit")}>
              Edit
            </button>
            <button class="small" onClick={() => onOpen("supersede")}>
              Supersede
            </button>
            <button class="small danger" onClick={() => onOpen("delete")}>
              Delete
            </button>
          </>
        )}
      </span>
      {showsHistory.value && <MemoryHistory id={id} onClose={() => (showsHistory.value = false)} />}
    </>
  );
}
