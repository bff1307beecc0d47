import { expect, test } from "bun:test";
import { requestIdOf } from "../../../src/http/request-id.ts";
import { IdSource } from "../../../src/lib/ids.ts";
import { FakeClock } from "../../support/clock.ts";

const sane = ["a", "req_0VQk3aB4x1Zq", "8c1d0b2e-4a1f-4f0e-9d3b-1c2d3e4f5a6b", "trace:1/span=2+3.4", "x".repeat(128)];
const odd = ["", "x".repeat(129), "a b", "a\tb", 'a"b', "a,b", "<script>", "\u00e9", "a;b", "{}"];

for (const id of sane) {
  test(`a client's own request id ${id.slice(0, 40)} (${id.length}) is kept`, () => {
    expect(requestIdOf(new Headers({ "x-request-id": id }), new IdSource(new FakeClock()))).toBe(id);
  });
}

for (const id of odd) {
  test(`a request id ${JSON.stringify(id.slice(0, 40))} (${id.length}) is replaced`, () => {
    expect(requestIdOf(new Headers({ "x-request-id": id }), new IdSource(new FakeClock()))).toMatch(/^req_[0-9A-Za-z]{12}$/);
  });
}

test("requests without an id get different ones", () => {
  const ids = new IdSource(new FakeClock());
  const given = Array.from({ length: 100 }, () => requestIdOf(new Headers(), ids));
  expect(new Set(given).size).toBe(100);
});
