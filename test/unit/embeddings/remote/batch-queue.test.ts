import { describe, expect, test } from "bun:test";
import { BatchQueue, PROBE_TEXT, type TextKind } from "../../../../src/embeddings/remote/batch-queue.ts";
import { ProviderError, type ProviderErrorFacts, type ProviderErrorKind } from "../../../../src/embeddings/remote/provider-error.ts";
import { FakeClock } from "../../../support/clock.ts";

type Behaviour = (texts: readonly string[], signal: AbortSignal) => unknown;

const fails = (facts: ProviderErrorFacts, kind: ProviderErrorKind = "rejected"): Behaviour => {
  return () => {
    throw new ProviderError(kind, `${kind}: ${JSON.stringify(facts)}`, facts);
  };
};
const GONE = fails({});
const REFUSES_ALL = fails({ inputRejected: true });
const BUSY = fails({ isTransient: true });
const hangs: Behaviour = (_, signal) =>
  new Promise((_resolve, reject) => {
    if (signal.aborted) reject(new Error("aborted"));
    signal.addEventListener("abort", () => reject(new Error("aborted")));
  });
const on = (concerns: (text: string) => boolean, behaviour: Behaviour): Behaviour => {
  return (texts, signal) => (texts.some((text) => text !== PROBE_TEXT && concerns(text)) ? behaviour(texts, signal) : undefined);
};

/** A queue before a server that does as it is told: first `next`, one behaviour a request, then `always`. */
function start({ random = 1 } = {}) {
  const clock = new FakeClock();
  const server = { batches: [] as string[][], next: [] as (Behaviour | undefined)[], always: undefined as Behaviour | undefined };
  const ask = async (texts: readonly string[], signal: AbortSignal) => {
    server.batches.push([...texts]);
    await (server.next.length > 0 ? server.next.shift() : server.always)?.(texts, signal);
    return texts.map(() => new Float32Array(1));
  };
  const queue = new BatchQueue(ask, { clock, random: () => random });
  /** What became of each text: its vector's length, or the message of its error. */
  const embed = (texts: readonly string[], kind: TextKind = "memory") =>
    Promise.all(
      texts.map((text) =>
        queue.embed(text, kind).then(
          () => "embedded",
          (error: ProviderError) => error.message,
        ),
      ),
    );
  const sizes = () => server.batches.map((batch) => batch.length);
  const secondsToProbe = () => (queue.openCircuit!.retryAtMs - clock.elapsed()) / 1000;
  return { clock, server, queue, embed, sizes, secondsToProbe };
}

const numbered = (count: number) => Array.from({ length: count }, (_, i) => `memory ${i}`);
const embedded = (count: number) => Array<string>(count).fill("embedded");

describe("batches", () => {
  test("texts of one moment share requests of 32 at most, queries and memories apart", async () => {
    const { embed, sizes } = start();
    await Promise.all([embed(numbered(70)), embed(["one", "two", "three"], "query")]);
    expect(sizes().sort((a, b) => a - b)).toEqual([3, 6, 32, 32]);
  });

  test("each kind has two requests in flight, so that a query goes at once; what waits shares the next request", async () => {
    const { server, embed, sizes } = start();
    const held = Promise.withResolvers<void>();
    server.always = on(
      (text) => text.startsWith("memory"),
      () => held.promise,
    );
    const memories = embed(numbered(80));
    expect(await embed(["tea"], "query")).toEqual(["embedded"]);
    const late = embed(["memory late"]);
    expect(sizes()).toEqual([32, 32, 1]);
    held.resolve();
    expect(await memories).toEqual(embedded(80));
    expect(await late).toEqual(["embedded"]);
    expect(sizes()).toEqual([32, 32, 1, 17]);
  });

  test("what does not fit into the queue fails at once, and the rest is embedded", async () => {
    const { queue, embed } = start();
    const outcomes = await embed(numbered(1_001));
    expect(outcomes).toEqual([...embedded(1_000), "Too many texts are waiting for the embedding provider."]);
    expect(queue.openCircuit).toBeUndefined();
  });
});

