/**
 * Frame of every screen: where one can go, who is signed in, toasts and the keyboard. A screen that throws leaves the rest
 * in place.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { ErrorBoundary, useLocation } from "preact-iso";
import { useLayoutEffect } from "preact/hooks";
import { signOut, type ApiKey, type Scope } from "./api.ts";
import { boundTo, hasScope, rightsOf, useOwnKey } from "./access.ts";
import { screenFor } from "./ids.ts";
import { KeyboardHelp, openHelp, useKeyboard, type MenuItem } from "./parts/keyboard.tsx";
import { Loaded, Problem } from "./parts/list.tsx";
import { Page } from "./parts/page.tsx";
import { Toasts } from "./parts/toast.tsx";

const BASE = "/dashboard/";

interface MenuPlace extends MenuItem {
  readonly scope: Scope;
  /** Shows users and agents of all, which a key that is bound to one does not see. */
  readonly isOfAll?: true;
}

const PLACES: readonly MenuPlace[] = [
  { path: "", name: "Overview", letter: "o", scope: "read" },
  { path: "sessions", name: "Sessions", letter: "s", scope: "read" },
  { path: "memories", name: "Memories", letter: "m", scope: "read" },
  { path: "traces", name: "Traces", letter: "t", scope: "read" },
  { path: "users", name: "Users", letter: "u", scope: "read", isOfAll: true },
  { path: "keys", name: "API keys", letter: "k", scope: "admin" },
  { path: "webhooks", name: "Webhooks", letter: "w", scope: "admin" },
  { path: "settings", name: "Settings", letter: "e", scope: "admin" },
  { path: "backups", name: "Backups", letter: "b", scope: "admin" },
];

export function Shell({ children }: { children: ComponentChildren }) {
  const { path, route } = useLocation();
  const me = useOwnKey();
  const places = PLACES.filter((place) => me.data !== undefined && whyNot(me.data, place) === null);
  const current = PLACES.find(({ path: first }) => first === (path.slice(BASE.length).split("/")[0] ?? ""));
  useKeyboard(places, (to) => route(BASE + to));
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Menu places={places} current={current} path={path} me={me.data} />
      {me.data === undefined ? (
        <main id="main">
          <Loaded result={me}>{() => null}</Loaded>
        </main>
      ) : (
        <Screen path={path}>{current === undefined ? children : <Allowed me={me.data} place={current} screen={children} />}</Screen>
      )}
      <KeyboardHelp places={places} />
      <Toasts />
    </div>
  );
}

/** Reason why a key is not for a screen; null for one that is. */
function whyNot(me: ApiKey, { scope, isOfAll }: MenuPlace): string | null {
  const bound = boundTo(me);
  if (!hasScope(me, scope)) return `It needs a key with the scope ${scope}. Yours may ${rightsOf(me)}.`;
  if (isOfAll === true && bound !== null) return `It covers all users and agents. Your key is bound to ${bound}.`;
  return null;
}

/** A screen that the menu does not lead to is still reached by a link. */
function Allowed({ me, place, screen }: { me: ApiKey; place: MenuPlace; screen: ComponentChildren }) {
  const reason = whyNot(me, place);
  if (reason === null) return <>{screen}</>;
  return (
    <Page title={place.name}>
      <div class="empty">
        <p>This screen is not for this key. {reason}</p>
        <button onClick={() => void signOut()}>Sign in with another key</button>
      </div>
    </Page>
  );
}

/** The error of a screen goes when one leaves it. */
function Screen({ path, children }: { path: string; children: ComponentChildren }) {
  const broken = useSignal<{ path: string; error: Error } | null>(null);
  if (broken.value?.path === path)
    return (
      <main id="main">
        <h1>This screen failed</h1>
        <Problem error={broken.value.error} again={() => (broken.value = null)} />
      </main>
    );
  return <ErrorBoundary onError={(error) => (broken.value = { path, error })}>{children}</ErrorBoundary>;
}

interface MenuProps {
  places: readonly MenuPlace[];
  current: MenuPlace | undefined;
  path: string;
  me: ApiKey | undefined;
}

function Menu({ places, current, path, me }: MenuProps) {
  const isOpen = useSignal(false);
  // Before anybody can click: an effect after the first paint closes what was opened just then.
  useLayoutEffect(() => void (isOpen.value = false), [path]);
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
        <FindAll />
        <nav aria-label="Screens">
          <ul>
            {places.map((place) => (
              <li key={place.path}>
                <a href={BASE + place.path} aria-current={place === current ? "page" : undefined}>
                  {place.name}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Who me={me} />
      </div>
    </header>
  );
}

/** One search for everything; an id, from logs and answers, opens its record. */
function FindAll() {
  const { route } = useLocation();
  const text = useSignal("");
  const find = (event: Event) => {
    event.preventDefault();
    if (text.value.trim() !== "") route(BASE + screenFor(text.value.trim()));
    text.value = "";
  };
  return (
    <form class="find-all" role="search" aria-label="Everything" onSubmit={find}>
      <input
        type="search"
        aria-label="Search everything"
        placeholder="Search  /"
        autoComplete="off"
        value={text}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      />
    </form>
  );
}

function Who({ me }: { me: ApiKey | undefined }) {
  const bound = me === undefined ? null : boundTo(me);
  return (
    <div class="who">
      {me !== undefined && (
        <p class="quiet">
          <code title="The actor in traces of changes made here">{me.prefix}</code> may {rightsOf(me)}
          {bound !== null && `, bound to ${bound}`}
        </p>
      )}
      <p class="row">
        <a href="/docs/guide">Guide</a>
        <a href="/docs">API docs</a>
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
