/**
 * A modal dialog: the browser's own, which keeps the focus inside and gives it back.
 *
 * Nothing closes one that holds what would be lost, a secret that is shown once or what a person has written, before that person has
 * said so: Escape, the button × and the gesture that goes back on a phone ask first. A click outside closes none.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
  /** Question about what is lost when it closes; about what was written in it, unless given. */
  asks?: string;
}

export function Dialog({ title, onClose, children, wide = false, asks }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const isWritten = useRef(false);
  const isAsking = useSignal(false);
  const titleId = useId();
  useLayoutEffect(() => {
    const { activeElement: opener } = document;
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      // Not when the focus has moved on since the dialog was closed.
      const { activeElement, body } = document;
      const isLost = activeElement === body || dialog?.contains(activeElement) === true;
      if (isLost && opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  const leave = (event: Event) => {
    event.preventDefault();
    // A second Escape takes the question back: it must not be the answer to it.
    if (asks !== undefined || isWritten.current) isAsking.value = !isAsking.value;
    else element.current?.close();
  };
  return (
    <dialog
      ref={element}
      class={wide ? "wide" : ""}
      aria-labelledby={titleId}
      onClose={onClose}
      onCancel={leave}
      // The browser asks `cancel` only once: a second Escape would close the dialog whatever that says.
      onKeyDown={(event) => event.key === "Escape" && !event.defaultPrevented && leave(event)}
      // A switch outside of a form takes effect at once.
      onInput={({ target }) => (isWritten.current ||= target instanceof Element && target.closest("form") !== null)}
    >
      <h2 id={titleId}>{title}</h2>
      {children}
      {isAsking.value && (
        <Question
          text={asks ?? "Discard what you have written?"}
          yes={asks === undefined ? "Discard" : "Close"}
          onYes={() => element.current?.close()}
          onNo={() => (isAsking.value = false)}
        />
      )}
      {/* At the end, so that the first field gets the focus. */}
      <button type="button" class="icon close" aria-label="Close" onClick={leave}>
        ×
      </button>
    </dialog>
  );
}

/** Has the focus on the answer that changes nothing, and gives it back. */
function Question({ text, yes, onYes, onNo }: { text: string; yes: string; onYes: () => void; onNo: () => void }) {
  const no = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    const { activeElement: before } = document;
    no.current?.focus();
    return () => before instanceof HTMLElement && before.isConnected && before.focus();
  }, []);
  return (
    <div class="question" role="alert">
      <p>{text}</p>
      <p class="row">
        <button type="button" ref={no} onClick={onNo}>
          Stay here
        </button>
        <button type="button" class="danger" onClick={onYes}>
          {yes}
        </button>
      </p>
    </div>
  );
}
