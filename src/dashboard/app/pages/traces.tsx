/**
 * Traces: who changed what, and when, with what is known of each change.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { api, type List, type Trace } from "../api.ts";
import { useCan } from "../access.ts";
import { csvOf } from "../csv.ts";
import { download } from "../download.ts";
import { Actor } from "../parts/actor.tsx";
import { Choices } from "../parts/choices.tsx";
import { Id } from "../parts/copy.tsx";
import { Facts } from "../parts/facts.tsx";
import { ChoiceFilter, Filters, NameFilter, TextFilter, TimeFilter, useFilters } from "../parts/filters.tsx";
import { Json } from "../parts/json.tsx";
import { Listed, Loaded } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { exactTime } from "../parts/time.tsx";
import { toast } from "../parts/toast.tsx";
import { HiddenSignIns, TraceItem } from "../parts/trace-item.tsx";
import { usePages, useQuery } from "../query.ts";
import { isSignIn, readWanted } from "../sign-ins.ts";
import { counted } from "../words.ts";

const FILTERS = ["session_id", "user_id", "action", "created_after", "created_before"];

/** A type says that none is forgotten. */
const ACTIONS = Object.fromEntries(
  Object.keys({
    "session.created": 0,
    "session.updated": 0,
    "session.forked": 0,
    "session.expired": 0,
    "session.deleted": 0,
    "state.updated": 0,
    "state.rolled_back": 0,
    "turn.added": 0,
    "memory.created": 0,
    "memory.updated": 0,
    "memory.deleted": 0,
    "memory.expired": 0,
    "memory.superseded": 0,
    "retrieval.rated": 0,
    "api_key.created": 0,
    "api_key.rolled": 0,
    "api_key.revoked": 0,
    "backup.started": 0,
    "backup.created": 0,
    "backup.failed": 0,
    "backup.copied": 0,
    "backup.copy_failed": 0,
    "backup.downloaded": 0,
    "backup.deleted": 0,
    "user.erased": 0,
    "settings.updated": 0,
    "webhook.created": 0,
    "webhook.updated": 0,
    "webhook.disabled": 0,
    "webhook.secret_rotated": 0,
    "webhook.deleted": 0,
  } satisfies Record<Trace["action"], 0>).map((action) => [action, action]),
);

export function Traces() {
  const { query } = useLocation();
  return query["id"] ? <OneTrace id={query["id"]} /> : <AllTraces />;
}

function OneTrace({ id }: { id: string }) {
  const result = useQuery({ queryKey: ["trace", id], staleTime: Infinity, queryFn: ({ signal }) => api.trace(id, signal) });
  return (
    <Page title={id} heading={<Id id={id} />} within={["/dashboard/traces", "Traces"]}>
      <Loaded result={result}>
        {({ action, actor, timestamp, session_id: session, user_id: user, details, metadata }) => (
          <>
            <Facts
              facts={{
                Action: action,
                Actor: <Actor prefix={actor} />,
                When: exactTime(timestamp),
                Session: session && (
                  <a href={`/dashboard/sessions/${session}`}>
                    <code>{session}</code>
                  </a>
                ),
                User: user ?? null,
              }}
            />
            <Json value={{ details, metadata }} label="Trace" />
          </>
        )}
      </Loaded>
    </Page>
  );
}

const SHOWN = { changes: "Changes", "sign-ins": "Sign-ins" };

type ReadTraces = (after: string | null, signal?: AbortSignal, limit?: number) => Promise<List<Trace>>;

function AllTraces() {
  const { query } = useLocation();
  const mayAdmin = useCan("admin");
  const filters = useFilters("traces", FILTERS);
  const shown = query["show"] === "sign-ins" ? "sign-ins" : "changes";
  const isOfSignIns = shown === "sign-ins";
  const { values } = filters;
  // An action that was asked for is shown whatever it is of.
  const isWanted = (trace: Trace) => (isOfSignIns ? isSignIn(trace) : values["action"] !== undefined || !isSignIn(trace));
  const asked = { ...values, ...(isOfSignIns && { action: "api_key.created" }) };
  const read: ReadTraces = (after, signal, limit) =>
    readWanted((starting_after) => api.traces({ ...asked, starting_after }, signal, limit), isWanted, after);
  const pages = usePages(["traces", values, shown], read);
  const hidden = isOfSignIns ? 0 : (pages.data?.pages.reduce((sum, page) => sum + (page.hidden ?? 0), 0) ?? 0);
  return (
    <Page title="Traces" actions={<CsvButton read={read} />}>
      {mayAdmin && (
        <div class="bar">
          <Choices label="Show" value={shown} choices={SHOWN} onChoice={(show) => filters.set({ show: show === "changes" ? "" : show })} />
        </div>
      )}
      <Filters filters={filters}>
        <TextFilter label="Session" name="session_id" filters={filters} />
        <NameFilter label="User" name="user_id" kind="users" filters={filters} />
        {!isOfSignIns && <ChoiceFilter label="Action" name="action" filters={filters} choices={ACTIONS} />}
        <TimeFilter label="After" name="created_after" filters={filters} />
        <TimeFilter label="Before" name="created_before" filters={filters} />
      </Filters>
      <Listed
        pages={pages}
        noun="traces"
        empty={<p>{filters.isSet || isOfSignIns ? "No trace matches." : "No changes yet: every change leaves a trace here."}</p>}
        element="ul"
        class="rows"
      >
        {(traces) => traces.map((trace) => <TraceItem key={trace.id} trace={trace} />)}
      </Listed>
      <HiddenSignIns count={hidden} />
    </Page>
  );
}

const CSV_PAGE = 100;
/** More is for `cairn export`. */
const CSV_READ_MAX = 5_000;

function CsvButton({ read }: { read: ReadTraces }) {
  const busy = useSignal(false);
  const save = async () => {
    busy.value = true;
    try {
      const { traces, isWhole } = await newestTraces(read);
      const rows = traces.map(({ id, timestamp, action, actor, session_id, user_id, details }) => ({
        id,
        timestamp,
        action,
        actor,
        session_id: session_id ?? "",
        user_id: user_id ?? "",
        details: JSON.stringify(details),
      }));
      download("traces.csv", "text/csv", [csvOf(rows)]);
      toast(`Saved ${isWhole ? "" : "the newest "}${counted(traces.length, "traces")}`);
    } catch (error) {
      toast((error as Error).message);
    } finally {
      busy.value = false;
    }
  };
  return (
    <button disabled={busy.value} onClick={() => void save()}>
      {busy.value ? "Saving …" : "Save as CSV"}
    </button>
  );
}

async function newestTraces(read: ReadTraces): Promise<{ traces: Trace[]; isWhole: boolean }> {
  const traces: Trace[] = [];
  let hidden = 0;
  for (let after: string | null = null; traces.length + hidden < CSV_READ_MAX;) {
    const page = await read(after, undefined, CSV_PAGE);
    traces.push(...page.data);
    hidden += page.hidden ?? 0;
    if (!page.has_more) return { traces, isWhole: true };
    after = page.last_id;
  }
  return { traces, isWhole: false };
}
