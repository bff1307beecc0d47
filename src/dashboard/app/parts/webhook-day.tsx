/**
 * How the last day of a webhook went: the share that was delivered, and bars of what was delivered and what has failed.
 *
 * @module
 */
import { api, type WebhookStats } from "../api.ts";
import { useQuery } from "../query.ts";
import { Bars } from "./bars.tsx";

export function WebhookDay({ id }: { id: string }) {
  const stats = useQuery({ queryKey: ["webhook", id, "stats"], queryFn: ({ signal }) => api.webhookStats(id, signal) });
  // The deliveries below say what matters, also where this cannot be read.
  if (stats.data === undefined) return null;
  const { hours } = stats.data;
  const times = hours.map(({ start }) => start);
  return (
    <>
      <p>
        Last 24 h: {shareOf(stats.data)}
        {stats.data.more && <span class="quiet"> (the newest of them)</span>}
      </p>
      <div class="charts">
        <Bars title="Delivered an hour" times={times} values={hours.map(({ delivered }) => delivered)} />
        <Bars title="Failed an hour" times={times} values={hours.map(({ failed }) => failed)} />
      </div>
    </>
  );
}

function shareOf({ delivered, failed, pending }: WebhookStats): string {
  const ended = delivered + failed;
  const waiting = pending === 0 ? "" : `, ${pending.toLocaleString("en")} pending`;
  if (ended === 0) return `none delivered${waiting}`;
  const share = Math.floor((100 * delivered) / ended);
  return `${share} % of ${ended.toLocaleString("en")} delivered, ${failed.toLocaleString("en")} failed${waiting}`;
}
