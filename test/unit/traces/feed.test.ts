/** Streams of events where several servers share a store: what is committed late is not passed over. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nextTurn } from "../../../src/lib/clock.ts";
import { bareIdTime, firstBareIdAt, NO_PARTITION, withPrefix } from "../../../src/lib/ids.ts";
import { toJson } from "../../../src/lib/json.ts";
import { LIMITS } from "../../../src/lib/limits.ts";
import type { Reader } from "../../../src/storage/access.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { EVERYBODY } from "../../../src/storage/owner.ts";
import type { RecordStore } from "../../../src/storage/record-store.ts";
import { traces } from "../../../src/storage/tables.ts";
import { TraceFeed } from "../../../src/traces/feed.ts";
import { FakeClock } from "../../support/clock.ts";
import { Chance, until } from "../../support/process.ts";

const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? 20_261_123);
const LATE_MS = 10_000;

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nextTurn();
}

/** A stream that is read a piece at a time. */
class Slow {
  readonly ids: string[] = [];
  hasFailed = false;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #text = "";
  #isReading = false;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  }

  /** Takes the next pieces, whenever these come. */
  take(pieces = 1): void {
    if (this.#isReading || pieces === 0) return;
    this.#isReading = true;
    this.#reader.read().then(
      ({ value }) => {
        this.#isReading = false;
        this.#text += new TextDecoder().decode(value);
        const events = this.#text.split("\n\n");
        this.#text = events.pop()!;
        for (const event of events) if (event.includes("\nevent: trace\n")) this.ids.push(/^id: (.*)$/m.exec(event)![1]!);
        this.take(pieces - 1);
      },
      () => (this.hasFailed = true),
    );
  }

  cancel(): Promise<void> {
    return this.#reader.cancel();
  }
}

test(`a trace that is committed up to ten seconds after its id was drawn comes once, however slowly a stream is read (seed ${SEED})`, async () => {
  const chance = new Chance(SEED);
  const directory = mkdtempSync(join(tmpdir(), "cairn-feed-"));
  const clock = new FakeClock();
  const store = await Store.open(directory, clock);
  // A database answers later, too.
  const read = async <Result>(work: (reader: Reader) => Result): Promise<Result> => {
    const result = store.read(work);
    await turns(chance.below(3));
    return result;
  };
  const follower = {
    unseen: (keys: readonly string[]) => [...keys],
    look: () => Promise.resolve([]),
    forget: () => undefined,
    lateMs: LATE_MS,
  };
  const feed = new TraceFeed({ read } as unknown as RecordStore, clock, follower);
  const first = withPrefix("trace", firstBareIdAt(clock.now()));
  const watch = (lastEventId: string) =>
    new Slow(feed.open({ limitsId: "key", reader: { isAdmin: true, owner: EVERYBODY }, filter: {}, lastEventId, isAllowed: () => true }));

  const got = new Set<string>();
  const committed: string[] = [];
  let underWay: { key: string; dueAt: number; length: number }[] = [];
  let stream = watch(first);
  let dropped = 0;

  async function commitDue(): Promise<void> {
    const due = underWay.filter(({ dueAt }) => dueAt <= clock.now());
    underWay = underWay.filter((one) => !due.includes(one));
    if (due.length === 0) return;
    await store.commit(NO_PARTITION, (tx) => {
      for (const { key, length } of due)
        tx.add(traces, key, { expiresAt: clock.now() + 1e9, actor: "a", body: toJson({ text: "x".repeat(length) }) });
    });
    feed.published(due.map(({ key }) => key));
    committed.push(...due.map(({ key }) => withPrefix("trace", key.slice(1))));
  }

  function takeOver(): void {
    expect(new Set(stream.ids).size).toBe(stream.ids.length);
    for (const id of stream.ids) got.add(id);
  }

  /** As a reader does that was dropped when it was live, or whose connection broke. */
  async function askAgain(): Promise<void> {
    dropped += stream.hasFailed ? 1 : 0;
    // What it takes until it ends counts: the next one begins after that.
    await stream.cancel().catch(() => undefined);
    takeOver();
    stream = watch(stream.ids.at(-1) ?? [...got].at(-1) ?? first);
  }

  // At times there is much to be read, at others next to nothing, and the stream is live.
  for (let step = 0; step < 1_500; step++) {
    const isBusy = step % 500 < 250;
    clock.advance({ ms: 1 + chance.below(isBusy ? 150 : 900) });
    for (let i = chance.below(isBusy ? 8 : 2); i-- > 0;) {
      clock.advance({ ms: 1 });
      const delay = chance.below(3) === 0 ? chance.below(LATE_MS - 1_500) : 0;
      const length = chance.below(10) > 0 ? 10 : chance.below(10) > 0 ? 60_000 : 400_000;
      underWay.push({ key: `t${firstBareIdAt(clock.now())}`, dueAt: clock.now() + delay, length });
    }
    await commitDue();
    // A live reader that takes nothing for a while is dropped.
    const isAsleep = step % 500 < 80;
    if (!isAsleep && chance.below(isBusy ? 6 : 2) === 0) stream.take(isBusy ? 4 : 8);
    await turns(chance.below(6));
    const isLost = isBusy && !isAsleep && chance.below(60) === 0;
    if (!stream.hasFailed && !isLost) continue;
    await askAgain();
  }
  clock.advance({ ms: LATE_MS });
  await commitDue();
  await until("all to come", async () => {
    if (stream.hasFailed) await askAgain();
    stream.take();
    return new Set([...got, ...stream.ids]).size >= committed.length;
  });
  takeOver();
  const missing = committed.filter((id) => !got.has(id)).map((id) => bareIdTime(id.slice("trace_".length)));
  expect(missing).toEqual([]);
  expect([...got].filter((id) => !committed.includes(id))).toEqual([]);
  // It was live at times: else it would not have been dropped.
  expect(dropped).toBeGreaterThan(0);
  await stream.cancel();
  await store.close();
  rmSync(directory, { recursive: true });
});

