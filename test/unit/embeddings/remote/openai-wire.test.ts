import { describe, expect, test } from "bun:test";
import { fallbackForm, readVectors, refusal } from "../../../../src/embeddings/remote/openai-wire.ts";
import { OpenAiEmbedder } from "../../../../src/embeddings/remote/openai.ts";
import { FakeClock } from "../../../support/clock.ts";
import { ratioOf } from "../../../support/timing.ts";

const KEY = "sk-proj-Zm9vYmFyYmF6cXV4cXV1eA_0123";
const answer = (status: number, body: unknown) => ({
  status,
  body: typeof body === "string" ? body : JSON.stringify(body),
  retryAfterMs: undefined,
  isPublic: true,
});
/** The error's message about the probe text. */
const said = (body: unknown) => refusal(answer(404, body), { apiKey: KEY, isProbe: true }).message;

describe("a refusal", () => {
  const kinds: [status: number, kind: string, isTransient: boolean, inputRejected: boolean][] = [
    [400, "rejected", false, true],
    [401, "unauthorized", false, false],
    [403, "unauthorized", false, false],
    [404, "rejected", false, false],
    [408, "timeout", true, false],
    [413, "rejected", false, true],
    [422, "rejected", false, true],
    [429, "rate_limited", true, false],
    [500, "unreachable", true, true],
    [501, "unreachable", false, false],
    [502, "unreachable", true, false],
    [503, "unreachable", true, false],
    [504, "timeout", true, false],
  ];
  for (const [status, kind, isTransient, inputRejected] of kinds) {
    test(`with ${status} is "${kind}", ${isTransient ? "may pass" : "stays"}${inputRejected ? ", and may be about the texts" : ""}`, () => {
      const error = refusal(answer(status, { error: { message: "No.", type: "some_error" } }), { apiKey: undefined, isProbe: false });
      expect([error.kind, error.facts.isTransient, error.facts.inputRejected]).toEqual([kind as never, isTransient, inputRejected]);
      expect(error.message).toBe(`The embedding provider answered ${status} (some_error)`);
    });
  }

  test("for a quota that is used up stays", () => {
    const error = refusal(answer(429, { error: { message: "You exceeded your current quota", code: "insufficient_quota" } }), {
      apiKey: undefined,
      isProbe: false,
    });
    expect([error.kind, error.facts.isTransient]).toEqual(["rate_limited", false]);
  });

  test("for the length of a text says so, and then a 500 stays as well", () => {
    for (const message of [
      "the input length exceeds the context length",
      "This model's maximum context length is 8192 tokens",
      "too large",
    ]) {
      for (const status of [400, 413, 422, 500]) {
        const { facts } = refusal(answer(status, { error: { message } }), { apiKey: undefined, isProbe: false });
        expect([message, status, facts.isTooLong, facts.isTransient]).toEqual([message, status, true, false]);
      }
    }
  });

  const bodies: { of: string; body: unknown; shown: string }[] = [
    { of: "OpenAI", body: { error: { message: "No model.", code: "gone" } }, shown: ": No model." },
    { of: "vLLM", body: { object: "error", message: "No model.", code: 404 }, shown: ": No model." },
    { of: "Text Embeddings Inference", body: { error: "No model.", error_type: "x" }, shown: ": No model." },
    { of: "FastAPI", body: { detail: [{ loc: ["body"], msg: "No model." }] }, shown: ': [{"loc":["body"],"msg":"No model."}]' },
    { of: "a proxy", body: "No\n\0model.", shown: ": No model." },
    { of: "a web server", body: "<html><h1>Not found</h1></html>", shown: "" },
    { of: "somebody who talks much", body: "x".repeat(5_000), shown: `: ${"x".repeat(200)}…` },
  ];
  for (const { of, body, shown } of bodies) {
    test(`of the probe text shows what is said, as ${of} writes it`, () => {
      expect(said(body)).toBe(`The embedding provider answered 404${shown}`);
    });
  }

  const TEXT = "a private thing";
  const quoting: { of: string; body: unknown; shown: string }[] = [
    { of: "a message", body: { error: { message: TEXT, code: "gone", type: "x" } }, shown: " (gone)" },
    { of: "a code", body: { error: { code: TEXT, type: "api_error" } }, shown: " (api_error)" },
    { of: "a type", body: { type: TEXT, message: TEXT }, shown: "" },
    { of: "FastAPI's details", body: { detail: [{ loc: [TEXT], msg: TEXT, input: TEXT }] }, shown: "" },
    { of: "plain text", body: TEXT, shown: "" },
    { of: "a code that is the key", body: { error: { code: KEY } }, shown: " ([key])" },
  ];
  for (const { of, body, shown } of quoting) {
    test(`of a user's text repeats neither that nor the key: ${of}`, () => {
      expect(refusal(answer(404, body), { apiKey: KEY, isProbe: false }).message).toBe(`The embedding provider answered 404${shown}`);
    });
  }

  const echoes: { name: string; body: string; shown: string }[] = [
    { name: "whole", body: `bad key ${KEY}.`, shown: "bad key [key]" },
    { name: "with stars", body: "bad key sk-proj-********0123 given", shown: "bad key [key] given" },
    { name: "its beginning", body: `bad key ${KEY.slice(0, 20)}... given`, shown: "bad key [key] given" },
    { name: "across the place where the message is cut", body: `${"x".repeat(190)} ${KEY}`, shown: `${"x".repeat(190)} [key]` },
  ];
  for (const { name, body, shown } of echoes) {
    test(`does not show the key: ${name}`, () => {
      expect(said(body).replace(/\.$/, "")).toBe(`The embedding provider answered 404: ${shown}`);
    });
  }
});

