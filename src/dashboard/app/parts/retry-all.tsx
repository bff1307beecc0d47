/**
 * Makes again all deliveries that were given up, of the webhooks that a list shows.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { api, type Delivery } from "../api.ts";
import { changed, type Pages } from "../query.ts";
import { counted } from "../words.ts";
import { toast } from "./toast.tsx";

/** Makes again what a webhook has not got since a time, request by request until nothing is left. @returns how many */
export async function recoverSince(webhookId: string, since: string): Promise<number> {
  let recovered = 0;
  for (let complete = false; !complete;) {
    const answer = await api.recover(webhookId, since);
    recovered += answer.recovered;
    complete = answer.complete;
  }
  await changed(["deliveries"], ["webhook", webhookId], ["stats"]);
  return recovered;
}

const EVER = new Date(0).toISOString();

export function RetryAll({ pages }: { pages: Pages<Delivery> }) {
  const busy = useSignal(false);
  const failed = pages.data?.pages.flatMap(({ data }) => data.filter(({ status }) => status === "failed")) ?? [];
  if (failed.length === 0) return null;
  const retry = async () => {
    if (busy.value) return;
    busy.value = true;
    try {
      let recovered = 0;
      for (const id of new Set(failed.map(({ webhook_id }) => webhook_id))) recovered += await recoverSince(id, EVER);
      toast(`${counted(recovered, "deliveries")} made again`);
    } catch (error) {
      toast((error as Error).message);
    } finally {
      busy.value = false;
    }
  };
  return (
    <p class="row">
      <button aria-busy={busy.value} onClick={() => void retry()}>
        Retry all
      </button>
      <span class="quiet">Makes again every delivery that was given up, the oldest first.</span>
    </p>
  );
}
