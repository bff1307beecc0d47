/**
 * An entry of a timeline: a turn, a version of the state, a memory, what was found for a query, or a fork.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Memory, TimelineEntry, Turn } from "../api.ts";
import { changesOf } from "../changes.ts";
import { bare } from "../ids.ts";
import { number, sourceOf } from "../words.ts";
import { Actor } from "./actor.tsx";
import { Changes } from "./changes.tsx";
import { CorrectMemory } from "./correct-memory.tsx";
import { Json } from "./json.tsx";
import { LongText } from "./long-text.tsx";
import { Markdown, MARKDOWN_LENGTH_MAX } from "./markdown.tsx";
import { RetrievalEntry } from "./retrieval.tsx";
import { Time } from "./time.tsx";
import { UsageChips } from "./usage.tsx";

/** Ids of what came while it was looked at, which is marked for a moment. */
export const arrived = new Set<string>();

interface EntryProps {
  entry: TimelineEntry;
  /** True for one that is a card with the entry above it. */
  isJoined: boolean;
  sessionId: string;
  /** The number of the current version; only versions look at it, so that a new one does not draw all entries again. */
  current: Signal<number>;
  target: string;
  mayWrite: boolean;
  onRollBack: (version: number) => void;
  onFork: (version: number) => void;
}

/** End of the address of an entry: the id of its record, or the number of a version, which has none. */
export function anchorOf({ kind, id, version }: TimelineEntry): string {
  return version === undefined ? `${PREFIXES[kind]}_${bare(id)}` : `version-${version.version}`;
}
const PREFIXES = { turn: "turn", memory: "mem", retrieval: "ret", fork: "sess", version: "version" } as const;

/** One entry, of whatever kind. */
export function Entry(props: EntryProps) {
  const { entry, target, isJoined } = props;
  const element = useRef<HTMLLIElement>(null);
  const anchor = anchorOf(entry);
  const isTarget = anchor === target;
  useEffect(() => {
    if (!isTarget) return;
    element.current?.scrollIntoView({ block: "center" });
    element.current?.focus({ preventScroll: true });
  }, [isTarget]);
  const isRolledBack = entry.turn?.rolled_back_at !== undefined;
  const isTool = entry.turn?.input.type === "tool_call";
  const marks = [
    isTool ? "tool" : "",
    isJoined ? "joined" : "",
    isTarget ? "target" : "",
    arrived.has(entry.id) ? "arrived" : "",
    isRolledBack ? "rolled-back" : "",
  ].join(" ");
  return (
    <li ref={element} id={anchor} class={`${entry.kind} ${marks}`} data-row tabIndex={-1}>
      <EntryContent {...props} />
    </li>
  );
}

function EntryContent(props: EntryProps) {
  const { turn, version, memory, retrieval, fork } = props.entry;
  if (turn !== undefined) return <TurnEntry turn={turn} />;
  if (version !== undefined) return <VersionEntry {...props} version={version} />;
  if (memory !== undefined) return <MemoryEntry memory={memory} mayWrite={props.mayWrite} />;
  if (retrieval !== undefined) return <RetrievalEntry retrieval={retrieval} />;
  if (fork === undefined) return null;
  return (
    <p>
      <ForkSign />
      Forked at state {number(fork.version)} to{" "}
      <a href={`/dashboard/sessions/${fork.session_id}`}>
        <code>{fork.session_id}</code>
      </a>{" "}
      <Time at={fork.created_at} />
    </p>
  );
}

function ForkSign() {
  return (
    <svg class="fork-sign" viewBox="0 0 24 20" width="24" height="20" aria-hidden="true">
      <path d="M 1 0 V 20 M 1 2 C 1 12 8 10 20 10" />
    </svg>
  );
}

function VersionEntry({
  version: made,
  sessionId,
  current,
  mayWrite,
  onRollBack,
  onFork,
}: EntryProps & { version: NonNullable<TimelineEntry["version"]> }) {
  const { version, actor, created_at, reasoning, state_diff } = made;
  const isCurrent = version === current.value;
  const compare = `/dashboard/compare?${new URLSearchParams({ a: `${sessionId}:${version}`, b: `${sessionId}:${current.value}` })}`;
  return (
    <>
      <span class="stone" aria-hidden="true">
        {version}
      </span>
      <div class="entry-head">
        <h2>
          <a href={`#version-${version}`}>State {number(version)}</a>
        </h2>
        <span class="quiet">
          {sourceOf(made)} · <Actor prefix={actor} /> · <Time at={created_at} />
        </span>
        <div class="row actions">
          {mayWrite && !isCurrent && (
            <button class="small" onClick={() => onRollBack(version)}>
              Roll back to here
            </button>
          )}
          {mayWrite && (
            <button class="small" onClick={() => onFork(version)}>
              Fork from here
            </button>
          )}
          {!isCurrent && (
            <a class="button small" href={compare}>
              Compare with {number(current.value)}
            </a>
          )}
        </div>
      </div>
      {reasoning !== undefined && reasoning !== "" && (
        <blockquote>
          <LongText text={reasoning} />
        </blockquote>
      )}
      {state_diff === null ? (
        <p class="quiet">The previous version is no longer kept.</p>
      ) : (
        <Changes changes={changesOf(state_diff)} unchanged={version === 0 ? "Empty." : "Nothing changed."} />
      )}
    </>
  );
}

