/**
 * One webhook with its deliveries: what was posted, what came back, and once more.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useRoute } from "preact-iso";
import { api, type Webhook as WebhookRecord } from "../api.ts";
import { DeliveryItem } from "../parts/delivery.tsx";
import { Facts } from "../parts/facts.tsx";
import { ChoiceFilter, Filters, useFilters } from "../parts/filters.tsx";
import { Listed, Loaded } from "../parts/list.tsx";
import { More } from "../parts/more.tsx";
import { Page } from "../parts/page.tsx";
import { WebhookDay } from "../parts/webhook-day.tsx";
import { DeleteWebhook, EditWebhook, RecoverDeliveries, RotateSecret, TestWebhook } from "../parts/webhook-dialogs.tsx";
import { WebhookState } from "../parts/webhook-state.tsx";
import { changed, usePages, useQuery } from "../query.ts";

const STATUSES = ["pending", "delivered", "failed"];
const READ_AGAIN_MS = 5_000;

type Opened = "test" | "edit" | "rotate" | "recover" | "delete" | null;

export default function Webhook() {
  const { params } = useRoute();
  const id = params["id"] ?? "";
  const result = useQuery({ queryKey: ["webhook", id], queryFn: ({ signal }) => api.webhook(id, signal) });
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
            <Deliveries webhook={webhook} />
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
        <button onClick={() => (opened.value = "recover")}>Recover failed ones</button>
        <button class="danger" onClick={() => (opened.value = "delete")}>
          Delete
        </button>
      </More>
    </>
  );
}

function Deliveries({ webhook }: { webhook: WebhookRecord }) {
  const filters = useFilters(`webhooks/${webhook.id}`, ["status"]);
  const pages = usePages(
    ["deliveries", webhook.id, filters.values],
    (after, signal) => api.deliveries(webhook.id, { ...filters.values, starting_after: after }, signal),
    { refetchInterval: READ_AGAIN_MS },
  );
  return (
    <>
      <Filters filters={filters}>
        <ChoiceFilter label="Deliveries" name="status" filters={filters} choices={STATUSES} any="all" />
      </Filters>
      <Listed
        pages={pages}
        noun="deliveries"
        empty={<p>No delivery {filters.isSet ? "of this status" : "yet"}. A test posts one.</p>}
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
