/**
 * Short notes on what was just done. One with an action stays until it is used or closed: nobody has to be quick.
 *
 * @module
 */
import { signal } from "@preact/signals";
import { withLocalTimes } from "./time.tsx";

const SHOWN_MS = 6_000;
const AT_ONCE = 3;

interface Toast {
  readonly text: string;
  readonly action?: { readonly label: string; run(): void } | undefined;
}

const toasts = signal<readonly Toast[]>([]);

export function toast(text: string, action?: Toast["action"]): void {
  const added = { text, action };
  toasts.value = [...toasts.value, added].slice(-AT_ONCE);
  if (action === undefined) setTimeout(() => close(added), SHOWN_MS);
}

function close(closed: Toast): void {
  toasts.value = toasts.value.filter((shown) => shown !== closed);
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map((shown, index) => (
        <div class="toast" key={index}>
          <span>{withLocalTimes(shown.text)}</span>
          {shown.action !== undefined && (
            <button
              class="link"
              onClick={() => {
                shown.action?.run();
                close(shown);
              }}
            >
              {shown.action.label}
            </button>
          )}
          <button class="icon" aria-label="Close" onClick={() => close(shown)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
