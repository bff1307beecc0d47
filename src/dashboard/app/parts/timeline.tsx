/**
 * The timeline of a session: a spine on which every version of the state is a stone, with turns, memories, what was found for a query, and
 * forks in between.
 *
 * It is read by pages and never as a whole: what is new is added at its end, and a link into the middle starts there.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import type { InfiniteData } from "@tanstack/query-core";
import { useEffect, useRef } from "preact/hooks";
import { api, type List, type Memory, type Session, type TimelineEntry, type Turn } from "../api.ts";
import { useCan, useMe } from "../access.ts";
import { changesOf } from "../changes.ts";
import { bare, idAt, neighbourOf } from "../ids.ts";
import { client, usePages, useQuery } from "../query.ts";
import { number, sourceOf } from "../words.ts";
import { Actor } from "./actor.tsx";
import { Changes } from "./changes.tsx";
import { useDraft } from "./draft.ts";
import { Json } from "./json.tsx";
import { Listed } from "./list.tsx";
import { LongText } from "./long-text.tsx";
import { RetrievalEntry } from "./retrieval.tsx";
import { deletedHere } from "./session-dialogs.tsx";
import { duration, Time } from "./time.tsx";

const PAGE = 50;
/** New entries that are asked for at once. After more than these the timeline begins again with the newest. */
const NEW_AT_ONCE = 100;
/** A page of new entries; its name begins so, and is no cursor. */
const NEW_PAGE = "new ";
/** A longer pause between two entries is shown. */
const GAP_SECONDS = 5 * 60;

interface TimelineProps {
  session: Session;
  /** One kind of entries; empty: all. */
  kind: string;
  order: "asc" | "desc";
  onRollBack: (version: number) => void;
  onFork: (version: number) => void;
}

export function Timeline(props: TimelineProps) {
  const { session, kind, order } = props;
  const target = useTarget();
  const start = useStart(session.id, target, order);
  const queryKey = ["timeline", session.id, kind, order, start.cursor];
  const pages = usePages<TimelineEntry>(
    queryKey,
    (after, signal) => {
      const cursor = after?.startsWith(NEW_PAGE) === true ? null : after;
      return api.timeline(session.id, { kinds: kind, order, limit: PAGE, starting_after: cursor ?? start.cursor }, signal);
    },
    { staleTime: Infinity, gcTime: 0, enabled: start.isKnown },
  );
  useNewEntries(queryKey, props, pages.data, start.cursor);
  const mayWrite = useCan("write");
  const current = useDraft(session.state_version);
  return (
    <>
      {start.cursor !== null && <StartsAtLink order={order} onForget={start.forget} />}
      <Listed
        pages={pages}
        noun="entries"
        dependsOn={[session.id, mayWrite, target, order]}
        empty={
          kind === "retrieval" ? (
            <p>
              Nothing here. What searches and contexts of this session find is logged while the setting <code>retrieval_log</code> is on.
            </p>
          ) : (
            <p>
              Nothing here. An agent logs a turn with <code>POST /v1/sessions/{session.id}/turns</code>.
            </p>
          )
        }
        element="ol"
        class="spine"
      >
        {(entries, before) =>
          entries.flatMap((entry, index) => [
            <Gap key={`gap-${entry.id}`} before={entries[index - 1] ?? before} after={entry} order={order} />,
            <Entry
              key={entry.id}
              entry={entry}
              sessionId={session.id}
              current={current}
              target={target}
              mayWrite={mayWrite}
              onRollBack={props.onRollBack}
              onFork={props.onFork}
            />,
          ])
        }
      </Listed>
    </>
  );
}

function StartsAtLink({ order, onForget }: { order: "asc" | "desc"; onForget: () => void }) {
  return (
    <p class="row">
      <span class="quiet">This starts at the linked entry.</span>
      <button class="small" onClick={onForget}>
        {order === "desc" ? "From the newest" : "From the oldest"}
      </button>
    </p>
  );
}

/**
 * Start of the timeline: at its end, or at the entry that the address names, however far that is. Ids rise with time, so that
 * the cursor before an entry can be told from its id; a version has none, but a time.
 */
function useStart(sessionId: string, target: string, order: "asc" | "desc") {
  const [, version] = /^version-(\d{1,9})$/.exec(target) ?? [];
  const [, record] = /^(?:turn|mem|sess|ret)_([0-9A-Za-z]{12})$/.exec(target) ?? [];
  const forgotten = useSignal("");
  const isAsked = target !== forgotten.value;
  const named = useQuery({
    queryKey: ["version", sessionId, Number(version)],
    staleTime: Infinity,
    enabled: isAsked && version !== undefined,
    queryFn: ({ signal }) => api.version(sessionId, Number(version), signal),
  });
  const at = record ?? (named.data && idAt(Date.parse(named.data.created_at) + (order === "desc" ? 1 : 0)));
  const cursor = isAsked && at !== undefined ? `entry_${neighbourOf(at, order === "desc" ? 1 : -1)}` : null;
  return {
    cursor,
    /** A version that is not there begins nowhere. */
    isKnown: !isAsked || version === undefined || named.data !== undefined || named.isError,
    forget: () => void (forgotten.value = target),
  };
}

