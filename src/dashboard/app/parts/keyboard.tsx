/**
 * The keyboard: single keys that go somewhere, and a list that is walked with `j` and `k`. They are off in fields, in dialogs,
 * and altogether when switched off. A click on a row opens what its link or its summary opens.
 *
 * @module
 */
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { shortcutsOn, switchShortcuts } from "../session.ts";
import { Dialog } from "./dialog.tsx";

/** The second key after `g`, by the path that it goes to. */
export interface MenuItem {
  readonly path: string;
  readonly name: string;
  readonly letter: string;
}

const GO_MS = 1_500;
const helpIsOpen = signal(false);

export const openHelp = () => void (helpIsOpen.value = true);

/** Elements that `j` and `k` walk have this attribute; `Enter` presses the first thing in one that can be pressed. */
const ROWS = "[data-row]";

export function useKeyboard(places: readonly MenuItem[], go: (path: string) => void): void {
  const latest = useRef({ places, go });
  latest.current = { places, go };
  // Once: what is drawn between a `g` and the letter after it does not undo the `g`.
  useLayoutEffect(() => {
    let pressedG = 0;
    const onKey = (event: KeyboardEvent) => {
      if (!shortcutsOn.value || event.ctrlKey || event.metaKey || event.altKey || isElsewhere(event.target)) return;
      const afterG = event.timeStamp - pressedG < GO_MS;
      pressedG = event.key === "g" ? event.timeStamp : 0;
      const { places, go } = latest.current;
      const place = afterG ? places.find(({ letter }) => letter === event.key) : undefined;
      if (place !== undefined) go(place.path);
      else if (!actOn(event.key, go)) return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    addEventListener("click", openRow);
    return () => {
      removeEventListener("keydown", onKey);
      removeEventListener("click", openRow);
    };
  }, []);
}

/** In a field a key is text, and a dialog has the keyboard for itself. */
function isElsewhere(target: EventTarget | null): boolean {
  if (document.querySelector("dialog[open]") !== null) return true;
  return target instanceof HTMLElement && target.matches("input:not([type=range]), textarea, select, [contenteditable]");
}

/** Checks whether the key means something. */
function actOn(key: string, go: (path: string) => void): boolean {
  if (key === "?") openHelp();
  else if (key === "j") walk(1);
  else if (key === "k") walk(-1);
  else if (key === "/") find(go);
  else if (key === "Enter") return follow();
  else if (key === "Escape") return leave();
  else return false;
  return true;
}

function walk(by: 1 | -1): void {
  const rows = Array.from(document.querySelectorAll<HTMLElement>(ROWS));
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const row = at === -1 ? rows[by === 1 ? 0 : rows.length - 1] : rows[at + by];
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

/** To the search for everything: its field in the menu, or its screen where the menu is closed. */
function find(go: (path: string) => void): void {
  const field = document.querySelector<HTMLInputElement>(".find-all input");
  if (field?.checkVisibility() === true) field.select();
  else go("find");
}

/** Only from a row itself: a button or a link within it has an Enter of its own. */
function follow(): boolean {
  const row = document.activeElement;
  if (row === null || !row.matches(ROWS)) return false;
  row.querySelector<HTMLElement>("a, button, summary")?.click();
  return true;
}

/** Rows of tables and of lists of lines. Cards hold texts, which one clicks on to read and copy. */
const CLICKED_ROWS = "tr[data-row], .rows > [data-row]";
/** Elements that do something of their own with a click. */
const CLICKABLE = "a, button, input, select, textarea, label, details, dialog";

function openRow({ target, defaultPrevented, button }: MouseEvent): void {
  if (defaultPrevented || button !== 0 || !(target instanceof Element) || target.closest(CLICKABLE) !== null) return;
  // Marking a text in a row means to copy it.
  if (getSelection()?.isCollapsed === false) return;
  target.closest(CLICKED_ROWS)?.querySelector<HTMLElement>("summary, a")?.click();
}

function leave(): boolean {
  const { activeElement } = document;
  if (activeElement?.closest(ROWS) === null || !(activeElement instanceof HTMLElement)) return false;
  activeElement.blur();
  return true;
}

export function KeyboardHelp({ places }: { places: readonly MenuItem[] }) {
  if (!helpIsOpen.value) return null;
  const keys: [keys: readonly string[], meaning: string][] = [
    [["/"], "Search everything"],
    [["j"], "Next in a list"],
    [["k"], "Previous in a list"],
    [["Enter"], "Open it"],
    [["Esc"], "Leave it, close a dialog"],
    ...places.map(({ letter, name }): [string[], string] => [["g", letter], name]),
    [["?"], "This help"],
  ];
  return (
    <Dialog title="Keyboard" onClose={() => (helpIsOpen.value = false)}>
      <dl class="keys">
        {keys.map(([pressed, meaning]) => (
          <div key={meaning}>
            <dt>
              {pressed.map((name) => (
                <kbd key={name}>{name}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input type="checkbox" checked={shortcutsOn.value} onChange={({ currentTarget }) => switchShortcuts(currentTarget.checked)} />
        Use these keys
      </label>
    </Dialog>
  );
}
