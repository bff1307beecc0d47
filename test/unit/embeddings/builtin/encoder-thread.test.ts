import { expect, test } from "bun:test";
import { EncoderThread } from "../../../../src/embeddings/builtin/encoder-thread.ts";
import type { FromEncoder, ToEncoder } from "../../../../src/embeddings/builtin/protocol.ts";
import { ProviderError } from "../../../../src/embeddings/remote/provider-error.ts";
import { FakeClock } from "../../../support/clock.ts";

/** A thread that does what the test says. */
class FakeWorker extends EventTarget {
  readonly sent: ToEncoder[] = [];
  postMessage = (message: ToEncoder) => void this.sent.push(message);
  ref = () => undefined;
  unref = () => undefined;
  says(message: FromEncoder): void {
    this.dispatchEvent(new MessageEvent("message", { data: message }));
  }
  ends(): void {
    this.dispatchEvent(new Event("close"));
  }
}

function start() {
  const workers: FakeWorker[] = [];
  const failures: string[] = [];
  const clock = new FakeClock();
  const thread = new EncoderThread(
    clock,
    (reason) => failures.push(reason),
    () => {
      const worker = new FakeWorker();
      workers.push(worker);
      return worker as unknown as Worker;
    },
  );
  const encode = (text: string, owner = "a", signal?: AbortSignal) => thread.encode({ text, owner, isQuery: true, signal });
  return { thread, clock, workers, failures, encode };
}

const outcomeOf = (promise: Promise<unknown>) =>
  promise.then(
    (value) => value,
    (error: unknown) => (error instanceof ProviderError ? error.kind : error),
  );

test("texts get the vectors that are theirs, in whatever order they come", async () => {
  const { thread, workers, encode } = start();
  const [one, two] = [encode("one"), encode("two", "b")];
  expect(workers.map(({ sent }) => sent)).toEqual([
    [
      { kind: "encode", call: 1, text: "one", owner: "a", isQuery: true },
      { kind: "encode", call: 2, text: "two", owner: "b", isQuery: true },
    ],
  ]);
  expect(thread.waiting).toBe(2);
  workers[0]!.says({ kind: "vector", call: 2, vector: undefined });
  workers[0]!.says({ kind: "vector", call: 1, vector: Float32Array.of(1) });
  expect([await one, await two]).toEqual([Float32Array.of(1), undefined]);
  expect(thread.waiting).toBe(0);
});

test("one that nobody waits for any more is cancelled, and its vector ignored", async () => {
  const { workers, encode } = start();
  const abort = new AbortController();
  const gone = outcomeOf(encode("gone", "a", abort.signal));
  abort.abort();
  expect(await gone).toBe("unreachable");
  expect(workers[0]!.sent.at(-1)).toEqual({ kind: "cancel", call: 1 });
  workers[0]!.says({ kind: "vector", call: 1, vector: Float32Array.of(1) });
  expect(await outcomeOf(encode("late", "a", AbortSignal.abort()))).toBe("unreachable");
});

test("a thread that ends is replaced, and given again what it had; what ends two has failed, and for a while all that comes", async () => {
  const { thread, clock, workers, failures, encode } = start();
  const text = outcomeOf(encode("text"));
  workers[0]!.ends();
  expect(workers[1]!.sent).toEqual(workers[0]!.sent);
  const other = outcomeOf(encode("other"));
  workers[1]!.ends();
  expect([await text, await other]).toEqual(["unreachable", "unreachable"]);
  expect([failures.length, workers.length]).toEqual([2, 2]);
  expect(await outcomeOf(encode("at once"))).toBe("unreachable");
  expect(thread.failure?.message).toBe("The built-in encoder has ended: the thread has ended");
  clock.advance({ seconds: 5 });
  const later = encode("later");
  workers[2]!.says({ kind: "ready" });
  expect(thread.failure).toBeUndefined();
  workers[2]!.says({ kind: "vector", call: 3, vector: undefined });
  expect(await later).toBeUndefined();
});

test("a text that cannot be encoded fails alone", async () => {
  const { workers, encode } = start();
  const [bad, good] = [outcomeOf(encode("bad")), encode("good")];
  workers[0]!.says({ kind: "failed", call: 1, reason: "it is bad" });
  workers[0]!.says({ kind: "vector", call: 2, vector: undefined });
  expect([await bad, await good]).toEqual(["rejected", undefined]);
});

test("what waits is bounded for each key, and in all", async () => {
  const { workers, encode } = start();
  const ofOne = Array.from({ length: 257 }, (_, i) => outcomeOf(encode(`${i}`)));
  expect(await ofOne.at(-1)).toBe("rate_limited");
  const ofOthers = Array.from({ length: 4_096 }, (_, i) => outcomeOf(encode(`${i}`, `key ${i % 100}`)));
  expect(await ofOthers.at(-1)).toBe("rate_limited");
  workers[0]!.says({ kind: "vector", call: 1, vector: undefined });
  const free = outcomeOf(encode("again"));
  const { call } = workers[0]!.sent.at(-1) as Extract<ToEncoder, { kind: "encode" }>;
  workers[0]!.says({ kind: "vector", call, vector: undefined });
  expect(await free).toBeUndefined();
});

test("closing ends the thread, and fails what waits and what comes", async () => {
  const { thread, workers, failures, encode } = start();
  const waiting = outcomeOf(encode("text"));
  const closing = thread.close();
  expect(await waiting).toBe("unreachable");
  expect(workers[0]!.sent.at(-1)).toEqual({ kind: "close" });
  workers[0]!.says({ kind: "closed" });
  await closing;
  workers[0]!.ends();
  expect([await outcomeOf(encode("more")), failures, workers.length]).toEqual(["unreachable", [], 1]);
});
