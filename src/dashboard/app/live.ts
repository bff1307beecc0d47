/**
 * Traces as they happen, while somebody looks: a tab in the background closes its stream, since a browser opens only six
 * connections to a server, and reads again what it missed when it is back.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api, type Trace } from "./api.ts";

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
      for await (const event of tracesIn(await api.events(filter, signal))) {
        if (event !== "open") on.current.traces(event);
        else {
          isOpen.value = true;
          on.current.start();
        }
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

/** The traces in a stream of server-sent events, after a word that it is open. */
async function* tracesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<"open" | Trace[]> {
  yield "open";
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    const traces = blocks.flatMap(traceIn);
    if (traces.length > 0) yield traces;
  }
}

function traceIn(block: string): Trace[] {
  const data = block.split("\n").flatMap((line) => (line.startsWith("data: ") ? [line.slice("data: ".length)] : []));
  return data.length === 0 ? [] : [JSON.parse(data.join("\n")) as Trace];
}
