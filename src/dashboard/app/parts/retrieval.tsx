/**
 * Result of a search or a context: the query, the memories with their scores or the turns, and the turn that came of it.
 *
 * @module
 */
import { useCan } from "../access.ts";
import type { Retrieval } from "../api.ts";
import { number } from "../words.ts";
import { Actor } from "./actor.tsx";
import { CorrectMemory } from "./correct-memory.tsx";
import { LongText } from "./long-text.tsx";
import { RatingButtons, useRating, type Rating } from "./rating.tsx";
import { Replay } from "./replay.tsx";
import { Time } from "./time.tsx";

/** Memories that are shown before one asks for the rest. */
const SHOWN = 5;

export function RetrievalEntry({ retrieval }: { retrieval: Retrieval }) {
  const { id, operation, query, memories, turns, limit, threshold, filtered, actor, turn_id, created_at } = retrieval;
  const isOfTurns = operation === "turn_search";
  const rest = memories.slice(SHOWN);
  const rating = useRating(id, retrieval.feedback);
  return (
    <>
      <div class="entry-head">
        <h2>
          <a href={`#${id}`}>Found</a>
        </h2>
        <span class="quiet">
          <span class="kind">{operation.replace("_", " ")}</span> {isOfTurns ? turns.length : memories.length} of at most {limit}
          {threshold > 0 && `, from ${threshold.toFixed(2)} on`}
          {filtered && ", filtered"} · <Actor prefix={actor} /> · <Time at={created_at} />
        </span>
      </div>
      <blockquote>
        <LongText text={query} />
      </blockquote>
      <Memories memories={memories.slice(0, SHOWN)} rating={rating} />
      {isOfTurns && <Turns turns={turns} rating={rating} />}
      {rest.length > 0 && (
        <details>
          <summary>{number(rest.length)} more</summary>
          <Memories memories={rest} rating={rating} />
        </details>
      )}
      {operation === "context" && <Replay retrievalId={id} />}
      <p class="quiet row">
        {isOfTurns ? turns.length === 0 && "No turn was found." : memories.length === 0 && "No memory was found."}{" "}
        {turn_id === null ? "No turn followed yet." : <a href={`#${turn_id}`}>The next turn</a>}
      </p>
    </>
  );
}

function Turns({ turns, rating }: Pick<Retrieval, "turns"> & { rating: Rating | undefined }) {
  return (
    <ol class="found">
      {turns.map((id) => (
        <li key={id}>
          <a href={`#${id}`}>
            <code>{id}</code>
          </a>
          <RatingButtons id={id} rating={rating} />
        </li>
      ))}
    </ol>
  );
}

function Memories({ memories, rating }: Pick<Retrieval, "memories"> & { rating: Rating | undefined }) {
  const mayWrite = useCan("write");
  return (
    <ol class="found">
      {memories.map(({ id, score, content_preview }) => (
        <li key={id}>
          <b class="number">{score.toFixed(3)}</b>
          {content_preview === null ? (
            <span class="quiet">
              <code>{id}</code> is gone.
            </span>
          ) : (
            <a class="text" href={`/dashboard/go/${id}`}>
              {content_preview}
            </a>
          )}
          <RatingButtons id={id} rating={rating} />
          {mayWrite && content_preview !== null && <CorrectMemory id={id} />}
        </li>
      ))}
    </ol>
  );
}