test("a complaint about an option is understood as each server writes it", () => {
  const both = { dimensions: true, base64: true };
  for (const body of [
    { detail: [{ loc: ["body", "dimensions"], msg: "Extra inputs are not permitted" }] },
    { object: "error", message: "dimensions is currently not supported", code: 400 },
    { error: "Model does not support matryoshka representation" },
  ]) {
    expect(fallbackForm(both, answer(422, body))).toEqual({ dimensions: false, base64: true });
  }
  expect(fallbackForm(both, answer(400, { error: { param: "encoding_format" } }))).toEqual({ dimensions: true, base64: false });
  expect(fallbackForm({ dimensions: false, base64: false }, answer(400, "base64 of another dimension"))).toBeUndefined();
  expect(fallbackForm(both, answer(503, "dimensions"))).toBeUndefined();
});

describe("the vectors of an answer", () => {
  const floats = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer).toBase64();
  const read = (data: unknown) => readVectors(JSON.stringify({ data }), 2);

  test("have unit length, stand by their index or else as they come, and are read in both forms", () => {
    const [first, second] = [Float32Array.of(0.6, 0.8), Float32Array.of(0, 1)];
    for (const data of [
      [{ embedding: [3, 4] }, { embedding: [0, 2] }],
      [
        { index: 1, embedding: floats(0, 2) },
        { index: 0, embedding: [3, 4] },
      ],
    ]) {
      expect(read(data)).toEqual([first, second]);
    }
  });

  const wrong: { name: string; body: string; message: string }[] = [
    { name: "too few", body: '{"data":[{}]}', message: "has 1 embeddings for 2 texts" },
    { name: "too many", body: '{"data":[{},{},{}]}', message: "has 3 embeddings for 2 texts" },
    { name: "an index twice", body: '{"data":[{"index":1},{"index":1}]}', message: "has no embedding with the index 0" },
    { name: "an index out of range", body: '{"data":[{"index":1},{"index":2}]}', message: "has no embedding with the index 0" },
    { name: "no list", body: '{"object":"list"}', message: "is not a list of embeddings" },
    { name: "half an answer", body: '{"data":[{"embedding":[1', message: "is not a list of embeddings" },
  ];
  for (const { name, body, message } of wrong) {
    test(`are refused altogether: ${name}`, () => {
      expect(() => readVectors(body, 2)).toThrow(`The embedding provider's answer ${message}`);
    });
  }

  const unusable: { name: string; embedding: unknown; message: string }[] = [
    { name: "NaN", embedding: floats(Number.NaN, 1), message: "holds something that is no finite number" },
    { name: "numbers too great to be squared", embedding: [1e308, 1e308], message: "holds something that is no finite number" },
    { name: "null", embedding: [null, 1], message: "holds something that is no finite number" },
    { name: "zeros", embedding: [0, 0], message: "is all zeros" },
    { name: "half a number", embedding: floats(1, 2).slice(0, 8), message: "is missing, or not base64 of 4-byte numbers" },
    { name: "no base64", embedding: "****", message: "is missing, or not base64 of 4-byte numbers" },
    { name: "nothing", embedding: null, message: "is missing, or not base64 of 4-byte numbers" },
  ];
  for (const { name, embedding, message } of unusable) {
    test(`fail one by one: ${name}`, () => {
      const [tea, bad] = read([{ embedding: [0, 1] }, { embedding }]);
      expect(tea).toEqual(Float32Array.of(0, 1));
      expect(bad).toMatchObject({
        message: `The embedding provider's answer cannot be used: an embedding ${message}`,
        facts: { inputRejected: true },
      });
    });
  }
});

const LENGTH = 64 * 1024;
const repeated = (unit: string) => unit.repeat(Math.ceil(LENGTH / unit.length)).slice(0, LENGTH);

test("whatever a provider complains, making an error of it takes about as long as of plain words", () => {
  const complain = (text: string) => {
    const body = answer(400, { error: { message: text, code: text, param: text } });
    fallbackForm({ dimensions: true, base64: true }, body);
    refusal(body, { apiKey: KEY, isProbe: true });
  };
  const plain = repeated("The model does not take this. ");
  const units = ["*", "sk-pro", "sk-pro,", "max", "max ", "maxi", "less than 1", "1", " ", "\u0001", "too ", "<", "context "];
  for (const unit of units) {
    const ratio = ratioOf(
      () => complain(repeated(unit)),
      () => complain(plain),
      // A control character is six of JSON.
      { bound: 12, floorMs: 1 },
    );
    expect({ unit, isSlow: ratio >= 12 }).toEqual({ unit, isSlow: false });
  }
});

test("an address of many slashes is taken about as quickly as another", () => {
  const clock = new FakeClock();
  const make = (path: string) => {
    const base_url = `https://models.example.org/${path}`;
    new OpenAiEmbedder({ base_url }, undefined, { clock, random: () => 1, resolve: () => Promise.resolve([]) }).close();
  };
  const ratio = ratioOf(
    () => make(`${"/".repeat(LENGTH)}v1`),
    () => make(`${"a".repeat(LENGTH)}/v1`),
    { bound: 5, floorMs: 1 },
  );
  expect(ratio).toBeLessThan(5);
});
