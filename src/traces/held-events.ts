/**
 * Events of traces, and those of them that streams hold because they have sent a part.
 *
 * @module
 */
import { withPrefix, type BareId } from "../lib/ids.ts";
import type { LatestReader, Reader } from "../storage/access.ts";
import { readable } from "../storage/bad-rows.ts";
import { isErased } from "../storage/erasure.ts";
import { traces } from "../storage/tables.ts";
import { shownTrace, traceJson, type FoundTrace } from "./traces.ts";

/** Bytes that all streams together hold of events that they have sent in part. */
const HELD_BYTES_MAX = 4 * 1024 * 1024;

/** A trace, and its event once that is needed, which all streams that have it share. */
export class TraceEvent {
  readonly found: FoundTrace;
  #bytes: Uint8Array | undefined;

  constructor(found: FoundTrace) {
    this.found = found;
  }

  get id(): BareId {
    return this.found.key.slice(1);
  }

  get bytes(): Uint8Array {
    return (this.#bytes ??= new TextEncoder().encode(
      `id: ${withPrefix("trace", this.id)}\nevent: trace\ndata: ${traceJson(this.found)}\n\n`,
    ));
  }
}

/** A row that cannot be read keeps no other from being sent. */
export function eventAt(reader: Reader, key: string): TraceEvent | undefined {
  const row = readable(() => reader.get(traces, key));
  return row === undefined ? undefined : new TraceEvent(shownTrace(reader, { key, row }));
}

/** Progress of sending an event, and its text then, or the event itself where that is held. */
export interface Partly {
  readonly key: string;
  readonly of: TraceEvent | { readonly hash: number | bigint };
  from: number;
}

interface Held {
  readonly event: TraceEvent;
  /** The revision of its row, once that was found to be the same. */
  revision?: number | bigint | undefined;
  holders: number;
}

/** Events of which streams have sent a part, once for all of them. Those for which there is no space are read again for each part. */
export class HeldEvents {
  readonly #events = new Map<string, Held>();
  #bytes = 0;

  has(key: string): boolean {
    return this.#events.has(key);
  }

  /** The event of a trace as it is now: the one that is held, where that is the same, without reading all of it again. */
  eventAt(reader: LatestReader, key: string): TraceEvent | undefined {
    const held = this.#events.get(key);
    if (held === undefined) return eventAt(reader, key);
    const revision = reader.revision(traces, key);
    const isSame = revision !== undefined && revision === held.revision && !isErased(reader, held.event.found.row, held.event.id);
    if (isSame) return held.event;
    const event = eventAt(reader, key);
    if (event?.found.row.body !== held.event.found.row.body) return event;
    held.revision = revision;
    return held.event;
  }

  /** The bytes of an event of which a part was sent, if it is what it was. */
  again(reader: LatestReader, { key, of }: Partly): Uint8Array | undefined {
    const event = this.eventAt(reader, key);
    if (of instanceof TraceEvent) return event === of ? of.bytes : undefined;
    return event !== undefined && Bun.hash(event.bytes) === of.hash ? event.bytes : undefined;
  }

  hold(event: TraceEvent): boolean {
    const { key } = event.found;
    const held = this.#events.get(key);
    if (held === undefined && this.#bytes + event.bytes.byteLength <= HELD_BYTES_MAX) {
      this.#bytes += event.bytes.byteLength;
      this.#events.set(key, { event, holders: 1 });
      return true;
    }
    if (held?.event !== event) return false;
    held.holders++;
    return true;
  }

  release(event: TraceEvent): void {
    const held = this.#events.get(event.found.key);
    if (held?.event !== event || --held.holders > 0) return;
    this.#events.delete(event.found.key);
    this.#bytes -= event.bytes.byteLength;
  }
}