type Timelined = InfiniteData<List<TimelineEntry>>;

/** Adds what is new whenever the session has changed, at the end of the timeline that is in view. */
function useNewEntries(
  queryKey: readonly unknown[],
  { session, kind, order }: TimelineProps,
  read: Timelined | undefined,
  from: string | null,
): void {
  // Two changes can have one time.
  const now = [session.updated_at, session.turn_count, session.memory_count, session.state_version].join(" ");
  const seen = useRef(now);
  const isRead = read !== undefined;
  const newest = order === "desc" ? read?.pages[0]?.data[0] : read?.pages.at(-1)?.data.at(-1);
  // A timeline that begins in the middle, or is not read to its end, has no end in view.
  const isEndRead = isRead && (order === "desc" ? from === null : read.pages.at(-1)?.has_more === false);
  const look = () => {
    const again = () => void client.resetQueries({ queryKey, exact: true });
    if (newest === undefined) {
      again();
      return;
    }
    const isAnyOpen = kind === "retrieval" && read?.pages.some(({ data }) => data.some(isOpen));
    const kinds = isAnyOpen ? "retrieval,turn" : kind;
    const query = { kinds, order: "asc", limit: NEW_AT_ONCE, starting_after: newest.id };
    void api.timeline(session.id, query).then(
      (found) => {
        if (found.has_more && order === "desc") again();
        else {
          const shown = { ...found, data: found.data.filter((entry) => kind === "" || entry.kind === kind) };
          const add = order === "desc" ? newestFirst : oldestFirst;
          client.setQueryData<Timelined>(queryKey, (known) => known && add(withNextTurn(known, found), shown));
        }
      },
      // The next change tries again.
      () => undefined,
    );
  };
  useEffect(() => {
    // A change while the first page is being read may be missing in it.
    if (!isRead || now === seen.current) return;
    seen.current = now;
    if (isEndRead) look();
  }, [now, isRead]);
  useUnannounced(session.id, kind, isEndRead ? (newest?.id ?? null) : undefined, look);
}

/**
 * Asks now and then for what leaves no trace of the session, so that no stream tells of it: what was found in it, and its forks.
 *
 * @param after - the newest entry that is shown; null where there is none, undefined while what is new has no place
 */
