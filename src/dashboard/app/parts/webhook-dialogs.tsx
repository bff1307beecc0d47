/**
 * Creating, testing, changing and deleting webhooks.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useEffect } from "preact/hooks";
import { api, type DeliveryDetails, type Webhook } from "../api.ts";
import { changed, useQuery } from "../query.ts";
import { counted } from "../words.ts";
import { CopyButton } from "./copy.tsx";
import { Attempts } from "./delivery.tsx";
import { Dialog } from "./dialog.tsx";
import { ChecksField, Form, ReasonField, TextField } from "./form.tsx";
import { Loading, Problem } from "./list.tsx";
import { Secret } from "./secret.tsx";
import { recoverSince } from "./retry-all.tsx";
import { localTime } from "./time.tsx";
import { toast } from "./toast.tsx";

/** A type says that none is forgotten. */
export const EVENTS = Object.fromEntries(
  Object.keys({
    "session.created": 0,
    "session.updated": 0,
    "session.expired": 0,
    "session.deleted": 0,
    "turn.added": 0,
    "memory.created": 0,
    "memory.expired": 0,
    "memory.superseded": 0,
    "backup.created": 0,
    "backup.failed": 0,
    "trace.created": 0,
    "trace.rollback": 0,
    "trace.error": 0,
  } satisfies Record<Webhook["events"][number], 0>).map((event) => [event, event]),
);

interface Written {
  url: Signal<string>;
  events: Signal<readonly string[]>;
  description: Signal<string>;
}

function useWritten(webhook?: Webhook): Written {
  return {
    url: useSignal(webhook?.url ?? ""),
    events: useSignal<readonly string[]>(webhook?.events ?? ["turn.added"]),
    description: useSignal(webhook?.description ?? ""),
  };
}

function WebhookFields({ written: { url, events, description } }: { written: Written }) {
  return (
    <>
      <TextField label="URL" name="url" value={url} placeholder="https://agents.example.com/hooks" required />
      <ChecksField label="Events" name="events" values={events} choices={EVENTS} />
      <TextField label="Description" name="description" value={description} hint="What it is for." />
    </>
  );
}

export function CreateWebhook({ onClose }: { onClose: () => void }) {
  const written = useWritten();
  const secret = useSignal<string | null>(null);
  const submit = async () => {
    const { url, events, description } = written;
    const made = await api.createWebhook({
      url: url.value,
      events: events.value,
      ...(description.value !== "" && { description: description.value }),
    });
    await changed(["webhooks"]);
    secret.value = made.secret ?? "";
  };
  if (secret.value !== null) return <SigningSecret value={secret.value} onClose={onClose} />;
  return (
    <Dialog title="Create a webhook" onClose={onClose}>
      <Form submit="Create" onSubmit={submit} disabled={written.events.value.length === 0}>
        <WebhookFields written={written} />
      </Form>
    </Dialog>
  );
}

const VERIFY = `import { createHmac, timingSafeEqual } from "node:crypto";
export function isFromCairn(secret, body, signature) {
  const expected = createHmac("sha256", secret).update(body).digest();
  const given = Buffer.from(signature, "hex");
  return given.length === expected.length && timingSafeEqual(given, expected);
}`;

function SigningSecret({ value, onClose }: { value: string; onClose: () => void }) {
  return (
    <Secret title="The signing secret" what="secret" value={value} onClose={onClose}>
      <p>
        Verify what comes in with any library for Standard Webhooks, or by hand, with the body as it came and the header{" "}
        <code>X-Webhook-Signature</code>:
      </p>
      <div class="json">
        <CopyButton label="Copy sample" text={VERIFY} />
        <pre tabIndex={0} role="region" aria-label="How to verify a signature">
          {VERIFY}
        </pre>
      </div>
    </Secret>
  );
}

interface DialogProps {
  webhook: Webhook;
  onClose: () => void;
}

