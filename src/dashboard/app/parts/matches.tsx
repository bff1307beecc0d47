/**
 * Results of a search, best first, with the threshold as a line in it. All was asked for at once: moving the line asks nothing.
 *
 * @module
 */
import type { Match } from "../api.ts";
import { CopyButton } from "./copy.tsx";
import { useDraft } from "./draft.ts";
import { LongText } from "./long-text.tsx";
import { MemoryFacts, type MemoryAction } from "./memory-facts.tsx";
import { RatingButtons, useRating, type Rating } from "./rating.tsx";
import { counted } from "../words.ts";

interface MatchesProps {
  matches: readonly Match[];
  /** Its entry in the log, where it is logged. */
  retrievalId: string | undefined;
  /** The request without its threshold. */
  body: object;
  threshold: number;
  onThreshold: (threshold: number) => void;
  /** Changes or deletes what was found; left out for a key that may not. */
  onOpen: ((kind: MemoryAction, id: string) => void) | undefined;
}

/** A threshold that is suggested when nothing passes. */
const LOWER = 0.5;

export function Matches({ matches, retrievalId, body, threshold, onThreshold, onOpen }: MatchesProps) {
  const line = useDraft(threshold);
  const rating = useRating(retrievalId);
  const [best] = matches;
  if (best === undefined)
    return (
      <div class="empty">
        <p>
          No memory that search can find passes the filters. An agent adds one with <code>POST /v1/memory</code>.
        </p>
      </div>
    );
  const passing = matches.filter(({ score }) => score >= line.value);
  const rest = matches.slice(passing.length);
  return (
    <>
      <div class="threshold">
        <label>
          Threshold{" "}
          <span class="slider">
            <input
              type="range"
              min={0}
              max={1}
              step={0.01}
              value={line}
              aria-valuetext={line.value.toFixed(2)}
              onInput={({ currentTarget }) => (line.value = Number(currentTarget.value))}
              onChange={({ currentTarget }) => onThreshold(Number(currentTarget.value))}
            />
            <Scores matches={matches} />
          </span>
        </label>
        <output class="mono">{line.value.toFixed(2)}</output>
        <p role="status">{summary(matches, best, passing.length, line.value)}</p>
        <CopyButton label="Copy as request" text={asRequest(body, line.value)} />
      </div>
      {passing.length === 0 && <Nearest best={best} onThreshold={onThreshold} />}
      <ol class="cards matches">
        {passing.map((match) => (
          <Result key={match.id} match={match} rating={rating} onOpen={onOpen} />
        ))}
      </ol>
      <p class="line quiet">
        <span>{line.value.toFixed(2)}</span>
      </p>
      <ol class="cards matches below">
        {rest.map((match) => (
          <Result key={match.id} match={match} rating={rating} onOpen={onOpen} />
        ))}
      </ol>
    </>
  );
}

/** The best of those that an agent would not have found, and the threshold at which it would. */
function Nearest({ best, onThreshold }: { best: Match; onThreshold: (threshold: number) => void }) {
  const lower = Math.floor(best.score * 100) / 100;
  return (
    <div class="note trouble">
      <p>An agent finds nothing with this threshold. The nearest has {best.score.toFixed(2)}:</p>
      <LongText text={best.content} />
      <p>
        <button class="small" onClick={() => onThreshold(lower)}>
          Use {lower.toFixed(2)}
        </button>
      </p>
    </div>
  );
}

function summary(matches: readonly Match[], best: Match, passing: number, threshold: number): string {
  const lower = matches.filter(({ score }) => score >= LOWER).length;
  const also = threshold > LOWER ? `; ${lower} ${pass(lower)} at ${LOWER.toFixed(2)}` : "";
  return `${passing} of ${matches.length} ${pass(passing)}; the best has ${best.score.toFixed(2)}${also}.`;
}

const pass = (count: number) => (count === 1 ? "passes" : "pass");

/** A tick for each score, below the slider. */
function Scores({ matches }: { matches: readonly Match[] }) {
  return (
    <svg class="scores" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
      {matches.map(({ id, score }) => (
        <rect key={id} x={score * 1000 - 2} y={0} width={4} height={10} />
      ))}
    </svg>
  );
}

/** Shell command that gives what is seen above the line. */
function asRequest(body: object, threshold: number): string {
  const json = JSON.stringify({ ...body, threshold, limit: 50, explain: true });
  const quoted = `'${json.replaceAll("'", String.raw`'\''`)}'`;
  return `curl -s -H "X-API-Key: $KEY" -H "Content-Type: application/json" ${location.origin}/v1/memory/search -d ${quoted}`;
}

function Result({ match, rating, onOpen }: { match: Match; rating: Rating | undefined } & Pick<MatchesProps, "onOpen">) {
  return (
    <li data-row tabIndex={-1}>
      <div class="score">
        <span class="gauge" aria-hidden="true">
          <svg viewBox="0 0 100 8" preserveAspectRatio="none">
            <rect width={match.score * 100} height={8} />
          </svg>
        </span>
        <b class="number">{match.score.toFixed(3)}</b>
      </div>
      <div>
        <LongText text={match.content} />
        <MemoryFacts memory={match} onOpen={onOpen && ((kind) => onOpen(kind, match.id))}>
          <RatingButtons id={match.id} rating={rating} />
        </MemoryFacts>
        {match.explanation !== undefined && <Why explanation={match.explanation} />}
      </div>
    </li>
  );
}

function Why({ explanation: { semantic, lexical, matches, omitted, passage } }: { explanation: NonNullable<Match["explanation"]> }) {
  return (
    <p class="row why">
      <span>
        meaning <b>{semantic.toFixed(2)}</b>
        {passage !== undefined && ` of characters ${passage.start + 1} to ${passage.end}`}
      </span>
      <span>
        words <b>{lexical.toFixed(2)}</b>
      </span>
      {matches.map(({ word, matched_word, share }) => (
        <span key={word} class="word">
          <b>{word}</b> = {matched_word ?? word} {Math.round(share * 100)} %
        </span>
      ))}
      {omitted !== undefined && <span>and {counted(omitted, "more words")}</span>}
    </p>
  );
}
