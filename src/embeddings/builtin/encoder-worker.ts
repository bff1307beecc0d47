/**
 * The thread of the encoder. It looks for messages after every layer of a text, so that what comes meanwhile takes its turn.
 *
 * @module
 */
import { nextTurn } from "../../lib/clock.ts";
import { describeError } from "../../lib/log.ts";
import { type Encoder, type EncodingRun, openEncoder } from "./encoder.ts";
import { centred } from "./languages.ts";
import type { FromEncoder, ToEncoder } from "./protocol.ts";
import { EncoderQueue, type Queued } from "./queue.ts";

declare const self: Worker;

interface Text extends Queued {
  readonly call: number;
  readonly text: string;
  run: EncodingRun | undefined;
}

const queue = new EncoderQueue<Text>();
const texts = new Map<number, Text>();
let encoder: Encoder | undefined;
let isWorking = false;

const post = (message: FromEncoder) => self.postMessage(message);

async function work(): Promise<void> {
  if (isWorking) return;
  isWorking = true;
  for (let text = queue.next(); text !== undefined; text = queue.next()) {
    takeStep(text);
    await nextTurn();
  }
  isWorking = false;
}

/** Begins a text, or takes it through one layer. */
function takeStep(text: Text): void {
  try {
    if (text.run === undefined) {
      // Memories have the mark of queries, too: `languages.ts` says why.
      text.run = encoder!.begin(text.text, "query");
      if (text.run === undefined) return settle(text, { kind: "vector", call: text.call, vector: undefined });
    }
    if (text.run.step()) settle(text, { kind: "vector", call: text.call, vector: vectorOf(text, text.run) });
  } catch (error) {
    settle(text, { kind: "failed", call: text.call, reason: describeError(error) });
  }
}

function vectorOf({ isQuery }: Text, run: EncodingRun): Float32Array {
  return centred(run.result(), isQuery ? "query" : "passage");
}

function settle(text: Text, message: FromEncoder): void {
  drop(text);
  post(message);
}

function drop(text: Text): void {
  queue.remove(text);
  texts.delete(text.call);
  text.run?.close();
}

function end(): void {
  for (const text of texts.values()) drop(text);
  post({ kind: "closed" });
  process.exit(0);
}

self.addEventListener("message", ({ data: message }: MessageEvent<ToEncoder>) => {
  switch (message.kind) {
    case "encode": {
      const { call, text, owner, isQuery } = message;
      const added = { call, text, owner, isQuery, length: text.length, run: undefined };
      texts.set(call, added);
      queue.add(added);
      void work();
      break;
    }
    case "cancel": {
      const text = texts.get(message.call);
      if (text !== undefined) drop(text);
      break;
    }
    case "close":
      end();
      break;
  }
});

try {
  encoder = openEncoder();
  post({ kind: "ready" });
} catch (error) {
  post({ kind: "fatal", reason: describeError(error) });
  process.exit(1);
}
