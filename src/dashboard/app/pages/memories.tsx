/**
 * Memories: all of them with filters, or those that a search finds, and why. The search is what an agent gets, so that one can try
 * a query, a threshold and filters before an agent uses them.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { api, CairnError, type Memory } from "../api.ts";
import { useCan } from "../access.ts";
import { Filters, JsonFilter, NameFilter, TextFilter, useFilters, type FiltersInUrl } from "../parts/filters.tsx";
import { parsedObject } from "../parts/json.tsx";
import { Listed, Loaded } from "../parts/list.tsx";
import { Forget, forgetFilter } from "../parts/forget.tsx";
import { LongText } from "../parts/long-text.tsx";
import { MemoryFacts, type MemoryAction } from "../parts/memory-facts.tsx";
import { AddMemory, DeleteMemory, EditMemory, MEMORY_TYPES, SupersedeMemory } from "../parts/memory-dialogs.tsx";
import { Page } from "../parts/page.tsx";
import { Matches } from "../parts/matches.tsx";
import { SearchField } from "../parts/search-field.tsx";
import { toast } from "../parts/toast.tsx";
import { WhyNot } from "../parts/why-not.tsx";
import { usePages, useQuery } from "../query.ts";

const FILTERS = ["user_id", "agent_id", "session_id", "type", "tags", "status", "filter"];

type Opened = { kind: "add" } | { kind: "forget"; filter: object } | { kind: "edit" | "supersede" | "delete"; memory: Memory } | null;

export function Memories() {
  const { query } = useLocation();
  const filters = useFilters("memories", FILTERS);
  const opened = useSignal<Opened>(null);
  const mayWrite = useCan("write");
  const text = query["q"] ?? "";
  const search = useSearch(text, filters);
  return (
    <Page title="Memories" actions={mayWrite && <Actions opened={opened} filter={forgetFilter(filters.values)} />}>
      <SearchForm text={text} filters={filters} fault={faultOf(search.result.error, "filter")} />
      {text === "" ? (
        <MemoryList filters={filters} mayWrite={mayWrite} opened={opened} />
      ) : (
        <SearchResults search={search} filters={filters} threshold={query["threshold"]} mayWrite={mayWrite} opened={opened} />
      )}
      <Dialogs opened={opened} sessionId={filters.values["session_id"]} />
    </Page>
  );
}

/** Forgetting needs a filter: there is no way to delete everything with two clicks. */
function Actions({ opened, filter }: { opened: Signal<Opened>; filter: object | undefined }) {
  return (
    <>
      {filter !== undefined && (
        <button class="danger" onClick={() => (opened.value = { kind: "forget", filter })}>
          Forget …
        </button>
      )}
      <button onClick={() => (opened.value = { kind: "add" })}>Add a memory</button>
    </>
  );
}

/** Returns the server's complaint about a field, if that is the error. */
function faultOf(error: Error | null, name: string): string | undefined {
  return error instanceof CairnError && error.param?.split(".")[0] === name ? error.message : undefined;
}

function SearchForm({ text, filters, fault }: { text: string; filters: FiltersInUrl; fault: string | undefined }) {
  return (
    <>
      <SearchField
        text={text}
        label="Search memories"
        placeholder="Search as an agent would: what may she not eat"
        onSearch={(q) => filters.set({ q })}
      />
      <Filters filters={filters}>
        <NameFilter label="User" name="user_id" kind="users" filters={filters} />
        <NameFilter label="Agent" name="agent_id" kind="agents" filters={filters} />
        <TextFilter label="Session" name="session_id" filters={filters} />
        <TextFilter label="Type" name="type" filters={filters} suggestions={MEMORY_TYPES} />
        <TextFilter label="Any of these tags" name="tags" filters={filters} />
        <TextFilter label="Status" name="status" filters={filters} suggestions={["current", "past", "future", "all"]} />
        <JsonFilter label="Filter" name="filter" placeholder='{"importance": {"$gte": 0.5}}' filters={filters} fault={fault} />
      </Filters>
    </>
  );
}

