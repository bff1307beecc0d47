/**
 * Last day of a webhook: what was delivered, and which attempts failed.
 *
 * @module
 */
import { api, type WebhookStats } from "../api.ts";
import { useQuery } from "../query.ts";
import { counted, number } from "../words.ts";
import { Bars } from "./bars.tsx";
import { Time } from "./time.tsx";

export function WebhookDay({ id }: { id: string }) {
  const stats = useQuery({ queryKey: ["webhook", id, "stats"], queryFn: ({ signal }) => api.webhookStats(id, signal) });
  // The deliveries below say what matters, also where this cannot be read.
  if (stats.data === undefined) return null;
  const { hours } = stats.data;
  const times = hours.map(({ start }) => start);
  return (
    <>
      <h2>
        <Share stats={stats.data} />
      </h2>
      <div class="charts">
        <Bars title="Delivered per hour" times={times} values={hours.map(({ delivered }) => delivered)} />
        <Bars title="Failed attempts per hour" times={times} values={hours.map(({ failed }) => failed)} areFailures />
      </div>
    </>
  );
}

/** The same in a line of a list. */
export function WebhookDayInLine({ stats }: { stats: WebhookStats }) {
  const { hours } = stats;
  const most = Math.max(...hours.map(({ delivered, failed }) => delivered + failed), 1);
  return (
    <span class="row day">
      <svg viewBox={`0 0 ${HOURS} 1`} preserveAspectRatio="none" aria-hidden="true">
        {hours.map(({ start, delivered, failed }, index) => {
          const x = HOURS - hours.length + index + 0.1;
          return (
            <g key={start}>
              <rect x={x} y={1 - delivered / most} width={0.8} height={delivered / most} />
              <rect class="bad" x={x} y={1 - (delivered + failed) / most} width={0.8} height={failed / most} />
            </g>
          );
        })}
      </svg>
      <span>
        <Share stats={stats} />
      </span>
    </span>
  );
}
/** That of now and the 24 before it. */
const HOURS = 25;

function Share({ stats: { delivered, failed, exhausted, pending, more, since } }: { stats: WebhookStats }) {
  const ended = delivered + exhausted;
  const parts = [
    ended === 0 ? "none delivered" : `${Math.floor((100 * delivered) / ended)} % of ${number(ended)} delivered`,
    failed > 0 && `${counted(failed, "attempts")} failed`,
    pending > 0 && `${number(pending)} pending`,
    exhausted > 0 && `${number(exhausted)} given up`,
  ].filter((part) => part !== false);
  return (
    <>
      {more ? (
        <>
          Since <Time at={since} />
        </>
      ) : (
        "Last 24 h"
      )}
      : {parts.join(", ")}
    </>
  );
}
