/**
 * Draft of a value that lives elsewhere, such as in the address, until it is taken over there.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";

/**
 * Begins with the value, and again whenever that changes: before the next paint, since an effect after it takes back what a person
 * did in between. A field shows this instead of the value itself, or drawing it again for another reason empties it.
 */
export function useDraft<Value>(value: Value): Signal<Value> {
  const draft = useSignal(value);
  useLayoutEffect(() => void (draft.value = value), [value]);
  return draft;
}
