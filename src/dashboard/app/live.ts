/**
 * Traces as they happen, while somebody looks: a tab in the background closes its stream, since a browser opens only six
 * connections to a server, and reads again what it missed when it is back.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { connection } from "../../client/events.ts";
import { signedIn, type Trace } from "./api.ts";

/** Time that a broken stream waits before it is opened again. */
const PAUSE_MS = 2_000;

interface Listener {
  /** Called with the traces that came together: there can be hundreds in a second. */
  traces: (traces: readonly Trace[]) => void;
  /** Called whenever a stream has begun or broken: what happened before it, or happens without it, is to be read then. */
  start: () => void;
}

/**
 * Follows the traces that pass the filter.
 *
 * @returns whether the stream is open
 */
export function useLive(filter: { session_id?: string }, on: Listener): Signal<boolean> {
  const isOpen = useSignal(false);
  const latest = useRef(on);
  latest.current = on;
  useEffect(() => {
    let stop = new AbortController();
    const start = () => {
      stop.abort();
      stop = new AbortController();
      if (!document.hidden) void follow(filter, latest, isOpen, stop.signal);
    };
    start();
    document.addEventListener("visibilitychange", start);
    return () => {
      document.removeEventListener("visibilitychange", start);
      stop.abort();
    };
  }, [JSON.stringify(filter)]);
  return isOpen;
}

async function follow(
  filter: { session_id?: string },
  on: { current: Listener },
  isOpen: Signal<boolean>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const messages of connection(signedIn(), filter, signal)) {
        if (!isOpen.value) {
          isOpen.value = true;
          on.current.start();
        }
        const traces = messages.flatMap(({ trace }) => (trace === undefined ? [] : [trace]));
        if (traces.length > 0) on.current.traces(traces);
      }
    } catch {
      // It is opened again, or its screen is left.
    }
    // A record that can no longer be read says so.
    if (isOpen.value && !signal.aborted) on.current.start();
    isOpen.value = false;
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
