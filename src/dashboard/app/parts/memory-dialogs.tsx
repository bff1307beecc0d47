/**
 * Adding, changing and deleting memories.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { api, type Memory } from "../api.ts";
import { changed } from "../query.ts";
import { Dialog } from "./dialog.tsx";
import { Form, ReasonField, TextField } from "./form.tsx";
import { JsonField, parsedObject } from "./json.tsx";
import { toast } from "./toast.tsx";

export const MEMORY_TYPES = ["fact", "preference", "event", "policy", "observation", "general"];

interface Written {
  content: Signal<string>;
  type: Signal<string>;
  tags: Signal<string>;
  metadata: Signal<string>;
}

function useWritten(memory?: Memory): Written {
  return {
    content: useSignal(memory?.content ?? ""),
    type: useSignal(memory?.type ?? "general"),
    tags: useSignal(memory?.tags.join(", ") ?? ""),
    metadata: useSignal(JSON.stringify(memory?.metadata ?? {}, null, 2)),
  };
}

const tagsOf = (text: string) => text.split(",").flatMap((tag) => tag.trim() || []);

function MemoryFields({ written: { content, type, tags, metadata } }: { written: Written }) {
  return (
    <>
      <TextField label="Content" name="content" value={content} rows={4} required />
      <TextField label="Type" name="type" value={type} suggestions={MEMORY_TYPES} required />
      <TextField label="Tags" name="tags" value={tags} hint="With commas between them." />
      <JsonField label="Metadata" name="metadata" text={metadata} rows={4} />
    </>
  );
}

export function AddMemory({ sessionId, onClose }: { sessionId: string; onClose: () => void }) {
  const session = useSignal(sessionId);
  const user = useSignal("");
  const written = useWritten();
  const { value } = parsedObject(written.metadata.value);
  const submit = async () => {
    const { content, type, tags } = written;
    await api.addMemory({
      ...(session.value.trim() !== "" && { session_id: session.value.trim() }),
      ...(user.value !== "" && { user_id: user.value }),
      content: content.value,
      type: type.value,
      tags: tagsOf(tags.value),
      metadata: value,
    });
    await changed(["memories"], ["sessions"], ["session", session.value.trim()]);
    onClose();
    toast("Memory added");
  };
  return (
    <Dialog title="Add a memory" onClose={onClose} wide>
      <Form submit="Add" onSubmit={submit} disabled={value === undefined}>
        <TextField label="Session" name="session_id" value={session} placeholder="sess_…" hint="Without one the memory is the user’s." />
        <TextField label="User" name="user_id" value={user} hint="With a session it is that of the session." />
        <MemoryFields written={written} />
      </Form>
    </Dialog>
  );
}

/** Metadata is merged by the API: a name that is gone has to be sent as null. */
export function EditMemory({ memory, onClose }: { memory: Memory; onClose: () => void }) {
  const written = useWritten(memory);
  const { value } = parsedObject(written.metadata.value);
  const submit = async () => {
    const gone = Object.keys(memory.metadata).filter((name) => value !== undefined && !Object.hasOwn(value, name));
    await api.updateMemory(memory.id, {
      content: written.content.value,
      type: written.type.value,
      tags: tagsOf(written.tags.value),
      metadata: { ...Object.fromEntries(gone.map((name) => [name, null])), ...value },
    });
    await changed(["memories"], ["timeline"], ["session", memory.session_id ?? ""]);
    onClose();
    toast("Memory saved");
  };
  return (
    <Dialog title="Edit memory" onClose={onClose} wide>
      <Form submit="Save" onSubmit={submit} disabled={value === undefined}>
        <MemoryFields written={written} />
      </Form>
    </Dialog>
  );
}

/** A newer memory of the same owner, which takes the place of this one from now on. The old one stays readable as what was. */
export function SupersedeMemory({ memory, onClose }: { memory: Memory; onClose: () => void }) {
  const { id, session_id, user_id, agent_id, type, tags } = memory;
  const content = useSignal(memory.content);
  const reason = useSignal("");
  const owner = session_id === null ? { ...(user_id !== null && { user_id }), ...(agent_id !== null && { agent_id }) } : { session_id };
  const submit = async () => {
    const why = reason.value.trim();
    await api.addMemory({ ...owner, content: content.value, type, tags, supersedes: [id], ...(why !== "" && { reason: why }) });
    await changed(["memories"], ["sessions"], ["session", session_id ?? ""]);
    onClose();
    toast("Superseded");
  };
  return (
    <Dialog title="Supersede this memory" onClose={onClose} wide>
      <Form submit="Supersede" onSubmit={submit} disabled={content.value.trim() === "" || content.value === memory.content}>
        <blockquote>{memory.content.slice(0, 300)}</blockquote>
        <TextField label="What holds now" name="content" value={content} rows={4} required />
        <ReasonField value={reason} />
      </Form>
    </Dialog>
  );
}

export function DeleteMemory({ memory, onClose }: { memory: Memory; onClose: () => void }) {
  const reason = useSignal("");
  const submit = async () => {
    await api.deleteMemory(memory.id, reason.value);
    await changed(["memories"], ["sessions"], ["session", memory.session_id ?? ""]);
    onClose();
    toast("Memory deleted");
  };
  return (
    <Dialog title="Delete this memory" onClose={onClose}>
      <Form submit="Delete" danger onSubmit={submit}>
        <blockquote>{memory.content.slice(0, 300)}</blockquote>
        <ReasonField value={reason} />
      </Form>
    </Dialog>
  );
}