test("a stream that cannot read what came before ends, and makes room for others at once", async () => {
  const clock = new FakeClock();
  const read = () => Promise.reject(new Error("the database does not answer"));
  const feed = new TraceFeed({ read } as unknown as RecordStore, clock);
  const lastEventId = withPrefix("trace", firstBareIdAt(clock.now()));
  for (let i = 0; i <= LIMITS.eventStreamsOfKeyMax; i++) {
    const stream = new Slow(
      feed.open({ limitsId: "key", reader: { isAdmin: true, owner: EVERYBODY }, filter: {}, lastEventId, isAllowed: () => true }),
    );
    for (let turn = 0; turn < 50 && !stream.hasFailed; turn++) {
      stream.take();
      await nextTurn();
    }
    expect(stream.hasFailed).toBe(true);
  }
});

test("what is committed while the last of what came before is read is sent, too", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cairn-feed-"));
  const clock = new FakeClock();
  const store = await Store.open(directory, clock);
  const committed: string[] = [];
  const commit = async () => {
    clock.advance({ ms: 1 });
    const key = `t${firstBareIdAt(clock.now())}`;
    await store.commit(NO_PARTITION, (tx) => tx.add(traces, key, { expiresAt: clock.now() + 1e9, actor: "a", body: toJson({}) }));
    committed.push(withPrefix("trace", key.slice(1)));
    feed.published([key]);
  };
  // Between the moment that a read shows and its answer, thrice; it is read to be sent meanwhile.
  let commits = 0;
  let isCommitting = false;
  const read = async <Result>(work: (reader: Reader) => Result): Promise<Result> => {
    const result = store.read(work);
    if (commits < 3 && !isCommitting) {
      isCommitting = true;
      commits++;
      await commit();
      await turns(20);
      isCommitting = false;
    }
    return result;
  };
  const feed = new TraceFeed({ read } as unknown as RecordStore, clock);
  const lastEventId = withPrefix("trace", firstBareIdAt(clock.now()));
  const stream = new Slow(
    feed.open({ limitsId: "key", reader: { isAdmin: true, owner: EVERYBODY }, filter: {}, lastEventId, isAllowed: () => true }),
  );
  const taken = (count: number) =>
    until(`${count} traces`, () => {
      stream.take();
      return stream.ids.length >= count;
    });
  await taken(3);
  await commit();
  await taken(4);
  expect(stream.ids).toEqual(committed);
  await stream.cancel();
  await store.close();
  rmSync(directory, { recursive: true });
});
