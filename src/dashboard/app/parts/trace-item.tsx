/**
 * One trace as a line that opens.
 *
 * @module
 */
import type { ApiKey, Trace } from "../api.ts";
import { Actor } from "./actor.tsx";
import { Facts } from "./facts.tsx";
import { Json } from "./json.tsx";
import { exactTime, Time } from "./time.tsx";

const SIGN_IN_KINDS: ReadonlySet<unknown> = new Set<ApiKey["kind"]>(["session", "link"]);

/** Whether it is of the key that a browser got by signing in, or of a link that signs one in, and its end. */
export function isSignIn({ action, details }: Trace): boolean {
  return (action === "api_key.created" || action === "api_key.revoked") && SIGN_IN_KINDS.has(details["kind"]);
}

export function TraceItem({ trace, isNew = false }: { trace: Trace; isNew?: boolean }) {
  return (
    <li data-row tabIndex={-1} class={isNew ? "arrived" : ""}>
      <details>
        <summary>
          <Time at={trace.timestamp} />
          <b>{trace.action}</b>
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