/** Searches as an agent would; without a text nothing is asked. */
function useSearch(text: string, filters: FiltersInUrl) {
  const { tags, filter, ...others } = filters.values;
  const body = {
    query: text,
    ...others,
    ...(tags !== undefined && { tags: tags.split(",").map((tag) => tag.trim()) }),
    ...(filter !== undefined && { filter: parsedObject(filter).value }),
  };
  const queryFn = ({ signal }: { signal: AbortSignal }) => api.search(body, signal);
  return { body, result: useQuery({ queryKey: ["memories", "search", body], enabled: text !== "", queryFn }) };
}

interface SearchResultsProps extends MemoryListProps {
  search: ReturnType<typeof useSearch>;
  threshold: string | undefined;
}

function SearchResults({ search: { body, result }, filters, threshold, mayWrite, opened }: SearchResultsProps) {
  /** A result does not hold all of its memory. */
  const open = (kind: MemoryAction, id: string) => {
    api.memory(id).then(
      (memory) => (opened.value = { kind, memory }),
      (error: Error) => toast(error.message),
    );
  };
  return (
    <Loaded result={result}>
      {({ data, retrieval_id: retrievalId }) => (
        <>
          <WhyNot body={body} threshold={Number(threshold ?? DEFAULT_THRESHOLD)} />
          <Matches
            key={retrievalId}
            matches={data}
            retrievalId={retrievalId}
            body={body}
            threshold={Number(threshold ?? DEFAULT_THRESHOLD)}
            onOpen={mayWrite ? open : undefined}
            onThreshold={(threshold) => filters.set({ threshold: threshold === DEFAULT_THRESHOLD ? "" : String(threshold) })}
          />
        </>
      )}
    </Loaded>
  );
}
/** That of the API. */
const DEFAULT_THRESHOLD = 0.7;

interface MemoryListProps {
  filters: FiltersInUrl;
  mayWrite: boolean;
  opened: Signal<Opened>;
}

function MemoryList({ filters, mayWrite, opened }: MemoryListProps) {
  const listed = filters.values;
  const pages = usePages(["memories", "list", listed], (after, signal) => api.memories({ ...listed, starting_after: after }, signal));
  return (
    <Listed
      pages={pages}
      noun="memories"
      dependsOn={[mayWrite]}
      empty={
        <p>
          No memory {filters.isSet ? "matches" : "yet"}. An agent adds one with <code>POST /v1/memory</code>.
        </p>
      }
      element="ul"
      class="cards"
    >
      {(memories) =>
        memories.map((memory) => (
          <MemoryItem key={memory.id} memory={memory} mayWrite={mayWrite} onOpen={(next) => (opened.value = next)} />
        ))
      }
    </Listed>
  );
}

function MemoryItem({ memory, mayWrite, onOpen }: { memory: Memory; mayWrite: boolean; onOpen: (opened: Opened) => void }) {
  return (
    <li data-row tabIndex={-1}>
      <LongText text={memory.content} />
      <MemoryFacts memory={memory} onOpen={mayWrite ? (kind) => onOpen({ kind, memory }) : undefined}>
        {!memory.vector_available && <span class="quiet">no vector: not found by meaning</span>}
      </MemoryFacts>
    </li>
  );
}

function Dialogs({ opened, sessionId }: { opened: Signal<Opened>; sessionId: string | undefined }) {
  const close = () => (opened.value = null);
  if (opened.value === null) return null;
  if (opened.value.kind === "forget") return <Forget filter={opened.value.filter} onClose={close} />;
  if (opened.value.kind === "add") return <AddMemory sessionId={sessionId ?? ""} onClose={close} />;
  const { kind, memory } = opened.value;
  if (kind === "edit") return <EditMemory memory={memory} onClose={close} />;
  if (kind === "supersede") return <SupersedeMemory memory={memory} onClose={close} />;
  return <DeleteMemory memory={memory} onClose={close} />;
}
