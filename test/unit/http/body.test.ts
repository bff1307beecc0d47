import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { Arrivals } from "../../../src/http/arrivals.ts";
import { readBody as readBodyOf, refuseDeclaredBody } from "../../../src/http/body.ts";
import { ApiError } from "../../../src/lib/errors.ts";
import { LIMITS } from "../../../src/lib/limits.ts";
import { nested } from "../../support/answers.ts";
import { FakeClock } from "../../support/clock.ts";

const MAX = 1_000_000;

/** As the first of its kind, so that nothing but the body itself can be the reason for a refusal. */
function readBody(request: Request, maxBytes: number) {
  return readBodyOf(request, maxBytes, new Arrivals(new FakeClock()).begin("key"));
}
const bytesOf = (text: string) => new TextEncoder().encode(text);

/** A request whose body comes in these pieces, without saying how long it is. */
function chunked(...chunks: Uint8Array[]): Request {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  return new Request("http://localhost/", { method: "POST", body, headers: { "content-type": "application/json" } });
}

function declared(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): Request {
  const length = String(Buffer.byteLength(body));
  return new Request("http://localhost/", {
    method: "POST",
    body,
    headers: { "content-type": "application/json", "content-length": length, ...headers },
  });
}

async function refusalOf(work: Promise<unknown>): Promise<{ code: string; param: string | undefined; message: string }> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ApiError)) throw new Error("was not refused", { cause: error });
  return { code: error.code, param: error.detail.param, message: error.message };
}

test("a body is the same however it is cut into chunks", async () => {
  const property = fc.asyncProperty(
    fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()),
    fc.array(fc.nat()),
    async (value, cuts) => {
      const text = JSON.stringify(value);
      const bytes = bytesOf(text);
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
      const chunks = places.slice(1).map((place, i) => bytes.slice(places[i], place));
      const expected = { text, value: JSON.parse(text) as Record<string, unknown> };
      for (const request of [chunked(...chunks), declared(text)]) {
        const read = await readBody(request, MAX);
        expect({ text: new TextDecoder().decode(read.bytes), value: read.value }).toEqual(expected);
      }
    },
  );
  await fc.assert(property);
});

test("no bytes at all are an empty object, whatever they are said to be", async () => {
  for (const type of ["application/json", "text/plain", ""]) {
    expect((await readBody(declared("", { "content-type": type }), MAX)).value).toEqual({});
  }
  expect((await readBody(new Request("http://localhost/", { method: "POST" }), MAX)).value).toEqual({});
  expect((await readBody(chunked(), MAX)).value).toEqual({});
});

test("a body of exactly the limit is read, one byte more is not, and of a longer one no more than the limit is taken", async () => {
  const body = bytesOf(JSON.stringify({ text: "x".repeat(100) }));
  expect((await readBody(chunked(body), body.length)).value).toEqual({ text: "x".repeat(100) });
  expect(await refusalOf(readBody(chunked(body), body.length - 1))).toMatchObject({ code: "payload_too_large" });

  let pulled = 0;
  const endless = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        pulled += 1;
        controller.enqueue(new Uint8Array(1_000));
      },
    },
    { highWaterMark: 0 },
  );
  const request = new Request("http://localhost/", { method: "POST", body: endless });
  expect(await refusalOf(readBody(request, 10_000))).toMatchObject({ code: "payload_too_large" });
  expect(pulled).toBeLessThanOrEqual(12);
});

test("a body without a declared length takes its share of the memory for bodies as it comes, and gives it back", async () => {
  const arrivals = new Arrivals(new FakeClock());
  const read = async (owner: string) => {
    const arrival = arrivals.begin(owner);
    try {
      return (await readBodyOf(chunked(bytesOf('{"a":"'), bytesOf("x".repeat(100_000)), bytesOf('"}')), MAX, arrival)).bytes.length;
    } finally {
      arrival.end();
    }
  };
  const other = arrivals.begin("key");
  other.reserve(LIMITS.arrivingBytesMax / 2 - 100_000);
  expect(await refusalOf(read("key"))).toMatchObject({ code: "service_unavailable" });
  expect(await read("another key")).toBe(100_008);
  other.end();
  for (let i = 0; i < 1_000; i++) expect(await read("key")).toBe(100_008);
});

test("a body may take all the memory for bodies when there is no other", async () => {
  const arrival = new Arrivals(new FakeClock()).begin("key");
  arrival.reserve(LIMITS.arrivingBytesMax / 2 + 1);
  arrival.reserve(LIMITS.arrivingBytesMax);
  arrival.end();
});

test("a body that declares more than the limit is refused by its headers alone", () => {
  const headers = (length: string) => new Headers({ "content-length": length });
  expect(() => refuseDeclaredBody(headers("1000001"), MAX)).toThrow("The body must be at most 1000000 bytes.");
  expect(() => refuseDeclaredBody(headers("99999999999999999999"), MAX)).toThrow("The body must be at most 1000000 bytes.");
  refuseDeclaredBody(headers("1000000"), MAX);
  refuseDeclaredBody(new Headers(), MAX);
});

