/**
 * Settings, each with its default and where its value comes from. A change is in force at once; one that is set here can be taken
 * back.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import type { SettingName } from "../../../settings/schema.ts";
import { api, type Settings as SettingsRecord } from "../api.ts";
import { Field, Form } from "../parts/form.tsx";
import { Loaded } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { TryProvider } from "../parts/try-provider.tsx";
import { toast } from "../parts/toast.tsx";
import { changed, client, useQuery } from "../query.ts";
import { number } from "../words.ts";

/** `MiB`: bytes, which nobody reads by the million. */
type Kind = "text" | "number" | "MiB" | "yes or no" | "secret" | readonly string[];

interface Described {
  label: string;
  kind: Kind;
  hint?: string;
}

/** A type says that none is forgotten. */
const SETTINGS: Record<SettingName, Described> = {
  region: { label: "Region", kind: "text", hint: "A label for this deployment, which /health shows to everybody." },
  memories_on_expiry: { label: "Memories of a session that expires", kind: ["keep", "delete"] },
  endless_sessions_for_all: {
    label: "Sessions that never expire",
    kind: "yes or no",
    hint: "Yes lets every key that may write make them; no only admin keys. They stay until they are deleted.",
  },
  trace_retention_days: {
    label: "Days that traces are kept",
    kind: "number",
    hint: "Of traces made with enterprise keys. With free keys it is 7 days, with pro keys 90.",
  },
  retrieval_log: {
    label: "Log of what searches and contexts find",
    kind: "yes or no",
    hint: "Queries are kept, in the timeline of each session, for as many days as below: about 0.8 KB each. No: nothing is kept from then on.",
  },
  retrieval_log_days: { label: "Days that what was found is kept", kind: "number", hint: "With the query; 1 to 365." },
  memory_versions_kept: { label: "Contents kept per memory", kind: "number", hint: "Earlier contents, for the history of a memory." },
  index_turns: {
    label: "Search in turns",
    kind: ["off", "words", "meaning"],
    hint: "Turns that are there follow in the background. meaning embeds every turn.",
  },
  index_turns_share: {
    label: "Share of its time that the server indexes turns",
    kind: "number",
    hint: "0.01 to 1; for work in the background.",
  },
  state_versions_kept: { label: "Versions kept per session", kind: "number", hint: "The newest; version 0 is always kept." },
  secrets: {
    label: "Secrets in what is stored",
    kind: ["off", "tag", "redact", "block"],
    hint: "Keys, tokens and numbers of cards that clients send: tag marks the record, redact stores [redacted:KIND] in their place, block refuses the request. What is there stays.",
  },
  secret_kinds: { label: "What counts as a secret", kind: "text", hint: "keys, cards, email, phone; with commas between them." },
  max_body_bytes: { label: "Largest body of a request, in MiB", kind: "MiB" },
  max_store_bytes: { label: "Largest store, in MiB", kind: "MiB", hint: "Beyond it new records are refused. Empty: no limit." },
  oauth_clients: {
    label: "Applications that may ask for access (OAuth)",
    kind: "text",
    hint: "any, or known and hosts such as notes.example.com, separated by commas. Those that are connected stay connected.",
  },
  "backups.schedule": {
    label: "When a backup is made",
    kind: "text",
    hint: "03:00 for every day (UTC), sun 03:00 for every week, 6h for every six hours. Empty: never by itself.",
  },
  "backups.copy_to": {
    label: "Bucket that the newest is copied to",
    kind: "text",
    hint: "s3://bucket/prefix; the environment of the server gives the access. Empty: none.",
  },
  "backups.keep": { label: "Backups of the schedule kept", kind: "number", hint: "The newest." },
  "backups.keep_days": { label: "Days that they are kept", kind: "number", hint: "The newest stays. Empty: however old." },
  "webhooks.allow_private": {
    label: "Webhooks into private networks",
    kind: "yes or no",
    hint: "Yes lets webhooks lead to addresses in your own network. Anybody with an admin key can then have this server send requests there, also to services that are open to nobody else.",
  },
  "webhooks.timeout": { label: "Time limit of an attempt", kind: "text", hint: "For example 15s." },
  "webhooks.retry_schedule": { label: "Waits before each further attempt", kind: "text", hint: "For example 5s,5m,30m,2h." },
  "embedding.provider": {
    label: "Provider",
    kind: ["builtin", "words", "openai"],
    hint: "openai is any server that speaks /v1/embeddings; the others are built in.",
  },
  "embedding.base_url": { label: "Address of the server", kind: "text", hint: "Up to and including /v1." },
  "embedding.model": { label: "Model", kind: "text" },
  "embedding.api_key": { label: "Key of the provider", kind: "secret", hint: "It is stored, and never shown." },
  "embedding.query_prefix": { label: "Prefix of queries", kind: "text", hint: "Text that the model expects before a query." },
  "embedding.document_prefix": { label: "Prefix of memories", kind: "text", hint: "Text that the model expects before a memory." },
  "embedding.dimensions": {
    label: "Length of vectors",
    kind: "number",
    hint: "For models that can shorten their vectors. Empty: the model's own, up to 1,536.",
  },
  "embedding.relevant_cosine": {
    label: "Similarity that counts as relevant",
    kind: "number",
    hint: "The cosine at which a memory gets the score 0.7, from which searches return it. Empty: Cairn measures it with pairs of texts that it knows.",
  },
};
const NAMES = Object.keys(SETTINGS) as SettingName[];

