import { expect, test } from "bun:test";
import { requestIdOf } from "../../../src/http/request-id.ts";
import { IdSource } from "../../../src/lib/ids.ts";
import { FakeClock } from "../../support/clock.ts";

const SANE = ["a", "req_0VQk3aB4x1Zq", "8c1d0b2e-4a1f-4f0e-9d3b-1c2d3e4f5a6b", "trace:1/span=2+3.4", "x".repeat(128)];
const ODD = ["", "x".repeat(129), "a b", "a\tb", 'a"b', "a,b", "<script>", "\u00e9", "a;b", "{}"];

test("a client's own request id is kept when it is sane; otherwise each request gets a new one", () => {
  const ids = new IdSource(new FakeClock());
  expect(SANE.map((id) => requestIdOf(new Headers({ "x-request-id": id }), ids))).toEqual(SANE);
  const made = [...ODD.map((id) => new Headers({ "x-request-id": id })), new Headers()].map((headers) => requestIdOf(headers, ids));
  expect(made.filter((id) => !/^req_[0-9A-Za-z]{12}$/.test(id))).toEqual([]);
  expect(new Set(made).size).toBe(ODD.length + 1);
});