/** Time of a turn, and its origin. */
function TurnFacts({ turn: { external_id, occurred_at, forked_from, rolled_back_at, created_at } }: { turn: Turn }) {
  return (
    <span class="quiet">
      {rolled_back_at !== undefined && (
        <>
          <span class="kind">rolled back</span> <Time at={rolled_back_at} /> ·{" "}
        </>
      )}
      {forked_from !== undefined && (
        <>
          of <a href={`/dashboard/sessions/${forked_from}`}>the session it was forked from</a> ·{" "}
        </>
      )}
      {external_id !== undefined && (
        <>
          <code>{external_id}</code> ·{" "}
        </>
      )}
      <Time at={occurred_at ?? created_at} />
      {occurred_at !== undefined && (
        <>
          {" "}
          · logged <Time at={created_at} />
        </>
      )}
    </span>
  );
}

function TurnEntry({ turn }: { turn: Turn }) {
  const { input, output, reasoning = "", state_before, state_after, metadata } = turn;
  const isMarkdown = useSignal(false);
  return (
    <>
      <div class="entry-head">
        <h2>
          <a href={`#${turn.id}`}>Turn {number(turn.turn_number)}</a>
        </h2>
        <TurnFacts turn={turn} />
        <UsageChips turn={turn} />
        {MARKS.test(output.content) && (
          <div class="row actions">
            <button class="small" aria-pressed={isMarkdown.value} onClick={() => (isMarkdown.value = !isMarkdown.value)}>
              Markdown
            </button>
          </div>
        )}
      </div>
      <dl class="exchange">
        <dt>in</dt>
        <dd>
          <Said type={input.type} text={input.content} />
        </dd>
        {reasoning !== "" && (
          <>
            <dt>why</dt>
            <dd class="quiet">
              <LongText text={reasoning} />
            </dd>
          </>
        )}
        <dt>out</dt>
        <dd>
          <Said type={output.type} text={output.content} isMarkdown={isMarkdown.value} />
        </dd>
      </dl>
      <div class="row folded">
        {(state_before !== null || state_after !== null) && (
          <details>
            <summary>Snapshots</summary>
            {state_before !== null && <Json value={state_before} label="State before" />}
            {state_after !== null && <Json value={state_after} label="State after" />}
          </details>
        )}
        {Object.keys(metadata).length > 0 && (
          <details>
            <summary>Metadata</summary>
            <Json value={metadata} label="Metadata" />
          </details>
        )}
      </div>
    </>
  );
}

/** Marks that Markdown would show otherwise. */
const MARKS = /\*\*|`|^#{1,6} |^\s{0,9}(?:[-*+]|\d{1,9}\.) |\]\(http/m;

function Said({ type, text, isMarkdown = false }: { type: string; text: string; isMarkdown?: boolean }) {
  return (
    <>
      {type === "error" && <span class="kind bad">✗ error</span>}
      {type !== "text" && type !== "error" && <span class="kind">{type}</span>}
      {isMarkdown && text.length <= MARKDOWN_LENGTH_MAX ? <Markdown text={text} /> : <LongText text={text} />}
    </>
  );
}

function MemoryEntry({ memory, mayWrite }: { memory: Memory; mayWrite: boolean }) {
  return (
    <>
      <div class="entry-head">
        <h2>
          <a href={`#${memory.id}`}>Memory</a>
        </h2>
        <span class="quiet">
          <span class="kind">{memory.type}</span> {memory.tags.map((tag) => `#${tag} `)}·{" "}
          <Time at={memory.occurred_at ?? memory.created_at} />
          {memory.occurred_at !== null && (
            <>
              {" "}
              · added <Time at={memory.created_at} />
            </>
          )}
        </span>
        {mayWrite && (
          <div class="row actions">
            <CorrectMemory id={memory.id} />
          </div>
        )}
      </div>
      <LongText text={memory.content} />
    </>
  );
}
