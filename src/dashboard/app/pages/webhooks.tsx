/**
 * Webhooks: who gets which events, and what could not be delivered.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect, useMemo } from "preact/hooks";
import { api, type Webhook, type WebhookStats } from "../api.ts";
import { Choices } from "../parts/choices.tsx";
import { DeliveryItem } from "../parts/delivery.tsx";
import { Listed } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { RetryAll } from "../parts/retry-all.tsx";
import { WebhookDayInLine } from "../parts/webhook-day.tsx";
import { CreateWebhook } from "../parts/webhook-dialogs.tsx";
import { WebhookState } from "../parts/webhook-state.tsx";
import { usePages } from "../query.ts";

const SHOWN = { "": "Webhooks", failed: "Given up" };

export default function Webhooks() {
  const { query, route } = useLocation();
  const isCreating = useSignal(false);
  const shown = query["show"] === "failed" ? "failed" : "";
  return (
    <Page
      title="Webhooks"
      actions={
        <button class="primary" onClick={() => (isCreating.value = true)}>
          Create a webhook
        </button>
      }
    >
      <div class="bar">
        <Choices
          label="Show"
          value={shown}
          choices={SHOWN}
          onChoice={(show) => route(show === "" ? "/dashboard/webhooks" : `/dashboard/webhooks?show=${show}`, true)}
        />
      </div>
      {shown === "" ? <WebhookList /> : <FailedDeliveries />}
      {isCreating.value && <CreateWebhook onClose={() => (isCreating.value = false)} />}
    </Page>
  );
}

function WebhookList() {
  const pages = usePages(["webhooks"], (after, signal) => api.webhooks({ starting_after: after }, signal));
  const stats = useStats(pages.data?.pages.at(-1)?.last_id ?? null);
  return (
    <Listed
      pages={pages}
      noun="webhooks"
      dependsOn={[stats]}
      empty={
        <p>
          There is no webhook. A webhook posts what happens to an address of yours, signed. The button above makes one, or{" "}
          <code>POST /v1/webhooks</code>.
        </p>
      }
      element="ul"
      class="cards"
    >
      {(webhooks) => webhooks.map((webhook) => <WebhookItem key={webhook.id} webhook={webhook} stats={stats?.get(webhook.id)} />)}
    </Listed>
  );
}

/** The last day of each webhook down to this one, as far as it is read; the list stands without it. */
function useStats(last: string | null): ReadonlyMap<string, WebhookStats> | undefined {
  const pages = usePages(["webhooks", "stats"], (after, signal) => api.webhooksStats({ starting_after: after }, signal));
  const { data, hasNextPage, isFetching, isError } = pages;
  const read = data?.pages.at(-1)?.last_id ?? "";
  const isBehind = hasNextPage && !isFetching && !isError && last !== null && read > last;
  useEffect(() => {
    if (isBehind) void pages.fetchNextPage();
  }, [isBehind, read]);
  return useMemo(() => data && new Map(data.pages.flatMap((page) => page.data.map((stats) => [stats.webhook_id, stats]))), [data]);
}

function WebhookItem({ webhook, stats }: { webhook: Webhook; stats: WebhookStats | undefined }) {
  return (
    <li data-row tabIndex={-1}>
      <p>
        <a class="strong" href={`/dashboard/webhooks/${webhook.id}`}>
          {webhook.url}
        </a>
      </p>
      <div class="row meta">
        <WebhookState webhook={webhook} />
        <span>{webhook.events.join(", ")}</span>
        {webhook.description !== null && <span class="quiet">{webhook.description}</span>}
        {stats !== undefined && <WebhookDayInLine stats={stats} />}
      </div>
    </li>
  );
}

function NoneGivenUp() {
  return <p>No delivery was given up. One that has failed and is tried again is listed with its webhook.</p>;
}

function FailedDeliveries() {
  const pages = usePages(["deliveries", "failed"], (after, signal) => api.failedDeliveries({ starting_after: after }, signal));
  return (
    <>
      <RetryAll pages={pages} />
      <Listed pages={pages} noun="deliveries" empty={<NoneGivenUp />} element="ul" class="rows">
        {(deliveries) => deliveries.map((delivery) => <DeliveryItem key={delivery.id} delivery={delivery} namesWebhook />)}
      </Listed>
    </>
  );
}
