/**
 * A session by what people know it by: what the user said first, and small below it the name that it was given, or its id.
 *
 * @module
 */
import type { Session } from "../api.ts";
import { number } from "../words.ts";

export function SessionTitle({ session }: { session: Session }) {
  const { id, external_id, first_input, rollback_count = 0, metadata } = session;
  const parent = metadata["forked_from"];
  const isFork = typeof parent === "string";
  return (
    <div class="title">
      <a href={`/dashboard/sessions/${id}`} dir="auto" title={external_id === undefined ? undefined : id}>
        {first_input ?? (isFork ? "Fork without turns of its own" : "Nothing said yet")}
      </a>
      <p class="row">
        <code class="quiet">{external_id ?? id}</code>
        {isFork && <span class="kind">fork</span>}
        {rollback_count > 0 && <span class="kind">rolled back{rollback_count > 1 && ` ${number(rollback_count)} times`}</span>}
      </p>
    </div>
  );
}