export function EditWebhook({ webhook, onClose }: DialogProps) {
  const written = useWritten(webhook);
  const submit = async () => {
    const { url, events, description } = written;
    await api.updateWebhook(webhook.id, { url: url.value, events: events.value, description: description.value });
    await changed(["webhook", webhook.id], ["webhooks"]);
    onClose();
    toast("Webhook saved");
  };
  return (
    <Dialog title="Edit webhook" onClose={onClose}>
      <Form submit="Save" onSubmit={submit} disabled={written.events.value.length === 0}>
        <WebhookFields written={written} />
      </Form>
    </Dialog>
  );
}

export function RotateSecret({ webhook, onClose }: DialogProps) {
  const secret = useSignal<string | null>(null);
  const submit = async () => {
    const made = await api.rotateSecret(webhook.id);
    await changed(["webhook", webhook.id]);
    secret.value = made.secret ?? "";
  };
  if (secret.value !== null) return <SigningSecret value={secret.value} onClose={onClose} />;
  return (
    <Dialog title="Rotate secret" onClose={onClose}>
      <Form submit="Rotate" onSubmit={submit}>
        <p>The old secret keeps signing together with the new one for a day.</p>
      </Form>
    </Dialog>
  );
}

const LOOK_MS = 300;

/** Posts one event, and shows what came back as soon as it has. */
export function TestWebhook({ webhook, onClose }: DialogProps) {
  const deliveryId = useSignal<string | undefined>(undefined);
  const refused = useSignal<Error | null>(null);
  useEffect(() => {
    api.testWebhook(webhook.id).then(
      ({ id }) => (deliveryId.value = id),
      (error: Error) => (refused.value = error),
    );
  }, []);
  const details = useQuery<DeliveryDetails>({
    queryKey: ["delivery", deliveryId.value],
    enabled: deliveryId.value !== undefined,
    refetchInterval: ({ state }) => (state.data?.status === "pending" ? LOOK_MS : false),
    queryFn: ({ signal }) => api.delivery(webhook.id, deliveryId.value ?? "", signal),
  });
  const done = details.data?.status === "pending" ? undefined : details.data;
  const isDone = done !== undefined;
  useEffect(() => {
    if (isDone) void changed(["deliveries"], ["webhook", webhook.id]);
  }, [isDone]);
  const error = refused.value ?? details.error;
  return (
    <Dialog title="Test" onClose={onClose} wide>
      <div class="stack" aria-live="polite">
        {error !== null && <Problem error={error} />}
        {error === null && !isDone && <Loading />}
        {done !== undefined && (
          <>
            <p>{done.status === "delivered" ? "The receiver took the event." : "The receiver did not take the event."}</p>
            <Attempts attempts={done.recent_attempts} />
          </>
        )}
      </div>
    </Dialog>
  );
}

export function RecoverDeliveries({ webhook, onClose }: DialogProps) {
  const since = useSignal(webhook.failing_since === null ? "" : localTime(webhook.failing_since));
  const submit = async () => {
    const recovered = await recoverSince(webhook.id, new Date(since.value).toISOString());
    onClose();
    toast(`${counted(recovered, "deliveries")} made again`);
  };
  return (
    <Dialog title="Recover failed deliveries" onClose={onClose}>
      <Form submit="Recover" onSubmit={submit}>
        <p class="quiet">What has failed since then is made again, with all retries, the oldest first.</p>
        <TextField label="Since" name="since" value={since} type="datetime-local" required />
      </Form>
    </Dialog>
  );
}

export function DeleteWebhook({ webhook, onClose }: DialogProps) {
  const { route } = useLocation();
  const reason = useSignal("");
  const submit = async () => {
    await api.deleteWebhook(webhook.id, reason.value);
    route("/dashboard/webhooks");
    await changed(["webhooks"]);
    toast("Webhook deleted");
  };
  return (
    <Dialog title="Delete this webhook" onClose={onClose}>
      <Form submit="Delete" danger onSubmit={submit}>
        <p>Events that are not delivered yet are dropped.</p>
        <ReasonField value={reason} />
      </Form>
    </Dialog>
  );
}