describe("texts that are refused", () => {
  test("fail alone, once the server has taken the probe text", async () => {
    const { server, queue, embed } = start();
    server.always = on((text) => text === "memory 5", REFUSES_ALL);
    expect(await embed(numbered(9))).toEqual(embedded(9).with(5, 'rejected: {"inputRejected":true}'));
    expect(server.batches[1]).toEqual([PROBE_TEXT]);
    expect(queue.openCircuit).toBeUndefined();
  });

  test("are not to blame where the probe text is refused as well: all fail with what is said of that", async () => {
    const { server, queue, embed, sizes } = start();
    server.always = (texts) => {
      throw new ProviderError("rejected", `no model for ${texts[0]}`, { inputRejected: true });
    };
    expect(await embed(["tea", "coffee"])).toEqual([`no model for ${PROBE_TEXT}`, `no model for ${PROBE_TEXT}`]);
    expect([sizes(), queue.openCircuit?.error.message]).toEqual([[2, 1], `no model for ${PROBE_TEXT}`]);
  });

  test("are retried together where the failure may pass, and not each by itself", async () => {
    const { server, embed } = start();
    server.always = on((text) => text === "bad", fails({ inputRejected: true, isTransient: true }));
    const [good, bad] = await embed(["good", "bad"]);
    expect([good, bad === "embedded"]).toEqual(["embedded", false]);
    const both = ["good", "bad"];
    expect(server.batches).toEqual([both, both, both, both, [PROBE_TEXT], ["good"], ["bad"]]);
  });

  const limitedTo = (length: number) => on((text) => text.length > length, fails({ inputRejected: true, isTooLong: true }));

  test("for their length are halved until they are taken, and later ones are cut to that before they are sent", async () => {
    const { server, embed } = start();
    server.always = limitedTo(512);
    expect(await embed(["tea", "x".repeat(4_000)])).toEqual(embedded(2));
    expect(server.batches.slice(-3)).toEqual([["x".repeat(2_000)], ["x".repeat(1_000)], ["x".repeat(500)]]);
    const before = server.batches.length;
    await embed(["y".repeat(1_000), "z".repeat(500)]);
    expect(server.batches.slice(before)).toEqual([["y".repeat(500), "z".repeat(500)]]);
  });

  test("are cut between two characters", async () => {
    const { server, embed } = start();
    server.always = limitedTo(130);
    expect(await embed([`a${"👋".repeat(200)}`])).toEqual(["embedded"]);
    expect(server.batches.at(-1)).toEqual([`a${"👋".repeat(49)}`]);
  });

  test("are not cut while they are short, whatever the server says of their length", async () => {
    const { server, embed } = start();
    server.always = limitedTo(2);
    expect(await embed(["tea"])).not.toEqual(["embedded"]);
    await embed(["coffee"]);
    expect(server.batches).toEqual([["tea"], [PROBE_TEXT], ["coffee"], [PROBE_TEXT]]);
  });

  test("for more bytes than any model reads are never sent whole", async () => {
    const { server, embed } = start();
    await embed(["茶".repeat(10_000)]);
    expect(server.batches).toEqual([["茶".repeat(6_826)]]);
  });
});

