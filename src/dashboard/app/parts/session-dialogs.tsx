/**
 * Dialogs that change a session. A change names the version that it was made from, so that a faster one is not overwritten.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { api, CairnError, type Session } from "../api.ts";
import { changesBetween } from "../changes.ts";
import { changed, client, useQuery } from "../query.ts";
import { counted } from "../words.ts";
import { Changes } from "./changes.tsx";
import { Dialog } from "./dialog.tsx";
import { CheckField, Form, ReasonField, TextField } from "./form.tsx";
import { JsonField, parsedObject } from "./json.tsx";
import { Loaded } from "./list.tsx";
import { toast } from "./toast.tsx";

interface DialogProps {
  session: Session;
  onClose: () => void;
}

/** Takes over the answer of a change, and has the rest of the screen read again. */
async function took(session: Session): Promise<void> {
  client.setQueryData(["session", session.id], session);
  await changed(["sessions"]);
}

/**
 * The session as it was when the dialog opened, which is what its change starts from: what others do meanwhile must be a conflict.
 * After one it is the session as it is now, so that a second try means that.
 */
function useBase(session: Session) {
  const base = useSignal(session);
  const attempt = async (change: (base: Session) => Promise<Session>): Promise<Session> => {
    try {
      const now = await change(base.value);
      await took(now);
      return now;
    } catch (error) {
      if (error instanceof CairnError && error.status === 409) {
        await changed(["session", session.id]);
        base.value = client.getQueryData<Session>(["session", session.id]) ?? session;
      }
      throw error;
    }
  };
  return { base: base.value, attempt };
}

/** A state of a session by its number. It never changes. */
export function useVersion(id: string, version: number) {
  return useQuery({ queryKey: ["version", id, version], staleTime: Infinity, queryFn: ({ signal }) => api.version(id, version, signal) });
}

/** A new session from a version of this one, which is opened. */
export function Fork({ session, version, onClose }: DialogProps & { version: number }) {
  const { route } = useLocation();
  const takesTurns = useSignal(false);
  const takesMemories = useSignal(false);
  const submit = async () => {
    const made = await api.fork(session.id, {
      version,
      turns: takesTurns.value ? "all" : "none",
      memories: takesMemories.value ? "session" : "none",
    });
    await changed(["sessions"]);
    onClose();
    route(`/dashboard/sessions/${made.id}`);
    toast(`Forked from state ${version}`);
  };
  return (
    <Dialog title={`Fork from state ${version}`} onClose={onClose}>
      <Form submit="Fork" onSubmit={submit}>
        <p class="quiet">A new session begins with state {version}, the agent, the user and the metadata. This one stays as it is.</p>
        <CheckField
          label="With the turns of that time"
          name="turns"
          value={takesTurns}
          hint="They are shown there, too, and not copied. Turns that are logged later, in either session, are its own."
        />
        <CheckField
          label="With the memories of now"
          name="memories"
          value={takesMemories}
          hint={
            session.user_id === null
              ? "The same ones, not copies: what is changed in one session is seen in the other."
              : "In its list of memories. Its agent finds those of the user anyway."
          }
        />
      </Form>
    </Dialog>
  );
}

const turnsOf = (hides: boolean) => (hides ? { turns: "hide" as const } : {});

/** @param before - the version that a rollback has replaced; @param hides - whether it hid turns, which are to be shown again */
async function undo(now: Session, before: number, hides: boolean): Promise<void> {
  try {
    await took(await api.rollBack(now.id, { version: before, expected_version: now.state_version, ...turnsOf(hides) }));
    toast(`State ${before} is back`);
  } catch (error) {
    toast((error as Error).message);
  }
}

export function RollBack({ session, version, onClose }: DialogProps & { version: number }) {
  const reason = useSignal("");
  const hides = useSignal(false);
  const target = useVersion(session.id, version);
  const { base, attempt } = useBase(session);
  const submit = async () => {
    const why = reason.value === "" ? {} : { reason: reason.value };
    const now = await attempt(({ state_version }) =>
      api.rollBack(session.id, { version, expected_version: state_version, ...turnsOf(hides.value), ...why }),
    );
    onClose();
    toast(`Rolled back to state ${version}`, { label: "Undo", run: () => void undo(now, base.state_version, hides.value) });
  };
  return (
    <Dialog title={`Roll back to state ${version}`} onClose={onClose} wide>
      <Form submit="Roll back" onSubmit={submit} disabled={target.data === undefined}>
        <p class="quiet">
          State {base.state_version + 1} will hold what state {version} held. Nothing is lost: the history, the turns and the memories stay.
        </p>
        <Loaded result={target}>
          {({ state }) => <Changes changes={changesBetween(base.state, state)} unchanged="That state is the same as the current one." />}
        </Loaded>
        {session.turn_count > 0 && (
          <CheckField
            label="Hide the turns logged since"
            name="turns"
            value={hides}
            hint="The agent sees only those of that time; this page shows the others muted. Rolling back to a state before this one shows them again."
          />
        )}
        <ReasonField value={reason} />
      </Form>
    </Dialog>
  );
}

