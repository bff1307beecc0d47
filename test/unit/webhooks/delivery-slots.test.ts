import { expect, test } from "bun:test";
import { DeliverySlots } from "../../../src/webhooks/delivery-slots.ts";

/** Takes as many places as there are, up to 20, one webhook after another, and says how many each got. */
function fill(slots: DeliverySlots, webhooks: readonly string[], isFailing = false): number[] {
  return webhooks.map((webhook) => {
    let taken = 0;
    for (; taken < 20 && slots.isFree(webhook, isFailing); taken++) slots.take(webhook, `${webhook} ${taken}`, isFailing);
    return taken;
  });
}

test("a webhook has at most 8 attempts in flight", () => {
  const slots = new DeliverySlots();
  expect(fill(slots, ["a"])).toEqual([8]);
  slots.release("a", "a 3");
  expect(slots.inFlight()).toEqual(new Set([0, 1, 2, 4, 5, 6, 7].map((i) => `a ${i}`)));
  expect(slots.isFree("a", false)).toBe(true);
});

test("beyond one of its own, webhooks share 32 places, so that each has one however many are slow", () => {
  const slots = new DeliverySlots();
  const webhooks = Array.from({ length: 100 }, (_, i) => `w${i}`);
  // Four times seven of the pool, then the four that are left.
  expect(fill(slots, webhooks)).toEqual([8, 8, 8, 8, 5, ...Array.from({ length: 95 }, () => 1)]);
  slots.release("w0", "w0 0");
  expect([slots.isFree("w0", false), slots.isFree("w50", false)]).toEqual([true, true]);
});

test("webhooks that fail leave half of the shared places to the others", () => {
  const slots = new DeliverySlots();
  expect(fill(slots, ["a", "b", "c", "d"], true)).toEqual([8, 8, 3, 1]);
  expect(fill(slots, ["e", "f", "g"])).toEqual([8, 8, 3]);
});

test("whose last attempt is longest ago comes first", () => {
  const slots = new DeliverySlots();
  const webhooks = ["a", "b", "c", "d"].map((key) => ({ key }));
  const turns = () => slots.inTurn(webhooks).map(({ key }) => key);
  expect(turns()).toEqual(["a", "b", "c", "d"]);
  for (const webhook of ["b", "a", "d"]) slots.take(webhook, "1", false);
  expect(turns()).toEqual(["c", "b", "a", "d"]);
  slots.take("b", "2", false);
  expect(turns()).toEqual(["c", "a", "d", "b"]);
});
