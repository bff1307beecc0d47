/**
 * One session: what was said, what the state became, what was remembered and what was found, in one line of time. From any point of
 * it one can roll back, fork and compare.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useLocation, useRoute } from "preact-iso";
import { useEffect, useRef } from "preact/hooks";
import { api, type Session as SessionRecord } from "../api.ts";
import { boundTo, useCan, useMe } from "../access.ts";
import { Choices } from "../parts/choices.tsx";
import { Id } from "../parts/copy.tsx";
import { Facts } from "../parts/facts.tsx";
import { useLive } from "../live.ts";
import { Json } from "../parts/json.tsx";
import { Jump } from "../parts/jump.tsx";
import { Loaded } from "../parts/list.tsx";
import { LiveSign } from "../parts/live-sign.tsx";
import { More } from "../parts/more.tsx";
import { Page } from "../parts/page.tsx";
import { deletedHere, DeleteSession, EditSession, EditState, Fork, RollBack } from "../parts/session-dialogs.tsx";
import { Scale } from "../parts/scale.tsx";
import { Time } from "../parts/time.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { changed, useQuery } from "../query.ts";
import { number } from "../words.ts";

const KINDS = { "": "All", turn: "Turns", version: "States", memory: "Memories", retrieval: "Found" };
const ORDERS = { desc: "Newest first", asc: "Oldest first" };

/** Dialog that is open. */
export type Opened = { kind: "state" } | { kind: "session" } | { kind: "delete" } | { kind: "rollback" | "fork"; version: number } | null;