test("a connection that ends before the body does is the client's doing, not a fault", async () => {
  const broken = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytesOf('{"a'));
      controller.error(new DOMException("The connection was closed.", "AbortError"));
    },
  });
  const request = new Request("http://localhost/", { method: "POST", body: broken });
  expect(await refusalOf(readBody(request, MAX))).toEqual({
    code: "invalid_request",
    param: undefined,
    message: "The connection ended before the body was complete.",
  });
});

const accepted: { name: string; body: string; value: Record<string, unknown> }[] = [
  { name: "a byte order mark", body: '\ufeff{"a":1}', value: { a: 1 } },
  { name: "white space around", body: ' \r\n\t{"a":1}\n ', value: { a: 1 } },
  { name: "a key twice: the last counts", body: '{"a":1,"a":2}', value: { a: 2 } },
  { name: "the largest number there is", body: '{"a":1.7976931348623157e308}', value: { a: Number.MAX_VALUE } },
  { name: "a number too small to be told from 0", body: '{"a":1e-999}', value: { a: 0 } },
  { name: "hundreds of digits before a point", body: `{"a":${"9".repeat(308)}.0}`, value: { a: 1e308 } },
  { name: "the largest whole number below which all are exact", body: '{"a":-9007199254740991}', value: { a: -9007199254740991 } },
  { name: "a larger one that is exact", body: '{"a":9007199254740994}', value: { a: 9007199254740994 } },
  { name: "a double as programs write it", body: '{"a":54099388594620730}', value: { a: Number("54099388594620730") } },
  { name: "a power of two of 302 digits", body: `{"a":${2n ** 1000n}}`, value: { a: 2 ** 1000 } },
  {
    name: "digits behind a point that are rounded",
    body: '{"a":[0.12345678901234567890,1.10e0]}',
    value: { a: [0.12345678901234568, 1.1] },
  },
  { name: "a long number in a string", body: '{"a":"1234567890123456789"}', value: { a: "1234567890123456789" } },
  { name: "a long number as a key", body: '{"a":{"1234567890123456789":1}}', value: { a: { "1234567890123456789": 1 } } },
  { name: "zero below zero", body: '{"a":-0}', value: { a: -0 } },
  { name: "brackets in a string", body: JSON.stringify({ a: "[".repeat(1_000) }), value: { a: "[".repeat(1_000) } },
  { name: "quotes and backslashes in a string", body: JSON.stringify({ a: '\\"[\\' }), value: { a: '\\"[\\' } },
  { name: "what looks like an infinite number in a string", body: '{"a":"1e999"}', value: { a: "1e999" } },
  { name: "64 levels in a field", body: JSON.stringify({ a: nested(64) }), value: { a: nested(64) } },
];

for (const { name, body, value } of accepted) {
  test(`a body is read: ${name}`, async () => {
    expect((await readBody(declared(body), MAX)).value).toEqual(value);
  });
}

test("a whole number is kept or refused: none comes back as another one", async () => {
  const digits = fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n });
  const property = fc.asyncProperty(fc.array(digits, { minLength: 1 }), fc.nat({ max: 3 }), async (numbers, spaces) => {
    const text = `{"a":{"b":[${numbers.join(`,${" ".repeat(spaces)}`)}]}}`;
    const first = numbers.findIndex((number) => BigInt(Number(number)) !== number && String(Number(number)) !== String(number));
    if (first === -1) expect((await readBody(declared(text), MAX)).value).toEqual({ a: { b: numbers.map(Number) } });
    else expect(await refusalOf(readBody(declared(text), MAX))).toMatchObject({ code: "invalid_request", param: `a.b.${first}` });
  });
  await fc.assert(property);
});

