/**
 * How much there is, how it goes, what happened last, and what needs somebody. Where there is nothing yet: how to begin.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { api, type Stats, type Trace } from "../api.ts";
import { useMe } from "../access.ts";
import { useLive } from "../live.ts";
import { Bars } from "../parts/bars.tsx";
import { Choices } from "../parts/choices.tsx";
import { CopyButton } from "../parts/copy.tsx";
import { Loaded } from "../parts/list.tsx";
import { LiveSign } from "../parts/live-sign.tsx";
import { Page } from "../parts/page.tsx";
import { duration } from "../parts/time.tsx";
import { TraceItem } from "../parts/trace-item.tsx";
import { useQuery } from "../query.ts";
import { counted } from "../words.ts";

const SPANS = { "1h": "Last hour", "24h": "Last day" };
const STATS_MS = 10_000;
const LATEST = 20;

export function Overview() {
  const { query, route } = useLocation();
  const span = query["span"] === "24h" ? "24h" : "1h";
  const stats = useQuery({
    queryKey: ["stats", span],
    refetchInterval: STATS_MS,
    queryFn: ({ signal }) => api.stats({ history: span }, signal),
  });
  const isEmpty = stats.data?.sessions === 0 && stats.data.memories === 0;
  return (
    <Page title="Overview" actions={<Deployment />}>
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
    </Page>
  );
}

/** Which Cairn this is: version, durability, region. */
function Deployment() {
  const { data } = useQuery({ queryKey: ["health"], staleTime: Infinity, queryFn: ({ signal }) => api.health(signal) });
  if (data === undefined) return null;
  return (
    <p class="row quiet">
      {data.status !== "ready" && <b class="bad">{data.reason ?? data.status}</b>}
      <span>{data.durability}</span>
      {data.region !== undefined && <span>{data.region}</span>}
      <span>{data.version}</span>
    </p>
  );
}

const number = (count: number) => count.toLocaleString("en");
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
    ["since the start", duration(stats.uptime_seconds)],
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

function Attention({ stats: { vectors, deliveries } }: { stats: Stats }) {
  const me = useMe();
  const mayAdmin = me?.scopes.includes("admin") === true;
  if (vectors.owed === 0 && deliveries.failed === 0) return null;
  return (
    <ul class="note attention">
      {vectors.owed > 0 && <li>{counted(vectors.owed, "memories")} without a vector yet: search does not find what has none.</li>}
      {deliveries.failed > 0 && (
        <li>
          {counted(deliveries.failed, "deliveries")} failed. {mayAdmin && <a href="/dashboard/webhooks?show=failed">Which</a>}
        </li>
      )}
    </ul>
  );
}

function Activity({ stats: { history } }: { stats: Stats }) {
  if (history === undefined) return null;
  const { points, bucket_seconds: seconds } = history;
  const per = seconds === 60 ? "a minute" : `in ${duration(seconds)}`;
  const latency = points.map(({ p99_ms }) => p99_ms ?? 0);
  return (
    <div class="charts">
      <Bars title={`Changes ${per}`} times={points.map(({ at }) => at)} values={points.map(({ changes }) => changes)} />
      <Bars title={`Requests ${per}`} times={points.map(({ at }) => at)} values={points.map(({ requests }) => requests)} />
      <Bars title="99 % answered within" unit="ms" times={points.map(({ at }) => at)} values={latency} />
    </div>
  );
}

/** @param onTraces - called when something happens */
function Latest({ onTraces }: { onTraces: () => void }) {
  const traces = useSignal<readonly Trace[]>([]);
  const first = useQuery({ queryKey: ["traces", "latest"], queryFn: ({ signal }) => api.traces({}, signal, LATEST) });
  const isOpen = useLive(
    {},
    {
      traces: (found) => {
        traces.value = [...found.toReversed(), ...traces.value].slice(0, LATEST);
        onTraces();
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
        {({ data }) => {
          const known = new Set(traces.value.map(({ id }) => id));
          const shown = [...traces.value, ...data.filter(({ id }) => !known.has(id))]
            .toSorted((a, b) => (a.id < b.id ? 1 : -1))
            .slice(0, LATEST);
          return (
            <ul class="rows">
              {shown.map((trace) => (
                <TraceItem key={trace.id} trace={trace} isNew={known.has(trace.id)} />
              ))}
            </ul>
          );
        }}
      </Loaded>
    </>
  );
}

function FirstConversation() {
  const lines = [
    "KEY=crn_…   # an API key",
    `c() { curl -s -H "X-API-Key: $KEY" -H "Content-Type: application/json" "${location.origin}/v1/$1" "\${@:2}"; echo; }`,
    `S=$(c sessions -d '{"agent_id": "support-bot", "user_id": "user-42"}' | grep -o 'sess_[0-9A-Za-z]*')`,
    `c memory -d '{"session_id": "'$S'", "content": "The customer prefers e-mail to phone calls.", "type": "preference"}'`,
    `c sessions/$S/context -d '{"query": "How does the customer prefer to be contacted?"}'`,
  ].join("\n");
  return (
    <section class="stack first">
      <p>Nothing is stored yet. Three requests make a first conversation, and what they do appears below:</p>
      <div class="json">
        <CopyButton text={lines} />
        <pre tabIndex={0} role="region" aria-label="A first conversation">
          {lines}
        </pre>
      </div>
      <p>
        <a href="/docs">The docs of every endpoint</a>
      </p>
    </section>
  );
}
