/**
 * Two states next to each other: versions of one session, or of a session and its forks.
 *
 * @module
 */
import { useLocation } from "preact-iso";
import { api, type Session, type StateVersion } from "../api.ts";
import { changesBetween, pathText, type Change } from "../changes.ts";
import { CopyButton } from "../parts/copy.tsx";
import { useDraft } from "../parts/draft.ts";
import { Json } from "../parts/json.tsx";
import { Loaded } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { useVersion } from "../parts/session-dialogs.tsx";
import { Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { Actor } from "../parts/actor.tsx";
import { ChangeSign, Value } from "../parts/changes.tsx";
import { useQuery } from "../query.ts";
import { counted, sourceOf } from "../words.ts";

/** A version of a session, in the URL `sess_…:2`. */
interface ComparedVersion {
  readonly id: string;
  readonly version: number;
}

const inUrl = ({ id, version }: ComparedVersion) => `${id}:${version}`;

function versionIn(text: string | undefined): ComparedVersion | null {
  const [, id, version] = /^(\w+):(\d{1,9})$/.exec(text ?? "") ?? [];
  return id === undefined ? null : { id, version: Number(version) };
}

export function Compare() {
  const { query, route } = useLocation();
  const [a, b] = [versionIn(query["a"]), versionIn(query["b"])];
  const showsAll = query["all"] === "1";
  const go = (next: { a?: ComparedVersion; b?: ComparedVersion; all?: boolean }) => {
    const search = new URLSearchParams({ ...query, ...(next.a && { a: inUrl(next.a) }), ...(next.b && { b: inUrl(next.b) }) });
    if (next.all !== undefined) search.set("all", next.all ? "1" : "0");
    route(`/dashboard/compare?${search}`, true);
  };
  if (a === null || b === null)
    return (
      <Page title="Compare" within={["/dashboard/sessions", "Sessions"]}>
        <div class="empty">
          <p>
            Open a session and choose <b>Compare</b> at one of its states.
          </p>
        </div>
      </Page>
    );
  return (
    <Page title="Compare" within={[`/dashboard/sessions/${a.id}`, a.id]}>
      <div class="sides">
        <Side name="A" place={a} other={b} onPlace={(a) => go({ a })} />
        <button aria-label="Swap" title="Swap" onClick={() => go({ a: b, b: a })}>
          ⇄
        </button>
        <Side name="B" place={b} other={a} onPlace={(b) => go({ b })} />
      </div>
      <Comparison a={a} b={b} showsAll={showsAll} onAll={(all) => go({ all })} />
    </Page>
  );
}

interface SideProps {
  name: string;
  place: ComparedVersion;
  other: ComparedVersion;
  onPlace: (place: ComparedVersion) => void;
}

function Side({ name, place, other, onPlace }: SideProps) {
  const session = useQuery({ queryKey: ["session", place.id], queryFn: ({ signal }) => api.session(place.id, signal) });
  return (
    <section class="side" aria-label={`Side ${name}`}>
      <Loaded result={session}>
        {(found) => (
          <>
            <SessionChoice name={name} session={found} other={other} onPlace={onPlace} />
            <Stepper name={name} place={place} newest={found.state_version} onPlace={onPlace} />
            <VersionFacts place={place} />
          </>
        )}
      </Loaded>
    </section>
  );
}

function useForks(id: string | null) {
  return useQuery({
    queryKey: ["sessions", "forks", id],
    enabled: id !== null,
    queryFn: ({ signal }) => api.sessions({ forked_from: id }, signal),
  }).data?.data;
}

/** The session itself, its forks, the one it was forked from with its other forks, and the other side's. */
function SessionChoice({
  name,
  session,
  other,
  onPlace,
}: {
  name: string;
  session: Session;
  other: ComparedVersion;
  onPlace: (place: ComparedVersion) => void;
}) {
  const { forked_from: source, forked_version: version } = session.metadata;
  const forks = useForks(session.id);
  const siblings = useForks(typeof source === "string" ? source : null);
  const choices = new Map<string, ComparedVersion & { says: string }>([
    [session.id, { id: session.id, version: session.state_version, says: "" }],
  ]);
  if (!choices.has(other.id)) choices.set(other.id, { ...other, says: "the other side" });
  if (typeof source === "string") choices.set(source, { id: source, version: Number(version), says: "forked from" });
  const add = (fork: Session, says: string) =>
    choices.set(fork.id, { id: fork.id, version: fork.state_version, says: `${says} ${Number(fork.metadata["forked_version"])}` });
  for (const fork of forks ?? []) add(fork, "fork of state");
  for (const fork of siblings ?? []) if (fork.id !== session.id) add(fork, "other fork of its state");
  return (
    <select
      class="mono"
      aria-label={`Session ${name}`}
      value={session.id}
      onChange={({ currentTarget }) => {
        const chosen = choices.get(currentTarget.value);
        if (chosen !== undefined) onPlace(chosen);
      }}
    >
      {Array.from(choices.values(), ({ id, says }) => (
        <option key={id} value={id}>
          {says === "" ? id : `${id} (${says})`}
        </option>
      ))}
    </select>
  );
}

function Stepper({
  name,
  place,
  newest,
  onPlace,
}: {
  name: string;
  place: ComparedVersion;
  newest: number;
  onPlace: (place: ComparedVersion) => void;
}) {
  const written = useDraft(String(place.version));
  const go = (asked: number) => {
    const version = Math.min(newest, Math.max(0, asked));
    written.value = String(version);
    onPlace({ ...place, version });
  };
  return (
    <span class="row stepper">
      <button class="small" aria-label={`Earlier state ${name}`} disabled={place.version <= 0} onClick={() => go(place.version - 1)}>
        ‹
      </button>
      <label>
        State{" "}
        <input
          type="number"
          aria-label={`State ${name}`}
          min={0}
          max={newest}
          value={written}
          onInput={({ currentTarget }) => (written.value = currentTarget.value)}
          onChange={() => go(Number(written.value))}
        />
      </label>
      <button class="small" aria-label={`Later state ${name}`} disabled={place.version >= newest} onClick={() => go(place.version + 1)}>
        ›
      </button>
    </span>
  );
}

function VersionFacts({ place }: { place: ComparedVersion }) {
  const { data } = useVersion(place.id, place.version);
  return (
    data !== undefined && (
      <span class="quiet">
        {sourceOf(data)} · <Actor prefix={data.actor} /> · <Time at={data.created_at} />
      </span>
    )
  );
}

function Comparison({
  a,
  b,
  showsAll,
  onAll,
}: {
  a: ComparedVersion;
  b: ComparedVersion;
  showsAll: boolean;
  onAll: (all: boolean) => void;
}) {
  const [before, after] = [useVersion(a.id, a.version), useVersion(b.id, b.version)];
  return (
    <Loaded result={before}>
      {(one) => (
        <Loaded result={after}>
          {(other) => {
            const changes = changesBetween(one.state, other.state);
            return (
              <>
                <div class="bar">
                  <p role="status">{changes.length === 0 ? "The two states are the same." : counted(changes.length, "changes")}</p>
                  <div class="row">
                    <label class="check">
                      <input type="checkbox" checked={!showsAll} onChange={({ currentTarget }) => onAll(!currentTarget.checked)} />
                      Only changes
                    </label>
                    <CopyButton label="Copy as JSON" text={asJson(a, b, changes)} />
                  </div>
                </div>
                {showsAll ? <Whole one={one} other={other} /> : changes.length > 0 && <ChangeTable a={a} b={b} changes={changes} />}
              </>
            );
          }}
        </Loaded>
      )}
    </Loaded>
  );
}

function asJson(a: ComparedVersion, b: ComparedVersion, changes: readonly Change[]): string {
  return JSON.stringify(
    { a: inUrl(a), b: inUrl(b), changes: changes.map(({ path, ...change }) => ({ path: pathText(path), ...change })) },
    null,
    2,
  );
}

function Whole({ one, other }: { one: StateVersion; other: StateVersion }) {
  return (
    <div class="whole">
      <Json value={one.state} label="State A" />
      <Json value={other.state} label="State B" />
    </div>
  );
}

function ChangeTable({ a, b, changes }: { a: ComparedVersion; b: ComparedVersion; changes: readonly Change[] }) {
  return (
    <Table class="compared" columns={[{ name: "Kind", kind: "hidden" }, "Path", `A: state ${a.version}`, `B: state ${b.version}`]}>
      <tbody>
        {changes.map((change, index) => (
          <tr key={index} class={change.kind}>
            <td>
              <ChangeSign kind={change.kind} />
            </td>
            <td class="path">{pathText(change.path)}</td>
            <td>{"from" in change ? <Value value={change.from} as="del" /> : <None />}</td>
            <td>
              {"to" in change && <Value value={change.to} as="ins" />}
              {change.kind === "moved" && <span class="quiet">moved to [{change.toIndex}]</span>}
              {change.kind === "removed" && <None />}
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function None() {
  return <span class="quiet">—</span>;
}
