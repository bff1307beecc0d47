/**
 * Further actions behind one button. The browser's popover closes with Escape and when one clicks elsewhere, and lies above
 * whatever would cut it off.
 *
 * @module
 */
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

const GAP = 4;

export function More({ label = "More actions", children }: { label?: string; children: ComponentChildren }) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  /** Below the button, or above it where there is no space. */
  const place = () => {
    if (button.current === null || menu.current === null) return;
    const { top, bottom, right } = button.current.getBoundingClientRect();
    const { style, offsetHeight } = menu.current;
    style.top = `${bottom + GAP + offsetHeight > innerHeight ? Math.max(GAP, top - GAP - offsetHeight) : bottom + GAP}px`;
    style.right = `${Math.max(GAP, document.documentElement.clientWidth - right)}px`;
  };
  return (
    <>
      <button ref={button} type="button" class="more" popoverTarget={id} aria-label={label} title={label}>
        ⋯
      </button>
      <div ref={menu} id={id} class="menu-list" popover="auto" onToggle={place} onClick={() => menu.current?.hidePopover()}>
        {children}
      </div>
    </>
  );
}
