import { randomBytes } from "node:crypto";
import { expect, test } from "bun:test";
import { NONCE_BYTES, seal, unseal } from "../../../src/http/seal.ts";
import { toJson, type JsonText } from "../../../src/lib/json.ts";

const KEYS = { presentedKey: "crn_0123456789abcdefghijABCD", idempotencyKey: "k" };
const ANSWER = toJson({ key: "crn_é€😀secret" });

test("what was sealed is unsealed by the same two keys, for the same row, and by nothing else", () => {
  const sealed = seal(ANSWER, KEYS, "row", randomBytes(NONCE_BYTES));
  expect(unseal(sealed, KEYS, "row")).toBe(ANSWER);
  expect(() => unseal(sealed, { ...KEYS, presentedKey: "crn_0123456789abcdefghijABCE" }, "row")).toThrow();
  expect(() => unseal(sealed, { ...KEYS, idempotencyKey: "l" }, "row")).toThrow();
  expect(() => unseal(sealed, KEYS, "another row")).toThrow();
  const bytes = Buffer.from((JSON.parse(sealed) as { sealed: string }).sealed, "base64");
  for (let i = 0; i < bytes.length; i++) {
    const changed = Buffer.from(bytes);
    changed[i] = (changed[i] as number) ^ 1;
    expect(() => unseal(toJson({ sealed: changed.toString("base64") }), KEYS, "row")).toThrow();
  }
});

test("nothing of it can be read, and with another nonce the same answer is another text", () => {
  const [one = "", other] = [0, 1].map(() => seal(ANSWER, KEYS, "row", randomBytes(NONCE_BYTES)));
  expect(one).not.toBe(other);
  expect(Buffer.from((JSON.parse(one) as { sealed: JsonText }).sealed, "base64").includes("secret")).toBe(false);
});
