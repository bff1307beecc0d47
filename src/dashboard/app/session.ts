/**
 * Sign-in of the tab: a session key, which lives as long as the tab and is known to this origin alone.
 *
 * There is no cookie: cookies go to every port of a host, and along with requests of other pages. Tabs of this origin hand the
 * key to each other, so that a link can be opened in a new one. Nothing else touches the browser's storage.
 *
 * @module
 */
import { signal } from "@preact/signals";

const KEY_NAME = "cairn.key";
const SHORTCUTS_NAME = "cairn.shortcuts";
/** Time that a new tab waits for one that is signed in. They answer within a few milliseconds. */
const OTHER_TAB_MS = 100;

type Message = { type: "wanted" } | { type: "key"; key: string } | { type: "signed_out" };

const tabs = new BroadcastChannel("cairn.session");
const tell = (message: Message) => tabs.postMessage(message);

export const key = signal<string | null>(read(KEY_NAME));
/** Set when the server no longer takes the key, for the sign-in screen to say. */
export const hasEnded = signal(false);
/** Single-key shortcuts can get in the way of other tools, so that they can be switched off. */
export const shortcutsOn = signal(read(SHORTCUTS_NAME) !== "off");

export function keepKey(value: string): void {
  setKey(value);
  tell({ type: "key", key: value });
}

/** Signs out this tab and all others. */
export function forgetKey(): void {
  setKey(null);
  tell({ type: "signed_out" });
}

export function switchShortcuts(on: boolean): void {
  shortcutsOn.value = on;
  write(SHORTCUTS_NAME, on ? null : "off");
}

/** Resolves once another tab has handed on its key, or none has in time. */
export function keyOfAnotherTab(): Promise<void> {
  return new Promise((resolve) => {
    const stop = key.subscribe((value) => value !== null && resolve());
    tell({ type: "wanted" });
    setTimeout(() => {
      stop();
      resolve();
    }, OTHER_TAB_MS);
  });
}

/** Takes the key of a sign-in link out of the address, before it can stay in the history. */
export function keyOfLink(): string | null {
  const value = new URLSearchParams(location.hash.slice(1)).get("key");
  if (value !== null) history.replaceState(null, "", location.pathname + location.search);
  return value;
}

tabs.addEventListener("message", ({ data }: MessageEvent<Message>) => {
  if (data.type === "wanted" && key.value !== null) tell({ type: "key", key: key.value });
  if (data.type === "key" && key.value === null) setKey(data.key);
  if (data.type === "signed_out") setKey(null);
});

function setKey(value: string | null): void {
  write(KEY_NAME, value);
  if (value !== null) hasEnded.value = false;
  key.value = value;
}

/** Storage can be switched off in a browser: the page then forgets with a reload. */
function read(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

function write(name: string, value: string | null): void {
  try {
    if (value === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, value);
  } catch {
    // As above.
  }
}
