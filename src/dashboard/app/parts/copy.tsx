/**
 * Ids and other texts that are copied with a click.
 *
 * @module
 */
import { toast } from "./toast.tsx";

/** The clipboard is there on HTTPS and loopback only; elsewhere the older command does it. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const { activeElement } = document;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "offscreen";
  // A modal dialog makes everything outside of it inert.
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  field.select();
  // oxlint-disable-next-line typescript/no-deprecated -- nothing else works without a secure context
  const done = document.execCommand("copy");
  field.remove();
  if (activeElement instanceof HTMLElement) activeElement.focus();
  return done;
}

async function copyAndSay(text: string): Promise<void> {
  toast((await copy(text)) ? "Copied" : "The browser does not allow copying");
}

/** An id, which a click copies. */
export function Id({ id }: { id: string }) {
  return (
    <button class="id" title="Copy" aria-label={`Copy ${id}`} onClick={() => void copyAndSay(id)}>
      {id}
    </button>
  );
}

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  return (
    <button type="button" class="small" onClick={() => void copyAndSay(text)}>
      {label}
    </button>
  );
}
