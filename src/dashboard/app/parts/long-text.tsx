/**
 * A text of any length, with its line breaks. A long one is cut until it is opened.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { number } from "../words.ts";

const SHOWN_LENGTH = 1_200;

export function LongText({ text }: { text: string }) {
  const isOpen = useSignal(false);
  if (text.length <= SHOWN_LENGTH) return <div class="text">{text}</div>;
  return (
    <div class="text">
      {isOpen.value ? text : text.slice(0, SHOWN_LENGTH)}
      <button class="link" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        {isOpen.value ? "Less" : `… all ${number(text.length)} characters`}
      </button>
    </div>
  );
}
