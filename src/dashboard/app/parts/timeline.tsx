/**
 * The timeline of a session: a spine on which every version of the state is a stone, with turns, memories, what was found for a query, and
 * forks in between.
 *
 * It is read by pages and never as a whole: what is new is added at its end, and a link into the middle starts there.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { InfiniteData } from "@tanstack/query-core";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { api, type List, type Session, type TimelineEntry } from "../api.ts";
import { useCan, useMe } from "../access.ts";
import { idAt, neighbourOf } from "../ids.ts";
import { client, usePages, useQuery } from "../query.ts";
import { useDraft } from "./draft.ts";
import { Listed } from "./list.tsx";
import { deletedHere } from "./session-dialogs.tsx";
import { duration } from "./time.tsx";
import { arrived, Entry } from "./timeline-entry.tsx";
import { UsageSums } from "./usage.tsx";

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
      const query = { kinds: kind, order, status: "all", limit: PAGE, starting_after: cursor ?? start.cursor };
      return api.timeline(session.id, query, signal);
    },
    { staleTime: Infinity, gcTime: 0, enabled: start.isKnown },
  );
  useNewEntries(queryKey, props, pages.data, start.cursor);
  const mayWrite = useCan("write");
  const current = useDraft(session.state_version);
  return (
    <>
      <Sums pages={pages.data?.pages ?? NO_PAGES} isFromMiddle={start.cursor !== null} />
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
              isJoined={isJoined(entries[index - 1], entry, order)}
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

const NO_PAGES: readonly List<TimelineEntry>[] = [];

/** Tokens, time and cost of the turns that were read. */
function Sums({ pages, isFromMiddle }: { pages: readonly List<TimelineEntry>[]; isFromMiddle: boolean }) {
  const turns = useMemo(() => pages.flatMap(({ data }) => data.flatMap(({ turn }) => turn ?? [])), [pages]);
  return <UsageSums turns={turns} isAll={!isFromMiddle && pages.at(-1)?.has_more === false} />;
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
  const [, time] = /^at-(\d{1,14})$/.exec(target) ?? [];
  // Of a time the whole millisecond is meant.
  const ms = time === undefined ? named.data && Date.parse(named.data.created_at) : Number(time);
  const at = record ?? (ms === undefined ? undefined : idAt(ms + (order === "desc" ? 1 : 0)));
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
  const turnsShown = useRef(session.turn_count);
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
    // A rollback is a version.
    const kinds = isAnyOpen ? "retrieval,turn" : kind === "turn" ? "turn,version" : kind;
    const query = { kinds, order: "asc", status: "all", limit: NEW_AT_ONCE, starting_after: newest.id };
    const before = turnsShown.current;
    turnsShown.current = session.turn_count;
    void api.timeline(session.id, query).then(
      (found) => {
        const isAnyHidden = before !== session.turn_count && found.data.some(isRollback);
        if (isAnyHidden || (found.has_more && order === "desc")) again();
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

function isRollback({ version }: TimelineEntry): boolean {
  return version?.source === "rollback";
}

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

function createdAt({ turn, version, memory, retrieval, fork }: TimelineEntry): number {
  return Date.parse(turn?.occurred_at ?? memory?.occurred_at ?? (turn ?? version ?? memory ?? retrieval ?? fork)?.created_at ?? "");
}

/** Checks whether an entry is drawn as one card with the one above it. */
function isJoined(above: TimelineEntry | undefined, entry: TimelineEntry, order: "asc" | "desc"): boolean {
  if (above === undefined) return false;
  const [earlier, later] = order === "asc" ? [above, entry] : [entry, above];
  return createdAt(later) - createdAt(earlier) < GAP_SECONDS * 1000 && belongTogether(earlier, later);
}

/** A retrieval belongs to the turn that came of it, and a new state to the turn before it. */
function belongTogether({ retrieval, turn }: TimelineEntry, later: TimelineEntry): boolean {
  if (retrieval !== undefined) return retrieval.turn_id !== null && retrieval.turn_id === (later.turn?.id ?? later.retrieval?.turn_id);
  return turn !== undefined && turn.input.type !== "tool_call" && later.version?.source === "update";
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