describe("trouble that passes", () => {
  test("is retried after a longer pause each time, which chance shortens by up to a half", async () => {
    for (const [random, pauses] of [
      [1, [500, 1_000, 2_000]],
      [0, [250, 500, 1_000]],
    ] as const) {
      const { server, clock, embed } = start({ random });
      server.next = [BUSY, BUSY, BUSY];
      expect(await embed(["tea"])).toEqual(["embedded"]);
      expect(clock.pauses).toEqual([...pauses]);
    }
  });

  test("opens the circuit after four attempts", async () => {
    const { server, queue, embed, sizes } = start();
    server.always = BUSY;
    expect(await embed(["tea"])).toEqual(['rejected: {"isTransient":true}']);
    expect([sizes(), queue.openCircuit === undefined]).toEqual([[1, 1, 1, 1], false]);
  });

  test("is retried no sooner than the server asks for, and not at all beyond the deadline", async () => {
    const { server, clock, embed, secondsToProbe } = start();
    server.next = [fails({ isTransient: true, retryAfterMs: 7_000 })];
    expect(await embed(["tea"])).toEqual(["embedded"]);
    expect(clock.pauses).toEqual([7_000]);
    server.next = [fails({ isTransient: true, retryAfterMs: 120_000 })];
    expect(await embed(["tea"])).not.toEqual(["embedded"]);
    expect([clock.pauses, secondsToProbe()]).toEqual([[7_000], 120]);
  });

  test("is not retried for a text whose deadline has passed", async () => {
    const { server, clock, embed } = start();
    const held = Promise.withResolvers<void>();
    server.next = [() => held.promise, () => held.promise, fails({ isTransient: true, retryAfterMs: 16_000 })];
    const first = embed(numbered(64));
    const early = embed(["early"]);
    clock.advance({ seconds: 15 });
    const late = embed(["late"]);
    held.resolve();
    expect(await first).toEqual(embedded(64));
    expect([await early, await late]).toEqual([["The embedding provider did not answer within 30 s"], ["embedded"]]);
    expect(server.batches.slice(2)).toEqual([["early", "late"], ["late"]]);
  });

  for (const [kind, seconds] of [
    ["query", 10],
    ["memory", 30],
  ] as const) {
    test(`a ${kind} fails ${seconds} s after it was asked for, whatever the server does`, async () => {
      const { server, queue, clock, embed } = start();
      server.always = hangs;
      const outcome = embed(["tea"], kind);
      await clock.waiting(seconds * 1_000);
      clock.advance({ ms: seconds * 1_000 - 100 });
      expect(await Promise.race([outcome, Promise.resolve("waiting")])).toBe("waiting");
      clock.advance({ ms: 100 });
      const message = `The embedding provider did not answer within ${seconds} s`;
      expect(await outcome).toEqual([message]);
      await Bun.sleep(0);
      expect(queue.openCircuit?.error.message).toBe(message);
    });
  }
});

describe("an open circuit", () => {
  test("fails calls at once, and what waits, until a probe succeeds; a probe may fail for another reason", async () => {
    const { server, queue, embed, sizes } = start();
    server.always = GONE;
    expect(await embed(numbered(500))).toEqual(Array(500).fill("rejected: {}"));
    expect([await embed(["tea"]), await embed(["tea"], "query"), sizes()]).toEqual([["rejected: {}"], ["rejected: {}"], [32, 32]]);
    server.always = fails({}, "unauthorized");
    await expect(queue.probe()).rejects.toThrow("unauthorized");
    expect(await embed(["tea"])).toEqual(["unauthorized: {}"]);
    server.always = undefined;
    await queue.probe();
    expect([await embed(["tea"]), queue.openCircuit]).toEqual([["embedded"], undefined]);
  });

  test("may be probed after 5 s, twice as long each time, and 5 minutes at most; an answer starts that over", async () => {
    const { server, queue, embed, secondsToProbe } = start();
    server.always = GONE;
    const waits: number[] = [];
    for (let i = 0; i < 9; i++) {
      await queue.probe().catch(() => undefined);
      waits.push(secondsToProbe());
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300]);
    server.always = undefined;
    await queue.probe();
    await embed(["tea"]);
    server.next = [GONE];
    await embed(["tea"]);
    expect(secondsToProbe()).toBe(5);
  });

  test("is followed by a slow start: one text a request, and twice as many with each answer, so a slow server makes progress", async () => {
    const { server, queue, embed, sizes } = start();
    server.next = [GONE];
    await embed(["tea"]);
    await queue.probe();
    await embed(numbered(100));
    expect(sizes().slice(2)).toEqual([1, 1, 4, 4, 16, 16, 32, 26]);
  });
});

test("closing ends what is in flight, what waits and what comes later", async () => {
  const { server, queue, embed, sizes } = start();
  server.always = hangs;
  const outcomes = embed(numbered(500));
  await Bun.sleep(0);
  queue.close();
  const message = "The embedding provider is no longer used";
  expect(await outcomes).toEqual(Array(500).fill(message));
  expect(await embed(["tea"], "query")).toEqual([message]);
  await expect(queue.probe()).rejects.toThrow(message);
  expect(sizes()).toEqual([32, 32, 1]);
});