export function Session() {
  const { params } = useRoute();
  const id = params["id"] ?? "";
  const result = useQuery({ queryKey: ["session", id], queryFn: ({ signal }) => api.session(id, signal) });
  const opened = useSignal<Opened>(null);
  const isLive = useReadAgain(id);
  return (
    <Page
      title={result.data?.external_id ?? id}
      heading={<Id id={id} />}
      within={["/dashboard/sessions", "Sessions"]}
      actions={result.data && <Actions session={result.data} opened={opened} />}
    >
      <Loaded result={result} missing={<Remains id={id} />}>
        {(session) => (
          <>
            <SessionFacts session={session} />
            <div class="session">
              <section aria-label="Timeline">
                <TimelineOf session={session} opened={opened} isLive={isLive.value} />
              </section>
              <CurrentState session={session} />
            </div>
            <Dialogs session={session} opened={opened} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** A session that has ended left traces, and may have left memories. */
function Remains({ id }: { id: string }) {
  const of = new URLSearchParams({ session_id: id });
  return (
    <p>
      What is left of it: <a href={`/dashboard/traces?${of}`}>traces</a>, <a href={`/dashboard/memories?${of}`}>memories</a>
    </p>
  );
}

/**
 * Reads the session again soon after it has changed: once, however much that was, and so seldom that what a busy agent does leaves
 * half of the requests that the key may make in a minute.
 */
function useReadAgain(id: string): Signal<boolean> {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const lastAt = useRef(-Infinity);
  const perMinute = useMe()?.rate_limit.per_minute ?? 1;
  const readSoon = () => {
    const wait = lastAt.current + (2 * REQUESTS_TO_READ * 60_000) / perMinute - performance.now();
    timer.current ??= setTimeout(
      () => {
        timer.current = undefined;
        lastAt.current = performance.now();
        if (!deletedHere.has(id)) void changed(["session", id]);
      },
      Math.max(READ_AGAIN_MS, wait),
    );
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return useLive({ session_id: id }, { traces: readSoon, start: readSoon });
}
const READ_AGAIN_MS = 150;
/** The session, and what is new in its timeline. */
const REQUESTS_TO_READ = 2;

function Actions({ session, opened }: { session: SessionRecord; opened: Signal<Opened> }) {
  const here = `${session.id}:${session.state_version}`;
  const compare = `/dashboard/compare?${new URLSearchParams({ a: `${session.id}:${Math.max(0, session.state_version - 1)}`, b: here })}`;
  return (
    <>
      {useCan("write") && <button onClick={() => (opened.value = { kind: "state" })}>Edit state</button>}
      <a class="button" href={compare}>
        Compare
      </a>
      {useCan("write") && (
        <More>
          <button onClick={() => (opened.value = { kind: "fork", version: session.state_version })}>Fork</button>
          <button onClick={() => (opened.value = { kind: "session" })}>Metadata and expiry</button>
          <button class="danger" onClick={() => (opened.value = { kind: "delete" })}>
            Delete
          </button>
        </More>
      )}
    </>
  );
}

function SessionFacts({ session }: { session: SessionRecord }) {
  const { forked_from: source, forked_version: version } = session.metadata;
  const me = useMe();
  const user = session.user_id ?? "";
  // A key that is bound to one does not see the screens of all users.
  const ofUser =
    me !== undefined && boundTo(me) === null
      ? `users/${encodeURIComponent(user.toWellFormed())}`
      : `sessions?${new URLSearchParams({ user_id: user })}`;
  return (
    <Facts
      facts={{
        "External id": session.external_id === undefined ? null : <code>{session.external_id}</code>,
        Agent: <a href={`/dashboard/sessions?${new URLSearchParams({ agent_id: session.agent_id })}`}>{session.agent_id}</a>,
        User: session.user_id === null ? "none" : <a href={`/dashboard/${ofUser}`}>{user}</a>,
        State: number(session.state_version),
        Turns: number(session.turn_count),
        Memories: number(session.memory_count),
        Created: <Time at={session.created_at} />,
        Began: session.occurred_at === undefined ? null : <Time at={session.occurred_at} />,
        Expires: session.ttl_expires_at === null ? "never" : <Time at={session.ttl_expires_at} />,
        "Forked from": typeof source === "string" ? <Source id={source} version={Number(version)} /> : null,
      }}
    />
  );
}

function Source({ id, version }: { id: string; version: number }) {
  return (
    <>
      <a href={`/dashboard/sessions/${encodeURIComponent(id)}#version-${version}`}>
        <code>{id}</code>
      </a>{" "}
      at state {number(version)}
    </>
  );
}

/** A session is read as it happened while it is short; of a long one the newest is what one looks for. It stays so while it grows. */
function useUsualOrder(session: SessionRecord): "asc" | "desc" {
  const usual = useRef<{ id: string; order: "asc" | "desc" } | null>(null);
  if (usual.current?.id !== session.id) usual.current = { id: session.id, order: isShort(session) ? "asc" : "desc" };
  return usual.current.order;
}

function isShort({ turn_count, memory_count, state_version }: SessionRecord): boolean {
  return turn_count + memory_count + state_version + 1 <= SHORT_ENTRIES;
}
const SHORT_ENTRIES = 100;

function TimelineOf({ session, opened, isLive }: { session: SessionRecord; opened: Signal<Opened>; isLive: boolean }) {
  const { query, route, path } = useLocation();
  const kind = query["kind"] ?? "";
  const usual = useUsualOrder(session);
  const order = query["order"] === "asc" || query["order"] === "desc" ? query["order"] : usual;
  const show = (changes: Record<string, string>) => {
    const next = Object.entries({ ...query, ...changes }).filter(([, value]) => value !== "");
    const search = new URLSearchParams(next).toString();
    route(`${path}${search === "" ? "" : `?${search}`}`, true);
  };
  return (
    <>
      <div class="bar">
        <Choices label="Show" value={kind} choices={KINDS} onChoice={(kind) => show({ kind })} />
        <Jump session={session} />
        <LiveSign isOpen={isLive} />
        <select aria-label="Order" value={order} onChange={({ currentTarget }) => show({ order: currentTarget.value })}>
          {Object.entries(ORDERS).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <div class={isShort(session) ? undefined : "scaled"}>
        <div>
          <Timeline
            session={session}
            kind={kind}
            order={order}
            onRollBack={(version) => (opened.value = { kind: "rollback", version })}
            onFork={(version) => (opened.value = { kind: "fork", version })}
          />
        </div>
        {!isShort(session) && <Scale key={order} session={session} order={order} />}
      </div>
    </>
  );
}

/** Next to the timeline where there is room; above it elsewhere, closed, so that the timeline is in view. */
function CurrentState({ session }: { session: SessionRecord }) {
  const hasRoom = matchMedia("(min-width: 1081px)").matches;
  return (
    <aside class="stack" aria-label="State and metadata">
      <details open={hasRoom}>
        <summary>
          <h2>State {number(session.state_version)}</h2>
        </summary>
        <Json value={session.state} label="State" />
      </details>
      {Object.keys(session.metadata).length > 0 && (
        <details open={hasRoom}>
          <summary>
            <h2>Metadata</h2>
          </summary>
          <Json value={session.metadata} label="Metadata" />
        </details>
      )}
    </aside>
  );
}

function Dialogs({ session, opened }: { session: SessionRecord; opened: Signal<Opened> }) {
  const close = () => (opened.value = null);
  if (opened.value === null) return null;
  switch (opened.value.kind) {
    case "state":
      return <EditState session={session} onClose={close} />;
    case "session":
      return <EditSession session={session} onClose={close} />;
    case "delete":
      return <DeleteSession session={session} onClose={close} />;
    case "fork":
      return <Fork session={session} version={opened.value.version} onClose={close} />;
    default:
      return <RollBack session={session} version={opened.value.version} onClose={close} />;
  }
}
