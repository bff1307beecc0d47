/**
 * Which texts are secrets, and which are not.
 *
 * @module
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { findSecrets } from "../../../src/secrets/find.ts";
import { SECRET_GROUPS, SECRET_KINDS, type SecretGroup } from "../../../src/secrets/kinds.ts";
import { REDACTIONS_MAX, redacted, screen, screenedText } from "../../../src/secrets/screen.ts";
import { githubToken, PERSONAL, SECRETS, varied, withCrc } from "../../support/secrets.ts";
import ENGLISH from "../../retrieval/everyday/english.json" with { type: "json" };
import LANGUAGES from "../../retrieval/everyday/languages.json" with { type: "json" };
import { MEMORIES } from "../../retrieval/memories.ts";
import { QUESTIONS } from "../../retrieval/questions.ts";

const USUAL: ReadonlySet<SecretGroup> = new Set<SecretGroup>(["keys", "cards"]);
const ALL: ReadonlySet<SecretGroup> = new Set(SECRET_GROUPS);

/** What is found in a text, by its kind. */
const foundIn = (text: string, groups = USUAL) => findSecrets(text, groups).map(({ kind, start, end }) => [kind, text.slice(start, end)]);

test("there is an example of every kind, and each is found whole, wherever it stands", () => {
  expect(SECRET_KINDS.filter((kind) => ![...SECRETS, ...PERSONAL].some((one) => one.kind === kind))).toEqual([]);
  for (const { kind, secret, before = "", after = "" } of [...SECRETS, ...PERSONAL]) {
    const text = before + secret + after;
    const around = [text, `the key is ${text}, and more`, `"${text}"`, `(${text})`, `é ${text}\nnext`, `key=${text};`, `猫${text}猫`];
    for (const one of around) expect([one, foundIn(one, ALL)]).toEqual([one, [[kind, secret]]]);
  }
});

test("a secret in JSON within a text, in a URL and in a list is found", () => {
  const secret = githubToken();
  for (const text of [
    String.raw`{\"a\":\"${secret}\"}`,
    String.raw`one\n${secret}\ntwo`,
    `?q=a%3D${secret}`,
    `https://user:${secret}@github.com`,
    `- ${secret}`,
    `-${secret}`,
  ])
    expect([text, foundIn(text).map(([, found]) => found)]).toEqual([text, [secret]]);
});

test("a token whose checksum is another is none", () => {
  for (const prefix of ["ghp_", "npm_"]) {
    const token = withCrc(prefix);
    const last = token.endsWith("a") ? "b" : "a";
    expect(foundIn(token)).toHaveLength(1);
    expect(foundIn(token.slice(0, -1) + last)).toEqual([]);
  }
  expect(foundIn("4111 1111 1111 1112")).toEqual([]);
  const header = Buffer.from(JSON.stringify({ typ: "JWT", kid: "1234567890" })).toString("base64url");
  expect(foundIn(`${header}.eyJzdWIiOiJhIn0.${varied(43)}`)).toEqual([]);
  expect(foundIn(`${Buffer.from("{}").toString("base64url")}AAAAAAAAAAAAAAAA.e30.${varied(43)}`)).toEqual([]);
});

/** Texts of developers that look like keys and are none. */
const HARMLESS = [
  "550e8400-e29b-41d4-a716-446655440000",
  "12345678-1234-4123-8123-123456789012",
  "41111111-1111-4111-8111-111111111111",
  "af265487d3c1b2a09f8e7d6c5b4a39281706f5e4",
  "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "sha512-8vT8FO4smHeurOHFdJ7zyUvOifxkTtii2Y7+lEkkSKBEHozsHUKSnElSV8q7hNl3pH5Rl4u/rw9eWsF+ejGNLg==",
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "2026-05-07T08:00:00.123456Z level=info msg=request ms=12.5 id=req_0VQk3bD4w8Vu",
  "sess_0VQk3aB4x1Zq mem_0VQk3aB9r7Ts turn_0VQk3aC7y2Xp",
  "1778140800000 1778140800000000 1778140800000000000",
  "0.4111111111111111",
  "17 4111 1111 1111 1111",
  "4111 1111 1111 1111 17",
  "1234567890123456 9999888877776666 4111111111111112",
  "1990 1991 1992 1993 1994 4000 5000 6000 7000",
  "arn:aws:iam::123456789012:user/ada",
  "AKIAIOSFODNN7EXAMPLE",
  "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-ant-api03-... sk_live_xxxxxxxxxxxxxxxxxxxxxxxx",
  "STRIPE_WEBHOOK_SECRET=$STRIPE_WEBHOOK_SECRET",
  "postgres://user:password@localhost/db postgres://cairn:%PASSWORD%@db/cairn redis://:<password>@cache:6379",
  "https://example.com:8443/a?b=c@d http://[::1]:8700/ mailto:ada@example.com",
  "the file begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----",
  "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ0dLx0pZq6hQ9b2mHcZ1n8o0Z1EwCgYIKoZIzj0EAwIw\n-----END CERTIFICATE-----",
  "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ada@host",
  "eyJ is how a JWT begins; eyJhbGciOiJIUzI1NiJ9 is a header alone",
  "secret_access_key is a name; aws_secret_access_key = (see the vault)",
  "github.com/owner/repository/commit/af265487d3c1b2a09f8e7d6c5b4a39281706f5e4#diff-0123456789abcdef",
  "npm_config_registry npm_lifecycle_event gho_st hf_hub_download_with_progress_bar_disabled",
  "The order 4111-22 and the tracking numbers 00340434161094042557, JJD000390007890123456",
  "ISBN 978-3-16-148410-0, IBAN DE89370400440532013000, VAT DE-811907980",
  "SG.a.b hvs.caller ya29.x sk-learn xai-explanations",
];

