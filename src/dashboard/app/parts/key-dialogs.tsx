/**
 * Creating, rolling and revoking API keys.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { api, type ApiKey, type Scope } from "../api.ts";
import { useMe } from "../access.ts";
import { changed } from "../query.ts";
import { forgetKey } from "../session.ts";
import { Dialog } from "./dialog.tsx";
import { CheckField, ChecksField, ChoiceField, Form, ReasonField, TextField } from "./form.tsx";
import { Secret } from "./secret.tsx";
import { toast } from "./toast.tsx";

const SCOPES: Record<Scope, string> = {
  read: "Read: all records, searches, contexts",
  write: "Write: add, change and delete records",
  admin: "Admin: keys, webhooks, settings; includes the others",
};
/** Limits of a tier: its name says nothing to somebody who runs a server of their own. */
const TIERS: Record<ApiKey["tier"], string> = {
  enterprise: "60,000 a minute; as the settings say",
  pro: "1,000 a minute; 90 days (tier pro)",
  free: "100 a minute; 7 days (tier free)",
};

/** For a user's or an agent's records alone, which no admin key is: what was written stays, and it says why it cannot be. */
function OwnerFields({ user, agent, isAdmin }: { user: Signal<string>; agent: Signal<string>; isAdmin: boolean }) {
  const wrong = (owner: string) => (isAdmin && owner !== "" ? NOT_BOUND : undefined);
  return (
    <>
      <TextField
        label="Bound to user"
        name="user_id"
        value={user}
        wrong={wrong(user.value)}
        hint="It sees and changes only the records of this user. Empty: of all users."
      />
      <TextField
        label="Bound to agent"
        name="agent_id"
        value={agent}
        wrong={wrong(agent.value)}
        hint="It sees and changes only the records of this agent. Empty: of all agents."
      />
    </>
  );
}
const NOT_BOUND = "A key that may do what Admin allows manages all keys and cannot be bound. Empty this field, or take Admin away.";

/** @param userId - the user to whom it is bound, unless that is changed */
export function CreateKey({ userId = "", onClose }: { userId?: string; onClose: () => void }) {
  const name = useSignal("");
  const scopes = useSignal<readonly string[]>(["read", "write"]);
  const tier = useSignal<string>("enterprise");
  const user = useSignal(userId);
  const agent = useSignal("");
  const perMinute = useSignal("");
  const expires = useSignal("");
  const shown = useSignal<string | null>(null);
  const submit = async () => {
    const rate = Number(perMinute.value);
    const made = await api.createKey({
      ...(name.value !== "" && { name: name.value }),
      scopes: scopes.value,
      tier: tier.value,
      ...(user.value !== "" && { user_id: user.value }),
      ...(agent.value !== "" && { agent_id: agent.value }),
      ...(tier.value === "enterprise" && rate > 0 && { rate_limit: { per_minute: rate, burst: 2 * rate } }),
      ...(expires.value !== "" && { expires_at: new Date(expires.value).toISOString() }),
    });
    await changed(["keys"]);
    shown.value = made.key ?? "";
  };
  if (shown.value !== null) return <Secret title="The new key" what="key" value={shown.value} onClose={onClose} />;
  const isAdmin = scopes.value.includes("admin");
  const isRefused = isAdmin && user.value + agent.value !== "";
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <Form submit="Create" onSubmit={submit} disabled={scopes.value.length === 0 || isRefused}>
        <TextField label="Name" name="name" value={name} placeholder="support agent" hint="What it is for." />
        <ChecksField label="Scopes" name="scopes" values={scopes} choices={SCOPES} />
        <OwnerFields {...{ user, agent, isAdmin }} />
        <ChoiceField label="Requests, and how long traces stay" name="tier" value={tier} choices={TIERS} />
        {tier.value === "enterprise" && (
          <TextField
            label="Requests a minute"
            name="rate_limit"
            value={perMinute}
            type="number"
            hint="After a pause twice as many at once. Empty: 60,000."
          />
        )}
        <TextField label="Expires" name="expires_at" value={expires} type="datetime-local" hint="Empty: never." />
      </Form>
    </Dialog>
  );
}

const OVERLAPS = { "0": "at once", "3600": "after an hour", "86400": "after a day", "604800": "after a week" };

export function RollKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const overlap = useSignal("86400");
  const shown = useSignal<string | null>(null);
  const submit = async () => {
    const made = await api.rollKey(apiKey.id, { overlap_seconds: Number(overlap.value) });
    await changed(["keys"]);
    shown.value = made.key ?? "";
  };
  if (shown.value !== null) return <Secret title="The new key" what="key" value={shown.value} onClose={onClose} />;
  return (
    <Dialog title={`Roll ${apiKey.name ?? apiKey.prefix}`} onClose={onClose}>
      <Form submit="Roll" onSubmit={submit}>
        <p class="quiet">A new key with the same rights replaces it.</p>
        <ChoiceField label="Old key expires" name="overlap_seconds" value={overlap} choices={OVERLAPS} />
      </Form>
    </Dialog>
  );
}

interface Ending {
  title?: string;
  submit: string;
  effect: string;
  done: string;
}

const REVOKE: Ending = {
  submit: "Revoke",
  effect: "It ends at once, and signs out the browsers and disconnects the applications that were let in with it.",
  done: "Key revoked",
};
const ENDINGS: Record<ApiKey["kind"], Ending> = {
  key: REVOKE,
  link: REVOKE,
  session: { title: "Sign out this browser", submit: "Sign out", effect: "Its key ends at once.", done: "Signed out" },
  oauth: { submit: "Disconnect", effect: "Its tokens end at once. It can ask again.", done: "Disconnected" },
};

export function RevokeKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const reason = useSignal("");
  const force = useSignal(false);
  const isMine = useMe()?.id === apiKey.id;
  const { title, submit: label, effect, done } = ENDINGS[apiKey.kind];
  const submit = async () => {
    await api.revokeKey(apiKey.id, { reason: reason.value, force: String(force.value) });
    onClose();
    if (isMine) return forgetKey();
    await changed(["keys"]);
    toast(done);
  };
  return (
    <Dialog title={title ?? `${label} ${apiKey.name ?? apiKey.prefix}`} onClose={onClose}>
      <Form submit={label} danger onSubmit={submit}>
        <p>{effect}</p>
        <ReasonField value={reason} />
        {apiKey.scopes.includes("admin") && apiKey.kind === "key" && (
          <CheckField
            label="Even if it is the last admin key"
            name="force"
            value={force}
            hint="Then only cairn keys create makes another one."
          />
        )}
      </Form>
    </Dialog>
  );
}
