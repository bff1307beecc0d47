/**
 * Sizes, activity, latest events, and what needs somebody. Where there is nothing yet: how to begin.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { api, type Stats, type Trace } from "../api.ts";
import { boundTo, useCan, useMe } from "../access.ts";
import { useLive } from "../live.ts";
import { Bars } from "../parts/bars.tsx";
import { Choices } from "../parts/choices.tsx";
import { FirstConversation } from "../parts/first-conversation.tsx";
import { Loaded } from "../parts/list.tsx";
import { LiveSign } from "../parts/live-sign.tsx";
import { Page } from "../parts/page.tsx";
import { duration, Time } from "../parts/time.tsx";
import { WebhookState } from "../parts/webhook-state.tsx";
import { HiddenSignIns, TraceItem } from "../parts/trace-item.tsx";
import { useQuery } from "../query.ts";
import { ENOUGH_TRACES, isSignIn, readWanted } from "../sign-ins.ts";
import { counted, number } from "../words.ts";

const SPANS = { "1h": "Last hour", "24h": "Last day", "7d": "Last week" };
const STATS_MS = 10_000;

export function Overview() {
  const me = useMe();
  const bound = me === undefined ? null : boundTo(me);
  return (
    <Page title="Overview" actions={<Deployment />}>
      {bound === null ? (
        <WithStats />
      ) : (
        <>
          <p class="note">This key is bound to {bound}: what others do is not shown.</p>
          <Latest />
        </>
      )}
    </Page>
  );
}

/** Counts are of the records of all. */
function WithStats() {
  const { query, route } = useLocation();
  const span = query["span"] === "24h" || query["span"] === "7d" ? query["span"] : "1h";
  const stats = useQuery({
    queryKey: ["stats", span],
    refetchInterval: STATS_MS,
    queryFn: ({ signal }) => api.stats({ history: span }, signal),
  });
  const isEmpty = stats.data?.sessions === 0 && stats.data.memories === 0;
  return (
    <>
      <Loaded result={stats}>
        {(stats) =>
          isEmpty ? (
            <FirstConversation />
          ) : (
            <>
              <Counts stats={stats} />
              <Attention stats={stats} />
              <div class="bar">
                <h2>Activity</h2>
                <Choices
                  label="Time"
                  value={span}
                  choices={SPANS}
                  onChoice={(span) => route(span === "1h" ? "/dashboard/" : `/dashboard/?span=${span}`, true)}
                />
              </div>
              <Activity stats={stats} />
            </>
          )
        }
      </Loaded>
      <Latest onTraces={() => isEmpty && void stats.refetch()} />
    </>
  );
}

