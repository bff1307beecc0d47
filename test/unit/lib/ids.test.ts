import { expect, test } from "bun:test";
import { ID_PREFIXES, bare, firstBareIdAt, isId, withPrefix } from "../../../src/lib/ids.ts";

test("an id is its prefix, an underscore and 12 letters or digits, and nothing else", () => {
  for (const prefix of ID_PREFIXES) expect([prefix, isId(prefix, `${prefix}_0VQk3aB4x1Zq`)]).toEqual([prefix, true]);
  const others = [
    "",
    "sess_",
    "0VQk3aB4x1Zq",
    "mem_0VQk3aB4x1Zq",
    "SESS_0VQk3aB4x1Zq",
    "sess-0VQk3aB4x1Zq",
    "sess_0VQk3aB4x1Z",
    "sess_0VQk3aB4x1Zqq",
    "sess_0VQk3aB4x1Z-",
    "sess_0VQk3aB4x1Zé",
    "sess_0VQk3aB4x1Zq\n",
    " sess_0VQk3aB4x1Zq",
    "sess_../../etc/pa",
  ];
  expect(others.filter((text) => isId("sess", text))).toEqual([]);
});

test("an id without its prefix gets it back", () => {
  expect(bare("sess_0VQk3aB4x1Zq")).toBe("0VQk3aB4x1Zq");
  expect(withPrefix("sess", bare("sess_0VQk3aB4x1Zq"))).toBe("sess_0VQk3aB4x1Zq");
});

test("a time that no id can have is the first or the last of those that one can", () => {
  expect([-1, Number.MIN_SAFE_INTEGER].map(firstBareIdAt)).toEqual(["000000000000", "000000000000"]);
  expect([62 ** 7 - 1, 62 ** 7, Number.MAX_SAFE_INTEGER].map(firstBareIdAt)).toEqual(["zzzzzzz00000", "zzzzzzz00000", "zzzzzzz00000"]);
});