const EMBEDDING = "Embedding provider";
const SECTIONS: Record<string, (name: SettingName) => boolean> = {
  General: (name) => name === "region" || name === "oauth_clients",
  "Sessions and memories": (name) => /^(memories_|endless_|memory_|state_)/.test(name),
  "Logs and search in turns": (name) => /^(trace_|retrieval_|index_)/.test(name),
  Sizes: (name) => name.startsWith("max_"),
  Backups: (name) => name.startsWith("backups."),
  Webhooks: (name) => name.startsWith("webhooks."),
  [EMBEDDING]: (name) => name.startsWith("embedding."),
};

type Value = string | number | boolean | null;

/** Description of one setting by the API. */
interface Effective {
  value?: Value;
  default?: Value;
  /** True if there is one, for a secret. */
  set?: boolean;
  source: string;
}

function effectiveOf(settings: SettingsRecord, name: SettingName): Effective {
  return name.split(".").reduce<unknown>((found, part) => (found as Record<string, unknown>)[part], settings) as Effective;
}

/** The body of a change, from settings by their full names. */
function bodyOf(changes: readonly (readonly [SettingName, unknown])[]): object {
  const body: Record<string, unknown> = {};
  for (const [name, value] of changes) {
    const [group, member] = name.split(".") as [string, string?];
    if (member === undefined) body[group] = value;
    else body[group] = { ...(body[group] as object | undefined), [member]: value };
  }
  return body;
}

async function change(changes: readonly (readonly [SettingName, unknown])[]): Promise<void> {
  client.setQueryData(["settings"], await api.changeSettings(bodyOf(changes)));
  await changed(["stats"], ["health"]);
}

const PROGRESS_MS = 2_000;
const isBehind = (settings: SettingsRecord | undefined) => (settings?.embedding.vectors.pending ?? 0) > 0;

export default function Settings() {
  const result = useQuery<SettingsRecord>({
    queryKey: ["settings"],
    refetchInterval: ({ state }) => (isBehind(state.data) ? PROGRESS_MS : false),
    queryFn: ({ signal }) => api.settings(signal),
  });
  return (
    <Page title="Settings">
      <Loaded result={result}>
        {(settings) =>
          Object.entries(SECTIONS).map(([title, belongs]) => (
            <Section key={title} title={title} settings={settings} names={NAMES.filter(belongs)} />
          ))
        }
      </Loaded>
    </Page>
  );
}

function Section({ title, settings, names }: { title: string; settings: SettingsRecord; names: readonly SettingName[] }) {
  // The fields begin again with what is in force, after a change of it.
  const inForce = JSON.stringify(names.map((name) => effectiveOf(settings, name)));
  return (
    <section class="settings" aria-label={title}>
      <h2>{title}</h2>
      {title === EMBEDDING && <Provider embedding={settings.embedding} />}
      <Fields key={inForce} title={title} settings={settings} names={names} />
    </section>
  );
}

const MIB = 1024 * 1024;
/** `64`, `0.001`: whole mebibytes mostly, and a small limit to the byte's thousand. */
const inMib = (bytes: number) => String(Number((bytes / MIB).toFixed(3)));

function textOf(kind: Kind, { value, set }: Effective): string {
  if (set !== undefined || value === null || value === undefined) return "";
  return kind === "MiB" ? inMib(Number(value)) : String(value);
}

