/**
 * A button that edits a memory where it is read: in a timeline, or among what was found.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { api, type Memory } from "../api.ts";
import { EditMemory } from "./memory-dialogs.tsx";
import { toast } from "./toast.tsx";

export function CorrectMemory({ id }: { id: string }) {
  const opened = useSignal<Memory | null>(null);
  const open = () => {
    api.memory(id).then(
      (memory) => (opened.value = memory),
      (error: Error) => toast(error.message),
    );
  };
  return (
    <>
      <button class="small" onClick={open}>
        Edit
      </button>
      {opened.value !== null && <EditMemory memory={opened.value} onClose={() => (opened.value = null)} />}
    </>
  );
}
