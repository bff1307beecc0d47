/**
 * A modal dialog: the browser's own, which keeps the focus inside, closes with Escape and gives the focus back.
 *
 * @module
 */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  wide?: boolean;
}

export function Dialog({ title, onClose, children, wide = false }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
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
  return (
    <dialog ref={element} class={wide ? "wide" : ""} aria-labelledby={titleId} onClose={onClose}>
      <h2 id={titleId}>{title}</h2>
      {children}
      {/* At the end, so that the first field gets the focus. */}
      <button type="button" class="icon close" aria-label="Close" onClick={() => element.current?.close()}>
        ×
      </button>
    </dialog>
  );
}
