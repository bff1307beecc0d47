import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { bare, idAt, neighbourOf, timeOf } from "../../../src/dashboard/app/ids.ts";
import { bareIdTime, IdSource } from "../../../src/lib/ids.ts";
import { FakeClock } from "../../support/clock.ts";

const id = fc.stringMatching(/^[0-9A-Za-z]{12}$/);

test("the neighbours of an id are right before and after it", () => {
  expect(neighbourOf("00000000000z", 1)).toBe("000000000010");
  expect(neighbourOf("000000000010", -1)).toBe("00000000000z");
  fc.assert(
    fc.property(id, (id) => {
      const next = neighbourOf(id, 1);
      if (id === "z".repeat(12)) return;
      expect(next > id).toBe(true);
      expect(neighbourOf(next, -1)).toBe(id);
    }),
  );
  for (const last of ["0".repeat(12), "z".repeat(12)]) expect(neighbourOf(last, last.startsWith("z") ? 1 : -1)).toBe(last);
});

test("the first id of a millisecond is not after those that the server makes in it", () => {
  const clock = new FakeClock();
  const source = new IdSource(clock);
  for (let made = 0; made < 100; made++) {
    const own = bare(source.next("sess", "00"));
    expect(bareIdTime(idAt(bareIdTime(own)))).toBe(bareIdTime(own));
    expect(timeOf(`sess_${own}`)).toBe(bareIdTime(own));
    expect(idAt(bareIdTime(own)) <= own).toBe(true);
    expect(idAt(bareIdTime(own) + 1) > own).toBe(true);
  }
});