/** Facts of this Cairn: version, durability, region. */
function Deployment() {
  const { data } = useQuery({ queryKey: ["health"], staleTime: Infinity, queryFn: ({ signal }) => api.health(signal) });
  if (data === undefined) return null;
  return (
    <p class="row quiet">
      {data.status !== "ready" && <b class="bad">{data.reason ?? data.status}</b>}
      <span>{data.durability} durability</span>
      {data.region !== undefined && <span>{data.region}</span>}
      <span>Cairn {data.version}</span>
    </p>
  );
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;

function Counts({ stats }: { stats: Stats }) {
  const { store } = stats;
  const counts: [name: string, count: string, href?: string][] = [
    ["sessions", number(stats.sessions), "sessions"],
    ["turns", number(stats.turns)],
    ["states", number(stats.versions)],
    ["memories", number(stats.memories), "memories"],
    ["traces", number(stats.traces), "traces"],
    [store.max_bytes === null ? "on disk" : `of ${megabytes(store.max_bytes)} on disk`, megabytes(store.used_bytes)],
    ["uptime", duration(stats.uptime_seconds)],
  ];
  return (
    <dl class="counts">
      {counts.map(([name, count, href]) => (
        <div key={name}>
          <dt>{href === undefined ? name : <a href={`/dashboard/${href}`}>{name}</a>}</dt>
          <dd>{count}</dd>
        </div>
      ))}
    </dl>
  );
}

interface Trouble {
  readonly says: ComponentChildren;
  /** True for what has failed, false for what will be well by itself or soon be trouble. */
  readonly isFailure: boolean;
}

/** A store this full wants somebody's attention. */
const FULL_SHARE = 0.9;

/** Troubles that the figures alone tell of. */
function troublesOf({ vectors, store, backups, certificate }: Stats): Trouble[] {
  const share = store.max_bytes === null ? 0 : store.used_bytes / store.max_bytes;
  const backupError = backups?.error ?? backups?.copies?.error ?? null;
  return [
    ...(share >= FULL_SHARE
      ? [{ isFailure: share >= 1, says: `The store is ${Math.floor(share * 100)} % full: at its limit new records are refused.` }]
      : []),
    ...(backupError !== null ? [{ isFailure: true, says: <>The last backup failed: {backupError}</> }] : []),
    ...(certificate?.overdue === true && certificate.expires_at !== null
      ? [
          {
            isFailure: true,
            says: (
              <>
                The certificate ends <Time at={certificate.expires_at} />, and is not renewed
                {certificate.error === null ? "." : `: ${certificate.error}`}
              </>
            ),
          },
        ]
      : []),
    ...(backupError === null && (backups?.overdue === true || backups?.copies?.overdue === true)
      ? [{ isFailure: false, says: "A backup has been due for more than an hour." }]
      : []),
    ...(vectors.pending > 0
      ? [{ isFailure: false, says: `${counted(vectors.pending, "memories")} without a vector yet: search does not find what has none.` }]
      : []),
  ];
}

function Attention({ stats }: { stats: Stats }) {
  const { deliveries } = stats;
  const mayAdmin = useCan("admin");
  const webhooks = useQuery({
    queryKey: ["webhooks", "attention"],
    enabled: mayAdmin,
    refetchInterval: STATS_MS,
    queryFn: ({ signal }) => api.webhooks({}, signal),
  });
  const troubled = webhooks.data?.data.filter(({ failing_since, disabled_reason }) => (failing_since ?? disabled_reason) !== null) ?? [];
  const troubles: Trouble[] = [
    ...(deliveries.exhausted > 0
      ? [
          {
            isFailure: true,
            says: (
              <>
                {counted(deliveries.exhausted, "deliveries")} given up.{" "}
                {mayAdmin && <a href="/dashboard/webhooks?show=failed">See which</a>}
              </>
            ),
          },
        ]
      : []),
    ...troubled.map((webhook) => ({
      isFailure: true,
      says: (
        <>
          <a href={`/dashboard/webhooks/${webhook.id}`}>{webhook.url}</a> <WebhookState webhook={webhook} />
        </>
      ),
    })),
    // A reader who may not see which webhook it is learns of it all the same.
    ...(!mayAdmin && deliveries.failed > 0
      ? [{ isFailure: true, says: `${counted(deliveries.failed, "attempts")} to deliver to webhooks failed in the last day.` }]
      : []),
    ...troublesOf(stats),
  ];
  return (
    <>
      <Troubles name="What has failed" class="note attention trouble failed" of={troubles.filter(({ isFailure }) => isFailure)} />
      <Troubles name="What to look at" class="note attention trouble" of={troubles.filter(({ isFailure }) => !isFailure)} />
    </>
  );
}

function Troubles({ name, class: look, of }: { name: string; class: string; of: readonly Trouble[] }) {
  if (of.length === 0) return null;
  return (
    <ul class={look} aria-label={name}>
      {of.map(({ says }, index) => (
        <li key={index}>{says}</li>
      ))}
    </ul>
  );
}

function Activity({ stats: { history } }: { stats: Stats }) {
  if (history === undefined) return null;
  const { points, bucket_seconds: seconds } = history;
  const per = seconds === 60 ? "a minute" : `in ${duration(seconds)}`;
  const times = points.map(({ at }) => at);
  const counts = { Requests: "requests", Changes: "changes", "Memories added": "memories", Searches: "searches" } as const;
  return (
    <div class="charts">
      {Object.entries(counts).map(([title, name]) => (
        <Bars key={title} title={`${title} ${per}`} times={times} values={points.map((point) => point[name])} />
      ))}
      <Bars title="p99 latency" unit="ms" times={times} values={points.map(({ p99_ms }) => p99_ms ?? 0)} />
    </div>
  );
}

/** Changes of records and settings; sign-ins are listed with the traces. @param onTraces - called when something happens */
function Latest({ onTraces }: { onTraces?: () => void }) {
  const traces = useSignal<readonly Trace[]>([]);
  const first = useQuery({
    queryKey: ["traces", "latest"],
    queryFn: ({ signal }) =>
      readWanted(
        (after) => api.traces({ starting_after: after }, signal),
        (trace) => !isSignIn(trace),
        null,
      ),
  });
  const isOpen = useLive(
    {},
    {
      traces: (found) => {
        traces.value = [...found.toReversed().filter((trace) => !isSignIn(trace)), ...traces.value].slice(0, ENOUGH_TRACES);
        onTraces?.();
      },
      start: () => void first.refetch(),
    },
  );
  return (
    <>
      <div class="bar">
        <h2>Latest</h2>
        <LiveSign isOpen={isOpen.value} />
      </div>
      <Loaded result={first}>
        {({ data, hidden }) => {
          const known = new Set(traces.value.map(({ id }) => id));
          const shown = [...traces.value, ...data.filter((trace) => !known.has(trace.id))]
            .toSorted((a, b) => (a.id < b.id ? 1 : -1))
            .slice(0, ENOUGH_TRACES);
          return (
            <>
              {shown.length === 0 && hidden === 0 && <div class="empty">Every change appears here as it happens.</div>}
              <ul class="rows">
                {shown.map((trace) => (
                  <TraceItem key={trace.id} trace={trace} isNew={known.has(trace.id)} inWords />
                ))}
              </ul>
              <HiddenSignIns count={hidden} />
            </>
          );
        }}
      </Loaded>
    </>
  );
}
