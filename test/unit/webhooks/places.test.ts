import { expect, test } from "bun:test";
import { Places } from "../../../src/webhooks/places.ts";

/** Takes as many places as there are, up to 20, one webhook after another, and says how many each got. */
function fill(places: Places, webhooks: readonly string[], isFailing = false): number[] {
  return webhooks.map((webhook) => {
    let taken = 0;
    for (; taken < 20 && places.isFree(webhook, isFailing); taken++) places.take(webhook, `${webhook} ${taken}`, isFailing);
    return taken;
  });
}

test("a webhook has at most 8 attempts in flight", () => {
  const places = new Places();
  expect(fill(places, ["a"])).toEqual([8]);
  places.release("a", "a 3");
  expect(places.inFlight()).toEqual(new Set([0, 1, 2, 4, 5, 6, 7].map((i) => `a ${i}`)));
  expect(places.isFree("a", false)).toBe(true);
});

test("beyond one of its own, webhooks share 32 places, so that each has one however many are slow", () => {
  const places = new Places();
  const webhooks = Array.from({ length: 100 }, (_, i) => `w${i}`);
  // Four times seven of the pool, then the four that are left.
  expect(fill(places, webhooks)).toEqual([8, 8, 8, 8, 5, ...Array.from({ length: 95 }, () => 1)]);
  places.release("w0", "w0 0");
  expect([places.isFree("w0", false), places.isFree("w50", false)]).toEqual([true, true]);
});

test("webhooks that fail leave half of the shared places to the others", () => {
  const places = new Places();
  expect(fill(places, ["a", "b", "c", "d"], true)).toEqual([8, 8, 3, 1]);
  expect(fill(places, ["e", "f", "g"])).toEqual([8, 8, 3]);
});

test("whose last attempt is longest ago comes first", () => {
  const places = new Places();
  const webhooks = ["a", "b", "c", "d"].map((key) => ({ key }));
  const turns = () => places.inTurn(webhooks).map(({ key }) => key);
  expect(turns()).toEqual(["a", "b", "c", "d"]);
  for (const webhook of ["b", "a", "d"]) places.take(webhook, "1", false);
  expect(turns()).toEqual(["c", "b", "a", "d"]);
  places.take("b", "2", false);
  expect(turns()).toEqual(["c", "a", "d", "b"]);
});