const refused: { name: string; body: string | Uint8Array<ArrayBuffer>; message: string; param?: string }[] = [
  { name: "no JSON", body: "hello", message: 'The body must be JSON: Unexpected identifier "hello".' },
  { name: "half an object", body: '{"a":', message: "The body must be JSON: Unexpected EOF." },
  { name: "two objects", body: "{}{}", message: "The body must be JSON: Unable to parse JSON string." },
  { name: "only white space", body: "  ", message: "The body must be JSON: Unexpected EOF." },
  { name: "a comma at the end", body: '{"a":1,}', message: "The body must be JSON: Property name must be a string literal." },
  { name: "single quotes", body: "{'a':1}", message: "The body must be JSON: Single quotes (') are not allowed in JSON." },
  { name: "a raw line feed in a string", body: '{"a":"\n"}', message: "The body must be JSON: Unterminated string." },
  { name: "NaN", body: '{"a":NaN}', message: 'The body must be JSON: Unexpected identifier "NaN".' },
  { name: "an array", body: "[{}]", message: "The body must be a JSON object; got an array." },
  { name: "null", body: "null", message: "The body must be a JSON object; got null." },
  { name: "a string", body: '"{}"', message: "The body must be a JSON object; got a string." },
  { name: "a number", body: "1", message: "The body must be a JSON object; got a number." },
  { name: "true", body: "true", message: "The body must be a JSON object; got a boolean." },
  { name: "a byte that is no UTF-8", body: new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]), message: "The body must be UTF-8." },
  {
    name: "a surrogate in UTF-8",
    body: new Uint8Array([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]),
    message: "The body must be UTF-8.",
  },
  { name: "UTF-16", body: new Uint8Array([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]), message: "The body must be UTF-8." },
  { name: "1e999", body: '{"a":1e999}', message: "a has a number too large for JSON to keep.", param: "a" },
  {
    name: "-1E+400 deep inside",
    body: '{"a":{"b":[0,-1E+400]}}',
    message: "a.b.1 has a number too large for JSON to keep.",
    param: "a.b.1",
  },
  { name: "1e0000309", body: '{"a":1e0000309}', message: "a has a number too large for JSON to keep.", param: "a" },
  { name: "1e999 without a name", body: '{"":1e999}', message: "The body has a number too large for JSON to keep.", param: "" },
  { name: "309 digits", body: `{"a":${"9".repeat(309)}}`, message: "a has a number too large for JSON to keep.", param: "a" },
  { name: "250 digits and e99", body: `{"a":${"9".repeat(250)}e99}`, message: "a has a number too large for JSON to keep.", param: "a" },
  {
    name: "a whole number that no double is",
    body: '{"state":{"name":"x","order":{"id":1234567890123456789}}}',
    message:
      "state.order.id must be a number that can be kept exactly; 1234567890123456789 would become 1234567890123456800. Send it as text.",
    param: "state.order.id",
  },
  {
    name: "the first whole number that no double is, below zero, behind much else",
    body: '{ "a" : [ { "b\\"]:" : 1 , "c" : "d" } , [ ] , { } , "e:" , [ 2 , -9007199254740993 ] ] }',
    message: "a.4.1 must be a number that can be kept exactly; -9007199254740993 would become -9007199254740992. Send it as text.",
    param: "a.4.1",
  },
  {
    name: "a whole number of 308 digits",
    body: `{"\\u0061":${"9".repeat(308)}}`,
    message: `a must be a number that can be kept exactly; ${"9".repeat(64)} would become 1e+308. Send it as text.`,
    param: "a",
  },
  { name: "65 levels in a field", body: JSON.stringify({ a: nested(65) }), message: "a must nest at most 64 levels; got 65.", param: "a" },
  {
    name: "65 levels after a quote",
    body: JSON.stringify({ a: '"', b: nested(65) }),
    message: "b must nest at most 64 levels; got 65.",
    param: "b",
  },
  {
    name: "65 levels after a backslash",
    body: JSON.stringify({ a: "\\", b: nested(65) }),
    message: "b must nest at most 64 levels; got 65.",
    param: "b",
  },
  {
    name: "65 levels in a field with a long name",
    body: JSON.stringify({ ["😀".repeat(1_000)]: nested(65) }),
    message: `${"😀".repeat(64)}… must nest at most 64 levels; got 65.`,
    param: `${"😀".repeat(64)}…`,
  },
  {
    name: "100,000 nested arrays in a field",
    body: `{"a":1,"b":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
    message: "b must nest at most 64 levels; got 100000.",
    param: "b",
  },
  {
    name: "100,000 nested arrays",
    body: "[".repeat(100_000) + "]".repeat(100_000),
    message: "The body must be a JSON object; got an array.",
  },
  { name: "100,000 arrays that are never closed", body: "[".repeat(100_000), message: "The body must be JSON: Unexpected EOF." },
];

for (const { name, body, message, param } of refused) {
  test(`a body is refused with a message that says why: ${name}`, async () => {
    expect(await refusalOf(readBody(declared(body), MAX))).toEqual({ code: "invalid_request", param, message });
  });
}

test("of a body that is no JSON, an answer repeats no more than a little", async () => {
  const { message } = await refusalOf(readBody(declared("a".repeat(500_000)), MAX));
  expect(message.length).toBeLessThan(200);
});

test("a refused body leaves nothing behind that would spoil the next one", async () => {
  await refusalOf(readBody(declared(new Uint8Array([0x22, 0xe2, 0x82])), MAX));
  expect((await readBody(declared('{"a":"€"}'), MAX)).value).toEqual({ a: "€" });
});

const JSON_TYPES = ["application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8", "application/json ; x=y"];
const REFUSED_HEADERS: Record<string, string[]> = {
  "Content-Type": [
    "",
    "text/plain",
    "text/json",
    "application/jsonp",
    "application/merge-patch+json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain, application/json",
  ],
  "Content-Encoding": ["gzip", "deflate", "br", "zstd", "GZIP", "identity, gzip", "x"],
};

test("a body is JSON as it is, by its headers too", async () => {
  const accepted = [...JSON_TYPES.map((type) => ({ "content-type": type })), { "content-encoding": "Identity" }];
  for (const headers of accepted)
    expect({ headers, ...(await readBody(declared("{}", headers), MAX)) }).toMatchObject({ headers, value: {} });
  for (const [param, values] of Object.entries(REFUSED_HEADERS)) {
    for (const value of values) {
      const refusal = await refusalOf(readBody(declared("{}", { [param.toLowerCase()]: value }), MAX));
      expect({ value, ...refusal }).toMatchObject({ value, code: "invalid_request", param });
    }
  }
});
