/**
 * One search for everything: an id, a name that was given, users, and words in turns and memories.
 *
 * @module
 */
import { useLocation } from "preact-iso";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { QueryObserverResult } from "@tanstack/query-core";
import { screenFor } from "../ids.ts";
import { boundTo, useMe } from "../access.ts";
import { api, type List } from "../api.ts";
import { FoundTurn } from "../parts/found-turn.tsx";
import { Loaded } from "../parts/list.tsx";
import { LongText } from "../parts/long-text.tsx";
import { MemoryFacts } from "../parts/memory-facts.tsx";
import { Page } from "../parts/page.tsx";
import { SearchField } from "../parts/search-field.tsx";
import { SessionTitle } from "../parts/session-title.tsx";
import { Time } from "../parts/time.tsx";
import { useQuery } from "../query.ts";

const SHOWN = 5;

export function Find() {
  const { query, route } = useLocation();
  const text = query["q"] ?? "";
  useEffect(() => {
    if (text === "") document.querySelector<HTMLElement>("main [type=search]")?.focus();
  }, [text]);
  return (
    <Page title="Search">
      <SearchField
        text={text}
        label="Search all"
        placeholder="An id, a name, a user, or words"
        onSearch={(text) => route(`/dashboard/${screenFor(text)}`)}
      />
      {text === "" ? (
        <p class="quiet">Finds ids, external ids of sessions, users, and words in turns and memories.</p>
      ) : (
        <Found key={text} text={text} />
      )}
    </Page>
  );
}

/** Everything that is about a text, a few of each kind. */
function useFound(text: string) {
  const me = useMe();
  const seesUsers = me !== undefined && boundTo(me) === null;
  const sessions = useQuery({
    queryKey: ["find", "sessions", text],
    queryFn: ({ signal }) => api.sessions({ external_id: text, include: "first_input,rollback_count" }, signal, SHOWN),
  });
  const users = useQuery({
    queryKey: ["find", "users", text],
    enabled: seesUsers,
    queryFn: ({ signal }) => api.named("users", { prefix: text }, signal, SHOWN),
  });
  const turns = useQuery({
    queryKey: ["find", "turns", text],
    queryFn: ({ signal }) => api.turns({ q: text }, signal, SHOWN),
  });
  const memories = useQuery({
    queryKey: ["find", "memories", text],
    queryFn: ({ signal }) => api.searchFew(text, SHOWN, signal),
  });
  return { seesUsers, sessions, users, turns, memories };
}

function Found({ text }: { text: string }) {
  const { seesUsers, sessions, users, turns, memories } = useFound(text);
  const words = new URLSearchParams({ q: text });
  return (
    <>
      <Part name="Sessions" result={sessions} none="No session has this external id.">
        {(session) => (
          <li key={session.id} data-row tabIndex={-1}>
            <SessionTitle session={session} />
            <Time at={session.updated_at} />
          </li>
        )}
      </Part>
      {seesUsers && (
        <Part name="Users" result={users} none="No user's name begins so.">
          {({ id }) => (
            <li key={id} data-row tabIndex={-1}>
              <a href={`/dashboard/users/${encodeURIComponent(id)}`}>{id}</a>
            </li>
          )}
        </Part>
      )}
      <Part
        name="Turns"
        result={turns}
        none="No turn has all of these words."
        all={<a href={`/dashboard/sessions?${words}`}>All turns with these words</a>}
      >
        {(turn) => <FoundTurn key={turn.id} turn={turn} words={text} />}
      </Part>
      <Part
        name="Memories"
        result={memories}
        none="No memory is about this."
        class="cards"
        all={<a href={`/dashboard/memories?${words}`}>All memories, and why each is found</a>}
      >
        {(memory) => (
          <li key={memory.id} data-row tabIndex={-1}>
            <LongText text={memory.content} />
            <MemoryFacts memory={memory} />
          </li>
        )}
      </Part>
    </>
  );
}

interface PartProps<Item> {
  name: string;
  result: QueryObserverResult<Pick<List<Item>, "data">>;
  none: string;
  class?: string;
  /** Leads to the rest. */
  all?: ComponentChildren;
  children: (item: Item) => ComponentChildren;
}

function Part<Item>({ name, result, none, class: shape = "rows", all, children }: PartProps<Item>) {
  return (
    <section class="part" aria-label={name}>
      <h2>{name}</h2>
      <Loaded result={result}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="quiet">{none}</p>
          ) : (
            <>
              <ul class={shape}>{data.map(children)}</ul>
              {all}
            </>
          )
        }
      </Loaded>
    </section>
  );
}
