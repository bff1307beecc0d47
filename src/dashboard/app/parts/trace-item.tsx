/**
 * One trace as a line that opens.
 *
 * @module
 */
import type { Trace } from "../api.ts";
import { Facts } from "./facts.tsx";
import { Json } from "./json.tsx";
import { exactTime, Time } from "./time.tsx";

export function TraceItem({ trace, isNew = false }: { trace: Trace; isNew?: boolean }) {
  return (
    <li data-row tabIndex={-1} class={isNew ? "arrived" : ""}>
      <details>
        <summary>
          <Time at={trace.timestamp} />
          <b>{trace.action}</b>
          <code class="quiet">{trace.actor}</code>
          {trace.user_id !== undefined && <span class="quiet">{trace.user_id}</span>}
        </summary>
        <div class="stack opened">
          <Facts
            facts={{
              Trace: (
                <a href={`/dashboard/traces?id=${trace.id}`}>
                  <code>{trace.id}</code>
                </a>
              ),
              When: exactTime(trace.timestamp),
            }}
          />
          <Json value={{ details: trace.details, metadata: trace.metadata }} label="Trace" />
        </div>
      </details>
      {trace.session_id !== null && (
        <a href={`/dashboard/sessions/${trace.session_id}`}>
          <code>{trace.session_id}</code>
        </a>
      )}
    </li>
  );
}
