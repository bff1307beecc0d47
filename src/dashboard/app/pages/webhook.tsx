/**
 * One webhook with its deliveries: what was posted, what came back, and once more.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useLocation, useRoute } from "preact-iso";
import { api, type Delivery, type Webhook as WebhookRecord } from "../api.ts";
import { DeliveryItem } from "../parts/delivery.tsx";
import { Facts } from "../parts/facts.tsx";
import { ChoiceFilter, Filters, TimeFilter, useFilters } from "../parts/filters.tsx";
import { Listed, Loaded } from "../parts/list.tsx";
import { More } from "../parts/more.tsx";
import { Page } from "../parts/page.tsx";
import { RetryAll } from "../parts/retry-all.tsx";
import { WebhookDay } from "../parts/webhook-day.tsx";
import { DeleteWebhook, EditWebhook, EVENTS, RecoverDeliveries, RotateSecret, TestWebhook } from "../parts/webhook-dialogs.tsx";
import { WebhookState } from "../parts/webhook-state.tsx";
import { changed, usePages, useQuery } from "../query.ts";

const FILTERS = ["status", "event_type", "created_after", "created_before"];
const STATUSES = { pending: "pending", delivered: "delivered", failed: "given up" } satisfies Record<Delivery["status"], string>;
const TYPES = { ...EVENTS, "webhook.test": "webhook.test" } satisfies Partial<Record<Delivery["event_type"], string>>;
const READ_AGAIN_MS = 5_000;

type Opened = "test" | "edit" | "rotate" | "recover" | "delete" | null;

export default function Webhook() {
  const { params } = useRoute();
  const id = params["id"] ?? "";
  const result = useQuery({ queryKey: ["webhook", id], queryFn: ({ signal }) => api.webhook(id, signal) });
  const { query } = useLocation();
  const opened = useSignal<Opened>(null);
  return (
    <Page
      title={result.data?.url ?? "Webhook"}
      within={["/dashboard/webhooks", "Webhooks"]}
      actions={result.data && <Actions webhook={result.data} opened={opened} />}
    >
      <Loaded result={result}>
        {(webhook) => (
          <>
            <Facts facts={{ State: <WebhookState webhook={webhook} />, Events: webhook.events.join(", "), For: webhook.description }} />
            <WebhookDay id={webhook.id} />
            {query["delivery"] ? <OneDelivery webhook={webhook} id={query["delivery"]} /> : <Deliveries webhook={webhook} />}
            <Dialogs webhook={webhook} opened={opened} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Actions({ webhook, opened }: { webhook: WebhookRecord; opened: Signal<Opened> }) {
  const switchIt = () =>
    void api.updateWebhook(webhook.id, { enabled: !webhook.enabled }).then(() => changed(["webhook", webhook.id], ["webhooks"]));
  return (
    <>
      <button onClick={() => (opened.value = "test")}>Test</button>
      <button onClick={() => (opened.value = "rotate")}>Rotate secret</button>
      <More>
        <button onClick={() => (opened.value = "edit")}>Edit</button>
        <button onClick={switchIt}>{webhook.enabled ? "Switch off" : "Switch on"}</button>
        <button onClick={() => (opened.value = "recover")}>Recover failed</button>
        <button class="danger" onClick={() => (opened.value = "delete")}>
          Delete
        </button>
      </More>
    </>
  );
}

/** The delivery that a link leads to, open. */
function OneDelivery({ webhook, id }: { webhook: WebhookRecord; id: string }) {
  const result = useQuery({
    queryKey: ["delivery", id],
    refetchInterval: READ_AGAIN_MS,
    queryFn: ({ signal }) => api.delivery(webhook.id, id, signal),
  });
  return (
    <>
      <p>
        <a href={`/dashboard/webhooks/${webhook.id}`}>All deliveries</a>
      </p>
      <Loaded result={result}>
        {(details) => (
          <ul class="rows">
            <DeliveryItem delivery={details} details={details} />
          </ul>
        )}
      </Loaded>
    </>
  );
}

function Deliveries({ webhook }: { webhook: WebhookRecord }) {
  const filters = useFilters(`webhooks/${webhook.id}`, FILTERS);
  const pages = usePages(
    ["deliveries", webhook.id, filters.values],
    (after, signal) => api.deliveries(webhook.id, { ...filters.values, starting_after: after }, signal),
    { refetchInterval: READ_AGAIN_MS },
  );
  const { event_type: type, created_after: after, created_before: before } = filters.values;
  const isNarrowed = [type, after, before].some((value) => value !== undefined);
  return (
    <>
      <Filters filters={filters} hasTexts={false}>
        <ChoiceFilter label="Deliveries" name="status" filters={filters} choices={STATUSES} any="all" />
        <ChoiceFilter label="Event" name="event_type" filters={filters} choices={TYPES} />
        <TimeFilter label="After" name="created_after" filters={filters} />
        <TimeFilter label="Before" name="created_before" filters={filters} />
      </Filters>
      {!isNarrowed && <RetryAll pages={pages} />}
      <Listed
        pages={pages}
        noun="deliveries"
        empty={
          filters.isSet ? (
            <p>No delivery matches.</p>
          ) : (
            <p>
              No delivery yet. The button Test posts one, or <code>POST /v1/webhooks/{webhook.id}/test</code>.
            </p>
          )
        }
        element="ul"
        class="rows"
      >
        {(deliveries) => deliveries.map((delivery) => <DeliveryItem key={delivery.id} delivery={delivery} />)}
      </Listed>
    </>
  );
}

function Dialogs({ webhook, opened }: { webhook: WebhookRecord; opened: Signal<Opened> }) {
  const props = { webhook, onClose: () => void (opened.value = null) };
  switch (opened.value) {
    case "test":
      return <TestWebhook {...props} />;
    case "edit":
      return <EditWebhook {...props} />;
    case "rotate":
      return <RotateSecret {...props} />;
    case "recover":
      return <RecoverDeliveries {...props} />;
    case "delete":
      return <DeleteWebhook {...props} />;
    default:
      return null;
  }
}