export function EditState({ session, onClose }: DialogProps) {
  const text = useSignal(JSON.stringify(session.state, null, 2));
  const reasoning = useSignal("");
  const { value } = parsedObject(text.value);
  const { base, attempt } = useBase(session);
  const submit = async () => {
    if (value === undefined) return;
    const why = reasoning.value === "" ? {} : { reasoning: reasoning.value };
    await attempt(({ state_version }) => api.setState(session.id, { state: value, expected_version: state_version, ...why }));
    onClose();
    toast("State saved");
  };
  return (
    <Dialog title="Edit state" onClose={onClose} wide>
      <Form submit={`Save as state ${base.state_version + 1}`} onSubmit={submit} disabled={value === undefined}>
        <JsonField label="State" name="state" text={text} rows={16} />
        {value !== undefined && <Changes changes={changesBetween(base.state, value)} unchanged="Nothing changed yet." />}
        <ReasonField label="Reasoning" name="reasoning" value={reasoning} />
      </Form>
    </Dialog>
  );
}

/** Time that a session gets that is to expire again, unless another time is given. */
const HOURS_DEFAULT = "24";

/** Metadata is merged by the API: a name that is gone has to be sent as null. */
export function EditSession({ session, onClose }: DialogProps) {
  const text = useSignal(JSON.stringify(session.metadata, null, 2));
  const hours = useSignal("");
  const isEndless = useSignal(session.ttl_expires_at === null);
  const { value } = parsedObject(text.value);
  const submit = async () => {
    if (value === undefined) return;
    const gone = Object.keys(session.metadata).filter((name) => !Object.hasOwn(value, name));
    const metadata = { ...Object.fromEntries(gone.map((name) => [name, null])), ...value };
    const given = hours.value === "" && session.ttl_expires_at === null ? HOURS_DEFAULT : hours.value;
    const ttl = given === "" ? {} : { ttl_seconds: Math.round(Number(given) * 3600) };
    await took(await api.updateSession(session.id, { metadata, ...(isEndless.value ? { ttl_seconds: "never" } : ttl) }));
    onClose();
    toast("Session saved");
  };
  return (
    <Dialog title="Metadata and expiry" onClose={onClose} wide>
      <Form submit="Save" onSubmit={submit} disabled={value === undefined}>
        <JsonField label="Metadata" name="metadata" text={text} />
        <TextField
          label="Expires in hours from now"
          name="ttl_seconds"
          value={hours}
          type="number"
          hint={`At most 30 days, which are 720 hours. Empty: ${session.ttl_expires_at === null ? `${HOURS_DEFAULT} hours` : "as it is"}.`}
        />
        <CheckField label="Never expires" name="never" value={isEndless} hint="It stays until somebody deletes it." />
      </Form>
    </Dialog>
  );
}

/** Sessions that this page deletes: it does not look at them again when it hears of that. */
export const deletedHere = new Set<string>();

export function DeleteSession({ session, onClose }: DialogProps) {
  const { route } = useLocation();
  const reason = useSignal("");
  const submit = async () => {
    deletedHere.add(session.id);
    await api.deleteSession(session.id, reason.value).catch((error: unknown) => {
      deletedHere.delete(session.id);
      throw error;
    });
    route("/dashboard/sessions");
    await changed(["sessions"]);
    toast("Session deleted");
  };
  return (
    <Dialog title="Delete this session" onClose={onClose}>
      <Form submit="Delete" danger onSubmit={submit}>
        <p>
          What is in it is deleted too: {counted(session.turn_count, "turns")}, {counted(session.state_version + 1, "states")},{" "}
          {counted(session.memory_count, "memories")}. This cannot be undone; the traces stay.
        </p>
        <ReasonField value={reason} />
      </Form>
    </Dialog>
  );
}
