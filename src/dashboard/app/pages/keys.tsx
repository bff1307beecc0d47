/**
 * API keys: who may do what. A key is shown once, when it is made; browsers that are signed in stand apart.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { api, type ApiKey } from "../api.ts";
import { boundTo, rightsOf, useMe } from "../access.ts";
import { Choices } from "../parts/choices.tsx";
import { Id } from "../parts/copy.tsx";
import { CreateKey, RevokeKey, RollKey } from "../parts/key-dialogs.tsx";
import { Listed, Loaded } from "../parts/list.tsx";
import { More } from "../parts/more.tsx";
import { Page } from "../parts/page.tsx";
import { Cell, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { usePages, useQuery } from "../query.ts";
import { number } from "../words.ts";

const COLUMNS = ["Name", "Begins with", "May", "Requests", "Created", "Last used", "Expires", { name: "Actions", kind: "hidden" }] as const;
/** Retention of the traces of a key, by its tier. */
const RETENTION: Record<ApiKey["tier"], string> = { free: "for 7 days", pro: "for 90 days", enterprise: "as the settings say" };
const KINDS = { key: "Keys", session: "Browsers", oauth: "Applications" };
type Kind = keyof typeof KINDS;
/** Nouns for keys of a kind, and a text for a list without any. */
const NOUNS: Record<Kind, string> = { key: "keys", session: "browsers", oauth: "applications" };
const NONE: Record<Kind, ComponentChildren> = {
  key: (
    <>
      None. One is made by the button above, or with <code>POST /v1/api_keys</code>.
    </>
  ),
  session: "No browser is signed in.",
  oauth: (
    <>
      No application is connected. One asks for access when it is given the address of <code>/mcp</code>.
    </>
  ),
};

const ENDS: Record<ApiKey["kind"], string> = { key: "Revoke", session: "Sign out", link: "Revoke", oauth: "Disconnect" };

type Opened = { kind: "create" } | { kind: "roll" | "revoke"; key: ApiKey } | null;

export default function Keys() {
  const { query } = useLocation();
  return query["id"] ? <OneKey id={query["id"]} /> : <AllKeys />;
}

function OneKey({ id }: { id: string }) {
  const key = useQuery({ queryKey: ["keys", id], queryFn: ({ signal }) => api.key(id, signal) });
  const opened = useSignal<Opened>(null);
  return (
    <Page title={id} heading={<Id id={id} />} within={["/dashboard/keys", "API keys"]}>
      <Loaded result={key}>
        {(key) => (
          <Table columns={COLUMNS} stacked>
            <tbody>
              <Row apiKey={key} onOpen={(next) => (opened.value = next)} />
            </tbody>
          </Table>
        )}
      </Loaded>
      <Dialogs opened={opened} />
    </Page>
  );
}

function AllKeys() {
  const { query, route } = useLocation();
  const kind: Kind = query["kind"] === "session" || query["kind"] === "oauth" ? query["kind"] : "key";
  const opened = useSignal<Opened>(null);
  return (
    <Page
      title="API keys"
      actions={
        <button class="primary" onClick={() => (opened.value = { kind: "create" })}>
          Create a key
        </button>
      }
    >
      <div class="bar">
        <Choices
          label="Show"
          value={kind}
          choices={KINDS}
          onChoice={(kind) => route(kind === "key" ? "/dashboard/keys" : `/dashboard/keys?kind=${kind}`, true)}
        />
        {kind === "session" && <p class="quiet">Each browser that is signed in has a key of its own, which ends after twelve hours.</p>}
        {kind === "oauth" && <p class="quiet">Each application that was connected has tokens of its own, which open /mcp alone.</p>}
      </div>
      <KeyTable kind={kind} onOpen={(next) => (opened.value = next)} />
      <Dialogs opened={opened} />
    </Page>
  );
}

function KeyTable({ kind, onOpen }: { kind: Kind; onOpen: (opened: Opened) => void }) {
  const pages = usePages(["keys", kind], (after, signal) => api.keys({ kind, starting_after: after }, signal));
  return (
    <Listed
      pages={pages}
      noun={NOUNS[kind]}
      empty={<p>{NONE[kind]}</p>}
      element="tbody"
      frame={(pages) => (
        <Table columns={COLUMNS} stacked>
          {pages}
        </Table>
      )}
    >
      {(keys) => keys.map((key) => <Row key={key.id} apiKey={key} onOpen={onOpen} />)}
    </Listed>
  );
}

function Row({ apiKey, onOpen }: { apiKey: ApiKey; onOpen: (opened: Opened) => void }) {
  const isMine = useMe()?.id === apiKey.id;
  const bound = boundTo(apiKey);
  const { name, prefix, tier, rate_limit, created_at, last_used_at, expires_at, rolled_to, kind } = apiKey;
  return (
    <tr role="row" data-row tabIndex={-1}>
      <Cell class="wraps">
        {name ?? <span class="quiet">no name</span>} {isMine && <span class="kind">this browser</span>}
        {rolled_to !== null && <span class="kind">rolled</span>}
      </Cell>
      <Cell name="Begins with">
        <code>{prefix}</code>
      </Cell>
      <Cell name="May">
        {rightsOf(apiKey)}
        {bound !== null && <div class="quiet wraps">bound to {bound}</div>}
      </Cell>
      <Cell name="Requests">
        <span title={`after a pause ${number(rate_limit.burst)} at once`}>{number(rate_limit.per_minute)} a minute</span>
        <div class="quiet">traces {RETENTION[tier]}</div>
      </Cell>
      <Cell name="Created">
        <Time at={created_at} />
      </Cell>
      <Cell name="Last used">{last_used_at === null ? <span class="quiet">never</span> : <Time at={last_used_at} />}</Cell>
      <Cell name="Expires">{expires_at === null ? <span class="quiet">never</span> : <Time at={expires_at} />}</Cell>
      <Cell class="actions-cell">
        <More label={`Actions for ${name ?? prefix}`}>
          {kind === "key" && <button onClick={() => onOpen({ kind: "roll", key: apiKey })}>Roll</button>}
          <button class="danger" onClick={() => onOpen({ kind: "revoke", key: apiKey })}>
            {ENDS[kind]}
          </button>
        </More>
      </Cell>
    </tr>
  );
}

function Dialogs({ opened }: { opened: Signal<Opened> }) {
  const close = () => (opened.value = null);
  if (opened.value === null) return null;
  if (opened.value.kind === "create") return <CreateKey onClose={close} />;
  const { kind, key } = opened.value;
  return kind === "roll" ? <RollKey apiKey={key} onClose={close} /> : <RevokeKey apiKey={key} onClose={close} />;
}
