import { createHmac } from "node:crypto";
import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { hexSignature, newSecret, secretProblem, signatureHeaders, standardSignature } from "../../../src/webhooks/signature.ts";

const BODY = JSON.stringify({ id: "evt_0VQk3bD4z9Xw", text: "Grüße, 世界 😀" });
const ID = "evt_0VQk3bD4z9Xw";

test("the plain signature is the hex HMAC-SHA256 of the body, keyed with the secret's text as it stands", () => {
  for (const secret of ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "a secret of my own choice"]) {
    expect(hexSignature(secret, BODY)).toBe(
      createHmac("sha256", Buffer.from(secret, "utf8")).update(Buffer.from(BODY, "utf8")).digest("hex"),
    );
  }
});

test("the signature that Standard Webhooks has as its example is ours too", () => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const signature = standardSignature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, '{"test": 2432232314}');
  expect(signature).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
});

test("somebody else's library verifies it, for a secret of either form", () => {
  const timestampSeconds = Math.floor(Date.now() / 1000);
  for (const { secret, verifier } of [
    { secret: newSecret(), verifier: (text: string) => new Webhook(text) },
    { secret: "a secret of my own choice", verifier: (text: string) => new Webhook(text, { format: "raw" }) },
  ]) {
    const headers = signatureHeaders([secret], { id: ID, timestampSeconds, body: BODY });
    expect(verifier(secret).verify(BODY, headers)).toEqual(JSON.parse(BODY));
    expect(() => verifier(secret).verify(BODY.replace("Grüße", "Grüsse"), headers)).toThrow();
    expect(() => verifier(secret).verify(BODY, { ...headers, "webhook-id": "evt_0VQk3bD4z9Xx" })).toThrow();
  }
});

test("after a rotation both secrets verify, and the plain signature of the one before has a header of its own", () => {
  const [next, before, older] = [newSecret(), newSecret(), newSecret()];
  const headers = signatureHeaders([next, before, older], { id: ID, timestampSeconds: Math.floor(Date.now() / 1000), body: BODY });
  for (const secret of [next, before, older]) expect(new Webhook(secret).verify(BODY, headers)).toEqual(JSON.parse(BODY));
  expect(() => new Webhook(newSecret()).verify(BODY, headers)).toThrow();
  expect([headers["X-Webhook-Signature"], headers["X-Webhook-Signature-Previous"]]).toEqual([
    hexSignature(next, BODY),
    hexSignature(before, BODY),
  ]);
});

test("a secret of ours is whsec_ and 24 random bytes in base64", () => {
  const secrets = Array.from({ length: 100 }, newSecret);
  expect(new Set(secrets).size).toBe(100);
  expect(secrets.filter((secret) => !/^whsec_[A-Za-z0-9+/]{32}$/.test(secret))).toEqual([]);
  expect(secrets.filter((secret) => secretProblem(secret) !== undefined)).toEqual([]);
});

for (const [name, secret, isFine] of [
  ["16 characters", "x".repeat(16), true],
  ["255 characters", "x".repeat(255), true],
  ["spaces and signs", 'a b!~ "quoted" {}', true],
  ["15 characters", "x".repeat(15), false],
  ["256 characters", "x".repeat(256), false],
  ["a line feed", `${"x".repeat(20)}\n`, false],
  ["an umlaut", `${"x".repeat(20)}ü`, false],
  ["whsec_ and base64", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", true],
  ["whsec_ and padded base64", "whsec_MfKQ9r8GKYqrTwjUPA==", true],
  ["whsec_ and no base64", "whsec_my-own_secret", false],
  ["whsec_ and base64 cut short", "whsec_MfKQ9r8GKYq", false],
] as const) {
  test(`a caller's secret of ${name} ${isFine ? "can" : "cannot"} be used`, () => {
    expect(secretProblem(secret) === undefined).toBe(isFine);
    if (!isFine) expect(secretProblem(secret)).not.toContain(secret);
  });
}