test("nothing is found in what developers write otherwise", () => {
  for (const text of HARMLESS) expect([text, foundIn(text)]).toEqual([text, []]);
});

/** All texts in a value. */
function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

test("nothing is found in the texts that the search is measured with", () => {
  const texts = textsOf([ENGLISH, LANGUAGES, MEMORIES, QUESTIONS]);
  expect(texts.length).toBeGreaterThan(2_000);
  expect(texts.flatMap((text) => foundIn(text))).toEqual([]);
});

test("what chance makes is no secret: hexadecimal, base64 and identifiers", () => {
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 200 }).map((all) => Buffer.from(all));
  const texts = fc.oneof(
    bytes.map((all) => all.toString("hex")),
    bytes.map((all) => all.toString("base64")),
    bytes.map((all) => all.toString("base64url")),
    fc.uuid(),
    fc.lorem(),
  );
  fc.assert(fc.property(texts, (text) => foundIn(text).length === 0));
});

test("what was taken out is found no more, and the rest stays as it was", () => {
  const pieces = fc.array(
    fc.oneof(
      fc.string(),
      fc.constantFrom(" ", "\n", "=", '"', "-", "eyJ", "://", "@", "-----BEGIN "),
      fc.constantFrom(...SECRETS, ...PERSONAL).map(({ before = "", secret, after = "" }) => before + secret + after),
    ),
  );
  fc.assert(
    fc.property(pieces, (all) => {
      const text = all.join(" ");
      const found = findSecrets(text, ALL);
      expect(found).toEqual(found.toSorted((a, b) => a.start - b.start));
      const once = redacted(text, found);
      // What stood beside a secret can be one then: it takes as many rounds as there are left.
      let rest = once;
      for (let rounds = 0; rounds < 20 && findSecrets(rest, ALL).length > 0; rounds++) rest = redacted(rest, findSecrets(rest, ALL));
      expect(findSecrets(rest, ALL)).toEqual([]);
      const kept = once.split(/\[redacted:[a-z_]+\]/);
      let at = 0;
      for (const part of kept) {
        at = text.indexOf(part, at);
        expect(at).not.toBe(-1);
        at += part.length;
      }
    }),
  );
});

test("all within JSON is looked at: texts, names and whole numbers, and what has no secret is the same value", () => {
  const token = githubToken();
  const value = {
    a: [{ [token]: 1, "[redacted:github_token]": 2 }],
    card: 4111111111111111,
    n: 17,
    aws_secret_access_key: varied(40, 9),
    same: { b: ["c"] },
  };
  const screened = screenedText(value, USUAL);
  expect(screened).toEqual({
    a: [{ "[redacted:github_token]#2": 1, "[redacted:github_token]": 2 }],
    card: "[redacted:card_number]",
    n: 17,
    aws_secret_access_key: "[redacted:aws_secret_key]",
    same: { b: ["c"] },
  } as never);
  expect(screened.same).toBe(value.same);
  expect(screenedText(value.same, USUAL)).toBe(value.same);
});

test("many secrets, in names too, and long paths to them take no longer than their length, and no longer answer", () => {
  const COUNT = 30_000;
  const many = Object.fromEntries(Array.from({ length: COUNT }, (_, i) => [`u${i}@example.com`, `v${i}@example.com`]));
  const members = { all: "all" } as const;
  const { value, found } = screen({ all: many }, members, ALL);
  expect(Object.keys(value["all"] as object)).toHaveLength(COUNT);
  expect(Object.keys(value["all"] as object).slice(0, 2)).toEqual(["[redacted:email]", "[redacted:email]#2"]);
  expect(found).toHaveLength(REDACTIONS_MAX + 1);
  expect(found.at(-1)).toEqual({ path: "…", kind: "email", count: 2 * COUNT - REDACTIONS_MAX });
  const deep = { all: { ["n".repeat(400_000)]: Array.from({ length: COUNT }, () => "a@example.com") } };
  const long = screen(deep, members, ALL).found;
  expect(long[0]?.path).toBe(`all.${"n".repeat(252)}…`);
  expect(JSON.stringify(long).length).toBeLessThan(50_000);
});
