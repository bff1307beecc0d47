/**
 * One delivery as a line that opens: what was posted, and what each attempt got.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { api, type Delivery, type DeliveryDetails } from "../api.ts";
import { changed, useQuery } from "../query.ts";
import { counted } from "../words.ts";
import { Id } from "./copy.tsx";
import { Facts } from "./facts.tsx";
import { Json } from "./json.tsx";
import { Loaded } from "./list.tsx";
import { LongText } from "./long-text.tsx";
import { Time } from "./time.tsx";
import { toast } from "./toast.tsx";

/** A delivery is failing from its first failed attempt on, and given up once none follows. */
const STATES = {
  pending: { sign: "…", colour: "quiet", says: "pending" },
  failing: { sign: "✗", colour: "bad", says: "failing" },
  delivered: { sign: "✓", colour: "good", says: "delivered" },
  failed: { sign: "✗", colour: "bad", says: "given up" },
} as const;

function stateOf({ status, failed_attempts }: Delivery) {
  return STATES[status === "pending" && failed_attempts > 0 ? "failing" : status];
}

interface DeliveryItemProps {
  delivery: Delivery;
  /** Given for one that is open from the beginning; read when it is opened otherwise. */
  details?: DeliveryDetails;
  namesWebhook?: boolean;
}

export function DeliveryItem({ delivery, details, namesWebhook = false }: DeliveryItemProps) {
  const isOpen = useSignal(details !== undefined);
  const { id, webhook_id, event_type, attempts, created_at, next_attempt_at, response_code } = delivery;
  const { sign, colour, says } = stateOf(delivery);
  const retry = () => {
    api.retryDelivery(webhook_id, id).then(
      () => changed(["deliveries"], ["delivery", id], ["webhook", webhook_id], ["stats"]),
      (error: Error) => toast(error.message),
    );
  };
  return (
    <li data-row tabIndex={-1}>
      <details open={isOpen} onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
        <summary>
          <Time at={created_at} />
          <b>{event_type}</b>
          <span class={colour}>
            {sign} {says} {response_code ?? ""}
          </span>
          <span class="quiet">
            {counted(attempts, "attempts")}
            {next_attempt_at !== null && (
              <>
                , {attempts === 0 ? "first" : "next"} <Time at={next_attempt_at} />
              </>
            )}
          </span>
        </summary>
        {isOpen.value && (details === undefined ? <ReadDetails delivery={delivery} /> : <Details details={details} />)}
      </details>
      {namesWebhook && (
        <a href={`/dashboard/webhooks/${webhook_id}`}>
          <code>{webhook_id}</code>
        </a>
      )}
      <button class="small" onClick={retry}>
        Retry now
      </button>
    </li>
  );
}

function ReadDetails({ delivery: { id, webhook_id, attempts } }: { delivery: Delivery }) {
  const result = useQuery({
    queryKey: ["delivery", id, attempts],
    queryFn: ({ signal }) => api.delivery(webhook_id, id, signal),
  });
  return <Loaded result={result}>{(details) => <Details details={details} />}</Loaded>;
}

function Details({ details: { id, webhook_id, event_id, session_id, recent_attempts, payload } }: { details: DeliveryDetails }) {
  return (
    <div class="stack opened">
      <Facts
        facts={{
          Delivery: (
            <a href={`/dashboard/webhooks/${webhook_id}?delivery=${id}`}>
              <code>{id}</code>
            </a>
          ),
          Event: <Id id={event_id} />,
          Session:
            session_id === undefined ? null : (
              <a href={`/dashboard/sessions/${session_id}`}>
                <code>{session_id}</code>
              </a>
            ),
        }}
      />
      <div class="whole">
        <section class="stack" aria-label="Request">
          <h2>Request</h2>
          <Json value={payload} label="Payload" />
        </section>
        <section class="stack" aria-label="Responses">
          <h2>{recent_attempts.length === 1 ? "Response" : "Responses"}</h2>
          <Attempts attempts={recent_attempts} />
        </section>
      </div>
    </div>
  );
}

export function Attempts({ attempts }: { attempts: DeliveryDetails["recent_attempts"] }) {
  if (attempts.length === 0) return <p class="quiet">No attempt yet.</p>;
  return (
    <ol class="attempts">
      {attempts.map(({ at, duration_ms, response_code, response_body, response_withheld, error }) => (
        <li key={at}>
          <p class="row">
            <Time at={at} />
            <span class={error === null ? "good" : "bad"}>
              {error === null ? "✓" : "✗"} {response_code ?? "no answer"}
            </span>
            <span class="quiet">{Math.round(duration_ms)} ms</span>
            {error !== null && <span>{error}</span>}
          </p>
          {response_withheld && <p class="quiet">Answer withheld: private address.</p>}
          {response_body !== null && response_body !== "" && (
            <div class="mono">
              <LongText text={response_body} />
            </div>
          )}
        </li>
      ))}
    </ol>
  );
}
