/**
 * Sign that the page is live: a word stands with the dot, so that its colour says nothing alone.
 *
 * @module
 */

export function LiveSign({ isOpen }: { isOpen: boolean }) {
  return (
    <span class={isOpen ? "live quiet" : "live quiet off"} role="status">
      <span aria-hidden="true">{isOpen ? "●" : "○"}</span> {isOpen ? "live" : "not live"}
    </span>
  );
}
