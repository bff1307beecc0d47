/**
 * What is around every screen: where one can go, who is signed in, toasts and the keyboard. A screen that throws leaves the rest
 * in place.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { ErrorBoundary, useLocation } from "preact-iso";
import { useEffect } from "preact/hooks";
import { signOut, type Scope } from "./api.ts";
import { useCan, useMe } from "./access.ts";
import { KeyboardHelp, openHelp, useKeyboard, type Place } from "./parts/keyboard.tsx";
import { Problem } from "./parts/list.tsx";
import { Toasts } from "./parts/toast.tsx";

const BASE = "/dashboard/";

interface MenuPlace extends Place {
  readonly scope: Scope;
}

const PLACES: readonly MenuPlace[] = [
  { path: "", name: "Overview", letter: "o", scope: "read" },
  { path: "sessions", name: "Sessions", letter: "s", scope: "read" },
  { path: "memories", name: "Memories", letter: "m", scope: "read" },
  { path: "traces", name: "Traces", letter: "t", scope: "read" },
  { path: "users", name: "Users", letter: "u", scope: "read" },
  { path: "keys", name: "API keys", letter: "k", scope: "admin" },
  { path: "webhooks", name: "Webhooks", letter: "w", scope: "admin" },
  { path: "settings", name: "Settings", letter: "e", scope: "admin" },
];

export function Shell({ children }: { children: ComponentChildren }) {
  const { path, route } = useLocation();
  useKeyboard(PLACES, (to) => route(BASE + to));
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Menu current={path.slice(BASE.length).split("/")[0] ?? ""} />
      <Screen path={path}>{children}</Screen>
      <KeyboardHelp places={PLACES} />
      <Toasts />
    </div>
  );
}

/** The error of a screen goes when one leaves it. */
function Screen({ path, children }: { path: string; children: ComponentChildren }) {
  const broken = useSignal<Error | null>(null);
  useEffect(() => void (broken.value = null), [path]);
  if (broken.value !== null)
    return (
      <main id="main">
        <h1>This screen failed</h1>
        <Problem error={broken.value} again={() => (broken.value = null)} />
      </main>
    );
  return <ErrorBoundary onError={(error) => (broken.value = error)}>{children}</ErrorBoundary>;
}

function Menu({ current }: { current: string }) {
  const isOpen = useSignal(false);
  useEffect(() => void (isOpen.value = false), [current]);
  return (
    <header class={isOpen.value ? "open" : ""}>
      <a class="brand" href={BASE}>
        <Stones />
        Cairn
      </a>
      <button class="menu" aria-expanded={isOpen.value} aria-controls="menu" onClick={() => (isOpen.value = !isOpen.value)}>
        Menu
      </button>
      <div class="menu-content" id="menu">
        <nav aria-label="Screens">
          <ul>
            {PLACES.map((place) => (
              <MenuItem key={place.path} place={place} isCurrent={place.path === current} />
            ))}
          </ul>
        </nav>
        <Who />
      </div>
    </header>
  );
}

function MenuItem({ place: { path, name, scope }, isCurrent }: { place: MenuPlace; isCurrent: boolean }) {
  if (!useCan(scope)) return null;
  return (
    <li>
      <a href={BASE + path} aria-current={isCurrent ? "page" : undefined}>
        {name}
      </a>
    </li>
  );
}

function Who() {
  const me = useMe();
  return (
    <div class="who">
      {me !== undefined && (
        <p class="quiet">
          <code>{me.prefix}…</code> may {me.scopes.join(", ")}
        </p>
      )}
      <p class="row">
        <button class="small" onClick={() => void signOut()}>
          Sign out
        </button>
        <button class="small icon" aria-label="Keyboard help" title="Keyboard help" onClick={openHelp}>
          ?
        </button>
      </p>
    </div>
  );
}

function Stones() {
  return (
    <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
      <ellipse cx="16" cy="26" rx="13" ry="5" />
      <ellipse cx="16" cy="17" rx="9" ry="4" />
      <ellipse cx="16" cy="9.5" rx="5.5" ry="3.2" />
    </svg>
  );
}
