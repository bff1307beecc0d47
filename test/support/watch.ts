/**
 * A reader of the stream of `GET /v1/events`.
 *
 * @module
 */
import { expect } from "bun:test";
import type { Cairn } from "./cairn.ts";

/** A reader of a stream, an event at a time. */
export class Watch {
  readonly response: Response;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #after: string;
  #text = "";

  /** @param after - what is not newer is passed over */
  constructor(response: Response, after: string) {
    this.response = response;
    this.#after = after;
    this.#reader = response.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  }

  /** Reads on as far as there is something. Returns what is there of the next part, which need not be all of it. */
  async some(): Promise<string> {
    const { value } = await this.#reader.read();
    return (this.#text += new TextDecoder().decode(value));
  }

  /** The next part: an event, or a comment; undefined at the end. */
  async part(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const part = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return part;
      }
      const { value, done } = await this.#reader.read();
      if (done) return undefined;
      this.#text += new TextDecoder().decode(value);
    }
  }

  /** The trace of the next event. */
  async trace(): Promise<any> {
    for (;;) {
      const part = await this.part();
      if (part === undefined) return undefined;
      const [, id, data] = /^id: (.*)\nevent: trace\ndata: (.*)$/.exec(part) ?? [];
      if (data === undefined) continue;
      const trace = JSON.parse(data);
      expect(trace.id).toBe(id);
      if (trace.id > this.#after) return trace;
    }
  }

  async traces(count: number): Promise<any[]> {
    const given: any[] = [];
    while (given.length < count) given.push(await this.trace());
    return given;
  }

  cancel(): Promise<void> {
    return this.#reader.cancel();
  }
}

export async function watch(cairn: Cairn, query = "", options: { key?: string; after?: string; server?: number } = {}): Promise<Watch> {
  const { key, after, server } = options;
  const headers = after === undefined ? {} : { "Last-Event-ID": after };
  // Where servers share a database, what is a few seconds older comes again.
  const passedOver = cairn.service.embedded === undefined ? (after ?? "") : "";
  return new Watch(await cairn.events(query, { headers, server, ...(key === undefined ? {} : { key }) }), passedOver);
}