function useUnannounced(sessionId: string, kind: string, after: string | null | undefined, onNew: () => void): void {
  const latest = useRef({ sessionId, kind, after, onNew });
  latest.current = { sessionId, kind, after, onNew };
  const perMinute = useMe()?.rate_limit.per_minute ?? 1;
  const everyMs = Math.max(UNANNOUNCED_MS, 60_000 / (perMinute * UNANNOUNCED_SHARE));
  useEffect(() => {
    const ask = async () => {
      const { sessionId, kind, after } = latest.current;
      const kinds = UNANNOUNCED.filter((one) => kind === "" || kind === one).join();
      if (kinds === "" || after === undefined || document.hidden || document.querySelector("dialog[open]") !== null) return;
      if (deletedHere.has(sessionId)) return;
      const found = await api.timeline(sessionId, { kinds, order: "asc", limit: 1, starting_after: after }).catch(() => undefined);
      if (found !== undefined && found.data.length > 0 && latest.current.after === after) latest.current.onNew();
    };
    const timer = setInterval(() => void ask(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}
const UNANNOUNCED = ["retrieval", "fork"];
const UNANNOUNCED_MS = 3_000;
/** The share of the requests a minute of the key that this may take. */
const UNANNOUNCED_SHARE = 0.1;

/** Checks whether no turn has come yet of what was found. */
function isOpen({ retrieval }: TimelineEntry): boolean {
  return retrieval?.turn_id === null;
}

/** Retrievals that led to no turn before have led to the first new one. */
function withNextTurn(known: Timelined, { data }: List<TimelineEntry>): Timelined {
  const turn = data.find((entry) => entry.turn !== undefined)?.turn;
  if (turn === undefined) return known;
  const next = (entry: TimelineEntry) =>
    isOpen(entry) && entry.retrieval ? { ...entry, retrieval: { ...entry.retrieval, turn_id: turn.id } } : entry;
  const pages = known.pages.map((page) => (page.data.some(isOpen) ? { ...page, data: page.data.map(next) } : page));
  return { ...known, pages };
}

/** New entries get a page of their own once the first one is long, so that no entry is drawn again for each new one for ever. */
function newestFirst({ pages, pageParams }: Timelined, { data }: List<TimelineEntry>): Timelined {
  const [first, ...older] = pages as [List<TimelineEntry>, ...List<TimelineEntry>[]];
  const added = withoutKnown(data, first.data).toReversed();
  const [newest] = added;
  if (newest === undefined) return { pages, pageParams };
  if (first.data.length + added.length <= PAGE + NEW_AT_ONCE) {
    return { pages: [{ ...first, data: [...added, ...first.data] }, ...older], pageParams };
  }
  return {
    pages: [{ data: added, has_more: true, last_id: added.at(-1)?.id ?? null }, ...pages],
    pageParams: [NEW_PAGE + newest.id, ...pageParams],
  };
}

/** The last page grows. Where more has come than was asked for, scrolling asks for the rest. */
function oldestFirst({ pages, pageParams }: Timelined, found: List<TimelineEntry>): Timelined {
  const last = pages.at(-1) as List<TimelineEntry>;
  const added = withoutKnown(found.data, last.data);
  const grown = { data: [...last.data, ...added], has_more: found.has_more, last_id: added.at(-1)?.id ?? last.last_id };
  return { pages: [...pages.slice(0, -1), grown], pageParams };
}

/** Two looks at once can find the same. */
function withoutKnown(found: readonly TimelineEntry[], nearest: readonly TimelineEntry[]): TimelineEntry[] {
  const known = new Set(nearest.map(({ id }) => id));
  const added = found.filter(({ id }) => !known.has(id));
  for (const { id } of added) arrived.add(id);
  return added;
}

/** Ids of what came while it was looked at, which is marked for a moment. */
const arrived = new Set<string>();

/** The entry that the address names after `#`. */
function useTarget(): string {
  const target = useSignal(location.hash.slice(1));
  useEffect(() => {
    const look = () => (target.value = location.hash.slice(1));
    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  return target.value;
}

interface EntryProps {
  entry: TimelineEntry;
  sessionId: string;
  /** The number of the current version; only versions look at it, so that a new one does not draw all entries again. */
  current: Signal<number>;
  target: string;
  mayWrite: boolean;
  onRollBack: (version: number) => void;
  onFork: (version: number) => void;
}

/** End of the address of an entry: the id of its record, or the number of a version, which has none. */
export function anchorOf({ kind, id, version }: TimelineEntry): string {
  return version === undefined ? `${PREFIXES[kind]}_${bare(id)}` : `version-${version.version}`;
}
const PREFIXES = { turn: "turn", memory: "mem", retrieval: "ret", fork: "sess", version: "version" } as const;

function createdAt({ turn, version, memory, retrieval, fork }: TimelineEntry): number {
  return Date.parse(turn?.occurred_at ?? (turn ?? version ?? memory ?? retrieval ?? fork)?.created_at ?? "");
}

function Entry(props: EntryProps) {
  const { entry, target } = props;
  const element = useRef<HTMLLIElement>(null);
  const anchor = anchorOf(entry);
  const isTarget = anchor === target;
  useEffect(() => {
    if (!isTarget) return;
    element.current?.scrollIntoView({ block: "center" });
    element.current?.focus({ preventScroll: true });
  }, [isTarget]);
  const marks = [isTarget ? "target" : "", arrived.has(entry.id) ? "arrived" : ""].join(" ");
  return (
    <li ref={element} id={anchor} class={`${entry.kind} ${marks}`} data-row tabIndex={-1}>
      <EntryContent {...props} />
    </li>
  );
}

function EntryContent(props: EntryProps) {
  const { turn, version, memory, retrieval, fork } = props.entry;
  if (turn !== undefined) return <TurnEntry turn={turn} />;
  if (version !== undefined) return <VersionEntry {...props} version={version} />;
  if (memory !== undefined) return <MemoryEntry memory={memory} />;
  if (retrieval !== undefined) return <RetrievalEntry retrieval={retrieval} />;
  if (fork === undefined) return null;
  return (
    <p>
      <ForkSign />
      Forked at state {number(fork.version)} to{" "}
      <a href={`/dashboard/sessions/${fork.session_id}`}>
        <code>{fork.session_id}</code>
      </a>{" "}
      <Time at={fork.created_at} />
    </p>
  );
}

function ForkSign() {
  return (
    <svg class="fork-sign" viewBox="0 0 24 20" width="24" height="20" aria-hidden="true">
      <path d="M 1 0 V 20 M 1 2 C 1 12 8 10 20 10" />
    </svg>
  );
}

function VersionEntry({
  version: made,
  sessionId,
  current,
  mayWrite,
  onRollBack,
  onFork,
}: EntryProps & { version: NonNullable<TimelineEntry["version"]> }) {
  const { version, actor, created_at, reasoning, state_diff } = made;
  const isCurrent = version === current.value;
  const compare = `/dashboard/compare?${new URLSearchParams({ a: `${sessionId}:${version}`, b: `${sessionId}:${current.value}` })}`;
  return (
    <>
      <span class="stone" aria-hidden="true">
        {version}
      </span>
      <div class="entry-head">
        <h2>
          <a href={`#version-${version}`}>State {number(version)}</a>
        </h2>
        <span class="quiet">
          {sourceOf(made)} · <Actor prefix={actor} /> · <Time at={created_at} />
        </span>
        <div class="row actions">
          {mayWrite && !isCurrent && (
            <button class="small" onClick={() => onRollBack(version)}>
              Roll back to here
            </button>
          )}
          {mayWrite && (
            <button class="small" onClick={() => onFork(version)}>
              Fork from here
            </button>
          )}
          {!isCurrent && (
            <a class="button small" href={compare}>
              Compare with {number(current.value)}
            </a>
          )}
        </div>
      </div>
      {reasoning !== undefined && reasoning !== "" && (
        <blockquote>
          <LongText text={reasoning} />
        </blockquote>
      )}
      {state_diff === null ? (
        <p class="quiet">The previous version is no longer kept.</p>
      ) : (
        <Changes changes={changesOf(state_diff)} unchanged={version === 0 ? "Empty." : "Nothing changed."} />
      )}
    </>
  );
}

/** Time of a turn, and its origin. */
function TurnFacts({ turn: { external_id, occurred_at, forked_from, created_at } }: { turn: Turn }) {
  return (
    <span class="quiet">
      {forked_from !== undefined && (
        <>
          of <a href={`/dashboard/sessions/${forked_from}`}>the session it was forked from</a> ·{" "}
        </>
      )}
      {external_id !== undefined && (
        <>
          <code>{external_id}</code> ·{" "}
        </>
      )}
      <Time at={occurred_at ?? created_at} />
      {occurred_at !== undefined && (
        <>
          {" "}
          · logged <Time at={created_at} />
        </>
      )}
    </span>
  );
}

function TurnEntry({ turn }: { turn: Turn }) {
  const { input, output, reasoning, state_before, state_after, metadata } = turn;
  return (
    <>
      <div class="entry-head">
        <h2>
          <a href={`#${turn.id}`}>Turn {number(turn.turn_number)}</a>
        </h2>
        <TurnFacts turn={turn} />
      </div>
      <dl class="exchange">
        <dt>in</dt>
        <dd>
          <Said type={input.type} text={input.content} />
        </dd>
        <dt>out</dt>
        <dd>
          <Said type={output.type} text={output.content} />
        </dd>
      </dl>
      <div class="row folded">
        {reasoning !== undefined && reasoning !== "" && (
          <details>
            <summary>Reasoning</summary>
            <LongText text={reasoning} />
          </details>
        )}
        {(state_before !== null || state_after !== null) && (
          <details>
            <summary>Snapshots</summary>
            {state_before !== null && <Json value={state_before} label="State before" />}
            {state_after !== null && <Json value={state_after} label="State after" />}
          </details>
        )}
        {Object.keys(metadata).length > 0 && (
          <details>
            <summary>Metadata</summary>
            <Json value={metadata} label="Metadata" />
          </details>
        )}
      </div>
    </>
  );
}

function Said({ type, text }: { type: string; text: string }) {
  return (
    <>
      {type === "error" && <span class="kind bad">✗ error</span>}
      {type !== "text" && type !== "error" && <span class="kind">{type}</span>}
      <LongText text={text} />
    </>
  );
}

function MemoryEntry({ memory }: { memory: Memory }) {
  return (
    <>
      <div class="entry-head">
        <h2>
          <a href={`#${memory.id}`}>Memory</a>
        </h2>
        <span class="quiet">
          <span class="kind">{memory.type}</span> {memory.tags.map((tag) => `#${tag} `)}· <Time at={memory.created_at} />
        </span>
      </div>
      <LongText text={memory.content} />
    </>
  );
}

interface GapProps {
  before: TimelineEntry | undefined;
  after: TimelineEntry;
  order: "asc" | "desc";
}

/** Time without events between two entries. */
function Gap({ before, after, order }: GapProps) {
  if (before === undefined) return null;
  const seconds = Math.abs(createdAt(after) - createdAt(before)) / 1000;
  if (seconds < GAP_SECONDS) return null;
  return (
    <li class="gap quiet">
      {duration(seconds)} {order === "asc" ? "later" : "earlier"}
    </li>
  );
}
