import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { EncoderQueue, type Queued } from "../../../../src/embeddings/builtin/queue.ts";

const LAYERS = 12;

interface Text extends Queued {
  readonly name: string;
  layers: number;
}

const text = (name: string, owner: string, isQuery: boolean, length: number): Text => ({ name, owner, isQuery, length, layers: LAYERS });
/** Takes the next text through a layer. @returns it */
function layer(queue: EncoderQueue<Text>): Text | undefined {
  const next = queue.next();
  if (next === undefined) return undefined;
  if (--next.layers === 0) queue.remove(next);
  return next;
}

/** The texts in the order in which they are done, all of which wait at first. */
function orderOf(texts: readonly Text[]): string[] {
  const queue = new EncoderQueue<Text>();
  for (const one of texts) queue.add(one);
  const done = [];
  for (let next = layer(queue); next !== undefined; next = layer(queue)) if (next.layers === 0) done.push(next.name);
  return done;
}

describe("the order of texts", () => {
  test("questions before memories", () => {
    expect(orderOf([text("memory", "a", false, 100), text("question", "a", true, 100)])).toEqual(["question", "memory"]);
  });

  test("of one key short ones before long ones, but none waits for ever", () => {
    expect(orderOf([text("long", "a", false, 2_000), text("short", "a", false, 50), text("other", "a", false, 60)])).toEqual([
      "short",
      "other",
      "long",
    ]);
    const texts = [text("long", "a", false, 2_000), ...Array.from({ length: 40 }, (_, i) => text(`${i}`, "a", false, 50))];
    expect(orderOf(texts).indexOf("long")).toBeWithin(15, 25);
  });

  test("of keys those first that have had least", () => {
    const texts = ["a1", "a2", "a3", "b1", "c1"].map((name) => text(name, name[0]!, true, 100));
    expect(
      new Set(
        orderOf(texts)
          .slice(0, 3)
          .map((name) => name[0]),
      ),
    ).toEqual(new Set(["a", "b", "c"]));
  });

  test("memories get a sixteenth while questions never end", () => {
    const queue = new EncoderQueue<Text>();
    queue.add(text("memory", "a", false, 100));
    let layers = 0;
    for (let i = 0; ; i++) {
      if (i % LAYERS === 0) queue.add(text(`${i}`, "b", true, 50));
      layers++;
      const next = layer(queue)!;
      if (!next.isQuery && next.layers === 0) break;
    }
    expect(layers).toBeWithin(16 * LAYERS, 18 * LAYERS);
  });
});

test("under two floods of long texts by one key another key's question waits for at most two layers of theirs", () => {
  const property = fc.property(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 10, max: 400 }), (before, length) => {
    const queue = new EncoderQueue<Text>();
    for (let i = 0; i < 60; i++) {
      queue.add(text(`question ${i}`, "flood", true, 2_000));
      queue.add(text(`memory ${i}`, "flood", false, 2_000));
    }
    for (let i = 0; i < before; i++) layer(queue);
    // It comes in the midst of a layer, which is one of the two.
    const asked = text("asked", "other", true, length);
    queue.add(asked);
    let others = 0;
    while (asked.layers > 0) if (layer(queue)!.owner === "flood") others++;
    expect(others).toBeLessThanOrEqual(1);
  });
  fc.assert(property, { numRuns: 300 });
});

test("every text is done once, whatever comes, is taken out or is long, and few are under way at once", () => {
  const step = fc.oneof(
    fc.record({ owner: fc.constantFrom(..."abcdefghijklmn"), isQuery: fc.boolean(), length: fc.integer({ min: 1, max: 3_000 }) }),
    fc.constantFrom("layer" as const, "layer" as const, "cancel" as const),
  );
  const property = fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
    const queue = new EncoderQueue<Text>();
    const waiting = new Set<Text>();
    const take = () => {
      const next = layer(queue);
      if (next !== undefined) {
        expect(waiting.has(next)).toBe(true);
        if (next.layers === 0) waiting.delete(next);
      }
      expect(Array.from(waiting).filter(({ layers }) => layers < LAYERS).length).toBeLessThanOrEqual(8);
      return next;
    };
    for (const [i, one] of steps.entries()) {
      if (typeof one === "object") {
        const added = text(`${i}`, one.owner, one.isQuery, one.length);
        waiting.add(added);
        queue.add(added);
      } else if (one === "cancel") {
        const [gone] = waiting;
        if (gone === undefined) continue;
        waiting.delete(gone);
        queue.remove(gone);
      } else take();
    }
    while (take() !== undefined);
    expect(waiting.size).toBe(0);
  });
  fc.assert(property, { numRuns: 300 });
});
