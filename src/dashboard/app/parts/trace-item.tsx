/**
 * One trace as a line that opens.
 *
 * @module
 */
import type { Trace } from "../api.ts";
import { isSignIn } from "../sign-ins.ts";
import { isTrouble, wordsOf } from "../trace-words.ts";
import { Actor } from "./actor.tsx";
import { Facts } from "./facts.tsx";
import { Json } from "./json.tsx";
import { exactTime, Time } from "./time.tsx";
import { counted } from "../words.ts";

interface TraceItemProps {
  trace: Trace;
  isNew?: boolean;
  /** True for what happened in words instead of the name of the action. */
  inWords?: boolean;
}

export function TraceItem({ trace, isNew = false, inWords = false }: TraceItemProps) {
  return (
    <li data-row tabIndex={-1} class={isNew ? "arrived" : ""}>
      <details>
        <summary>
          <Time at={trace.timestamp} />
          {inWords ? (
            <span class={isTrouble(trace) ? "story-line bad" : "story-line"} dir="auto" title={trace.action}>
              {wordsOf(trace)}
            </span>
          ) : (
            <b>{trace.action}</b>
          )}
          {isSignIn(trace) && <span>{trace.action === "api_key.created" ? "signed in" : "signed out"}</span>}
          <span class="quiet">
            <Actor prefix={trace.actor} />
          </span>
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

/** Says what of a list is left out. */
export function HiddenSignIns({ count }: { count: number }) {
  return (
    count > 0 && (
      <p class="quiet">
        Not shown: <a href="/dashboard/traces?show=sign-ins">{counted(count, "traces")} of sign-ins</a>
      </p>
    )
  );
}