function Fields({ title, settings, names }: { title: string; settings: SettingsRecord; names: readonly SettingName[] }) {
  const texts = useSignal<Readonly<Partial<Record<SettingName, string>>>>({});
  const edited = names.filter((name) => {
    const inForce = textOf(SETTINGS[name].kind, effectiveOf(settings, name));
    return (texts.value[name] ?? inForce) !== inForce;
  });
  const changes = () => edited.map((name) => [name, valueOf(SETTINGS[name].kind, texts.value[name] ?? "")] as const);
  const submit = async () => {
    await change(changes());
    toast(`${title}: saved`);
  };
  const isTrying = useSignal(false);
  const tryButton = title === EMBEDDING && (
    <button type="button" onClick={() => (isTrying.value = true)}>
      Try it
    </button>
  );
  return (
    <>
      <Form submit="Save" onSubmit={submit} disabled={edited.length === 0} more={tryButton}>
        {names.map((name) => (
          <Setting key={name} name={name} effective={effectiveOf(settings, name)} texts={texts} />
        ))}
      </Form>
      {isTrying.value && (
        <TryProvider embedding={(bodyOf(changes()) as { embedding?: object }).embedding ?? {}} onClose={() => (isTrying.value = false)} />
      )}
    </>
  );
}

/** An empty text takes a setting back. */
function valueOf(kind: Kind, text: string): unknown {
  if (text === "") return null;
  if (kind === "number") return Number(text);
  if (kind === "MiB") return Math.round(Number(text) * MIB);
  return kind === "yes or no" ? text === "true" : text;
}

const INPUTS = {
  text: { type: "text" },
  number: { type: "number", step: "any" },
  MiB: { type: "number", step: "any" },
  secret: { type: "password" },
};

interface SettingProps {
  name: SettingName;
  effective: Effective;
  texts: Signal<Readonly<Partial<Record<SettingName, string>>>>;
}

function Setting({ name, effective, texts }: SettingProps) {
  const { label, kind, hint } = SETTINGS[name];
  const value = texts.value[name] ?? textOf(kind, effective);
  const write = (text: string) => (texts.value = { ...texts.value, [name]: text });
  return (
    <div class="setting">
      <Field label={label} name={name} hint={hint}>
        {(attributes) => {
          const common = { ...attributes, value };
          if (kind === "yes or no" || typeof kind === "object")
            return (
              <select {...common} onChange={({ currentTarget }) => write(currentTarget.value)}>
                {kind === "yes or no" ? [option("true", "yes"), option("false", "no")] : kind.map((one) => option(one, one))}
              </select>
            );
          return (
            <input
              {...({ ...common, ...INPUTS[kind] } as object)}
              autoComplete="off"
              placeholder={kind === "secret" ? (effective.set === true ? "one is set" : "none is set") : shown(kind, effective.default)}
              onInput={({ currentTarget }) => write(currentTarget.value)}
            />
          );
        }}
      </Field>
      <Source name={name} label={label} effective={effective} />
    </div>
  );
}

const option = (value: string, says: string) => (
  <option key={value} value={value}>
    {says}
  </option>
);

const shown = (kind: Kind, value: Value | undefined) => textOf(kind, { value: value ?? null, source: "" }) || "none";

const SOURCES: Record<string, string> = {
  default: "default",
  environment: "from the environment",
  setting: "set here",
  probes: "measured",
  "built-in": "built in",
};

function Source({ name, label, effective }: { name: SettingName; label: string; effective: Effective }) {
  const takeBack = () => {
    change([[name, null]]).then(
      () => toast(`${label}: reset`),
      (error: Error) => toast(error.message),
    );
  };
  return (
    <p class="row source quiet">
      <span>{SOURCES[effective.source] ?? effective.source}</span>
      {(effective.source === "setting" || effective.source === "environment") && effective.set === undefined && (
        <span>default: {shown(SETTINGS[name].kind, effective.default)}</span>
      )}
      {effective.source === "setting" && (
        <button type="button" class="link" aria-label={`Reset: ${label}`} onClick={takeBack}>
          Reset
        </button>
      )}
    </p>
  );
}

function Provider({ embedding: { state, vectors, separation, vector_length } }: { embedding: SettingsRecord["embedding"] }) {
  const total = vectors.ready + vectors.pending;
  return (
    <div class="stack provider">
      <p class="row">
        {state.available ? <span class="good">✓ available</span> : <span class="bad">✗ {state.reason ?? "not available"}</span>}
        {vector_length !== null && <span class="quiet">vectors of {number(vector_length)} numbers</span>}
        {separation !== null && (
          <span class="quiet">tells {Math.round(separation * 100)} % of known texts apart, related from unrelated</span>
        )}
      </p>
      {vectors.pending > 0 && (
        <p class="row" role="status">
          <progress max={total} value={vectors.ready} aria-label="Memories with a vector" />
          <span>
            {number(vectors.ready)} of {number(total)} memories have a vector
          </span>
        </p>
      )}
      <p class="quiet">
        A provider is tried before it is set. A change of provider, model or prefix gives all memories new vectors in the background.
      </p>
    </div>
  );
}
