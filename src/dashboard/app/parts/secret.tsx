/**
 * A secret, shown this once: the server does not have it any more.
 *
 * @module
 */
import type { ComponentChildren } from "preact";
import { CopyButton } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

interface SecretProps {
  title: string;
  /** Kind of secret: `key`, `secret`. */
  what: string;
  value: string;
  onClose: () => void;
  /** Use of it. */
  children?: ComponentChildren;
}

export function Secret({ title, what, value, onClose, children }: SecretProps) {
  return (
    <Dialog title={title} onClose={onClose} wide={children !== undefined} asks={`Close? This ${what} is never shown again.`}>
      <div class="stack">
        <p>This {what} is shown now and never again. Copy it to where it is used.</p>
        <p class="row secret">
          <code>{value}</code>
          <CopyButton text={value} />
        </p>
        {children}
        <p class="row">
          <button class="primary" onClick={onClose}>
            I saved it
          </button>
        </p>
      </div>
    </Dialog>
  );
}
