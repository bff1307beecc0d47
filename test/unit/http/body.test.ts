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

const accepted: [name: string, body: string, value: Record<string, unknown>][] = [
  ["a byte order mark", '\ufeff{"a":1}', { a: 1 }],
  ["white space around", ' \r\n\t{"a":1}\n ', { a: 1 }],
  ["a key twice: the last counts", '{"a":1,"a":2}', { a: 2 }],
  ["the largest number there is", '{"a":1.7976931348623157e308}', { a: Number.MAX_VALUE }],
  ["a number too small to be told from 0", '{"a":1e-999}', { a: 0 }],
  ["hundreds of digits before a point", `{"a":${"9".repeat(308)}.0}`, { a: 1e308 }],
  ["the largest whole number below which all are exact", '{"a":-9007199254740991}', { a: -9007199254740991 }],
  ["a larger one that is exact", '{"a":9007199254740994}', { a: 9007199254740994 }],
  ["a double as programs write it", '{"a":54099388594620730}', { a: Number("54099388594620730") }],
  ["nanoseconds, as programs write them", '{"a":1700000000000000000}', { a: 1_700_000_000_000_000_000 }],
  ["a large number with an exponent", '{"a":1e22}', { a: 1e22 }],
  ["digits behind a point that are rounded", '{"a":[0.12345678901234567890,1.10e0]}', { a: [0.12345678901234568, 1.1] }],
  ["a long number in a string", '{"a":"1234567890123456789"}', { a: "1234567890123456789" }],
  ["a long number as a key", '{"a":{"1234567890123456789":1}}', { a: { "1234567890123456789": 1 } }],
  ["zero below zero", '{"a":-0}', { a: -0 }],
  ["brackets in a string", JSON.stringify({ a: "[".repeat(1_000) }), { a: "[".repeat(1_000) }],
  ["quotes and backslashes in a string", JSON.stringify({ a: '\\"[\\' }), { a: '\\"[\\' }],
  ["what looks like an infinite number in a string", '{"a":"1e999"}', { a: "1e999" }],
  ["64 levels in a field", JSON.stringify({ a: nested(64) }), { a: nested(64) }],
];

for (const [name, body, value] of accepted) {
  test(`a body is read: ${name}`, async () => {
    expect((await readBody(declared(body), MAX)).value).toEqual(value);
  });
}

test("a whole number comes back digit for digit or is refused", async () => {
  const digits = fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n });
  const property = fc.asyncProperty(fc.array(digits, { minLength: 1 }), fc.nat({ max: 3 }), async (numbers, spaces) => {
    const text = `{"a":{"b":[${numbers.join(`,${" ".repeat(spaces)}`)}]}}`;
    const first = numbers.findIndex((number) => String(Number(number)) !== String(number));
    if (first === -1) expect(JSON.stringify((await readBody(declared(text), MAX)).value)).toBe(text.replaceAll(" ", ""));
    else expect(await refusalOf(readBody(declared(text), MAX))).toMatchObject({ code: "invalid_request", param: `a.b.${first}` });
  });
  await fc.assert(property);
});

type RefusedBody = [name: string, body: string | Uint8Array<ArrayBuffer>, message: string, param?: string];

const refused: RefusedBody[] = [
  ["no JSON", "hello", 'The body must be JSON: Unexpected identifier "hello".'],
  ["half an object", '{"a":', "The body must be JSON: Unexpected EOF."],
  ["two objects", "{}{}", "The body must be JSON: Unable to parse JSON string."],
  ["only white space", "  ", "The body must be JSON: Unexpected EOF."],
  ["a comma at the end", '{"a":1,}', "The body must be JSON: Property name must be a string literal."],
  ["single quotes", "{'a':1}", "The body must be JSON: Single quotes (') are not allowed in JSON."],
  ["a raw line feed in a string", '{"a":"\n"}', "The body must be JSON: Unterminated string."],
  ["NaN", '{"a":NaN}', 'The body must be JSON: Unexpected identifier "NaN".'],
  ["an array", "[{}]", "The body must be a JSON object; got an array."],
  ["null", "null", "The body must be a JSON object; got null."],
  ["a string", '"{}"', "The body must be a JSON object; got a string."],
  ["a number", "1", "The body must be a JSON object; got a number."],
  ["true", "true", "The body must be a JSON object; got a boolean."],
  ["a byte that is no UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]), "The body must be UTF-8."],
  ["a surrogate in UTF-8", new Uint8Array([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), "The body must be UTF-8."],
  ["UTF-16", new Uint8Array([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]), "The body must be UTF-8."],
  ["1e999", '{"a":1e999}', "a has a number too large for JSON to keep.", "a"],
  ["-1E+400 deep inside", '{"a":{"b":[0,-1E+400]}}', "a.b.1 has a number too large for JSON to keep.", "a.b.1"],
  ["1e0000309", '{"a":1e0000309}', "a has a number too large for JSON to keep.", "a"],
  ["1e999 without a name", '{"":1e999}', "The body has a number too large for JSON to keep.", ""],
  ["309 digits", `{"a":${"9".repeat(309)}}`, "a has a number too large for JSON to keep.", "a"],
  ["250 digits and e99", `{"a":${"9".repeat(250)}e99}`, "a has a number too large for JSON to keep.", "a"],
  [
    "a whole number that no double is",
    '{"state":{"name":"x","order":{"id":1234567890123456789}}}',
    "state.order.id must be a number that can be kept exactly; 1234567890123456789 would become 1234567890123456800. Send it as text.",
    "state.order.id",
  ],
  [
    "the first whole number that no double is, below zero, behind much else",
    '{ "a" : [ { "b\\"]:" : 1 , "c" : "d" } , [ ] , { } , "e:" , [ 2 , -9007199254740993 ] ] }',
    "a.4.1 must be a number that can be kept exactly; -9007199254740993 would become -9007199254740992. Send it as text.",
    "a.4.1",
  ],
  [
    "a whole number of 308 digits",
    `{"\\u0061":${"9".repeat(308)}}`,
    `a must be a number that can be kept exactly; ${"9".repeat(64)} would become 1e+308. Send it as text.`,
    "a",
  ],
  [
    "a power of two that a double is, and that is written with other digits",
    '{"a":[1152921504606846976]}',
    "a.0 must be a number that can be kept exactly; 1152921504606846976 would become 1152921504606847000. Send it as text.",
    "a.0",
  ],
  [
    "a power of ten that is written with an exponent",
    '{"a":10000000000000000000000}',
    "a must be a number that can be kept exactly; 10000000000000000000000 would become 1e+22. Send it as text.",
    "a",
  ],
  ["65 levels in a field", JSON.stringify({ a: nested(65) }), "a must nest at most 64 levels; got 65.", "a"],
  ["65 levels after a quote", JSON.stringify({ a: '"', b: nested(65) }), "b must nest at most 64 levels; got 65.", "b"],
  ["65 levels after a backslash", JSON.stringify({ a: "\\", b: nested(65) }), "b must nest at most 64 levels; got 65.", "b"],
  [
    "65 levels in a field with a long name",
    JSON.stringify({ ["😀".repeat(1_000)]: nested(65) }),
    `${"😀".repeat(64)}… must nest at most 64 levels; got 65.`,
    `${"😀".repeat(64)}…`,
  ],
  [
    "100,000 nested arrays in a field",
    `{"a":1,"b":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
    "b must nest at most 64 levels; got 100000.",
    "b",
  ],
  ["100,000 nested arrays", "[".repeat(100_000) + "]".repeat(100_000), "The body must be a JSON object; got an array."],
  ["100,000 arrays that are never closed", "[".repeat(100_000), "The body must be JSON: Unexpected EOF."],
];

for (const [name, body, message, param] of refused) {
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

const GZIP = { "content-encoding": "gzip" };
const zip = (bytes: string | Uint8Array<ArrayBuffer>) => Uint8Array.from(Bun.gzipSync(bytes));

test("a body in gzip is what comes out of it, however it comes and whatever it is", async () => {
  const property = fc.asyncProperty(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), fc.nat(), async (value, at) => {
    const text = JSON.stringify(value);
    const bytes = zip(text);
    const place = at % bytes.length;
    const inPieces = chunked(bytes.slice(0, place), bytes.slice(place));
    inPieces.headers.set("content-encoding", "GZip");
    for (const request of [declared(bytes, GZIP), inPieces]) {
      const read = await readBody(request, MAX);
      expect([new TextDecoder().decode(read.bytes), read.value]).toEqual([text, JSON.parse(text) as Record<string, unknown>]);
    }
  });
  await fc.assert(property, { numRuns: 50 });
  // Nothing is no body, packed or not.
  expect((await readBody(declared(zip(""), GZIP), MAX)).value).toEqual({});
  expect((await readBody(declared(new Uint8Array(0), GZIP), MAX)).value).toEqual({});
});

test("the limit of a body holds for what comes out of gzip, to the byte, and more than a tenth of a bomb never does", async () => {
  const of = (length: number) => zip(JSON.stringify({ a: "x".repeat(length - '{"a":""}'.length) }));
  expect((await readBody(declared(of(MAX), GZIP), MAX)).bytes.byteLength).toBe(MAX);
  const tooLarge = { code: "payload_too_large", param: undefined };
  expect(await refusalOf(readBody(declared(of(MAX + 1), GZIP), MAX))).toMatchObject(tooLarge);
  const bomb = zip(new Uint8Array(200_000_000));
  expect(bomb.byteLength).toBeLessThan(MAX);
  const before = process.memoryUsage().rss;
  for (let i = 0; i < 5; i++) expect(await refusalOf(readBody(declared(bomb, GZIP), MAX))).toMatchObject(tooLarge);
  expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
  // A bomb in a bomb is no JSON, and is not unpacked twice.
  expect(await refusalOf(readBody(declared(zip(zip("{}")), GZIP), MAX))).toMatchObject({ code: "invalid_request" });
});

test("gzip that is cut off, damaged, followed by something, or none, is refused and never a fault", async () => {
  const whole = zip(JSON.stringify({ a: "x".repeat(500), b: [1, 2, 3] }));
  const wrong = async (bytes: Uint8Array<ArrayBuffer>) => {
    const { code, param } = await refusalOf(readBody(declared(bytes, GZIP), MAX));
    expect([code, param]).toEqual(["invalid_request", "Content-Encoding"]);
  };
  for (let length = 1; length < whole.length; length++) await wrong(whole.slice(0, length));
  await wrong(Uint8Array.from([...whole, ...whole]));
  for (const more of ["x", "\0x", "{}"]) await wrong(Uint8Array.from([...whole, ...bytesOf(more)]));
  // The header, the checksum and the length.
  for (const at of [0, 1, 2, -8, -5, -4, -1]) await wrong(whole.with(at, whole.at(at)! ^ 0x55));
  await wrong(Uint8Array.from(bytesOf('{"a":1}')));
  await wrong(Uint8Array.from(Bun.deflateSync("{}")));
  const random = fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
    await refusalOf(readBody(declared(Uint8Array.from(bytes), GZIP), MAX));
    await refusalOf(readBody(declared(Uint8Array.from([0x1f, 0x8b, 8, ...bytes]), GZIP), MAX));
  });
  await fc.assert(random, { numRuns: 200 });
  for (const encoding of ["gzip, gzip", "gzip,identity", "x-gzip", "gzip;q=1", "br"]) {
    expect(await refusalOf(readBody(declared(whole, { "content-encoding": encoding }), MAX))).toMatchObject({ param: "Content-Encoding" });
  }
});

test("memory is taken for what may come out of gzip before anything does, and given back as soon as it is known", async () => {
  const arrivals = new Arrivals(new FakeClock());
  const [first, second] = [arrivals.begin("a"), arrivals.begin("a")];
  const large = LIMITS.arrivingBytesMax;
  const bytes = zip(JSON.stringify({ a: "x".repeat(100_000) }));
  await readBodyOf(declared(bytes, GZIP), large, first);
  // Half of all is free for one key, less what the first one holds.
  await expect(readBodyOf(declared(zip(new Uint8Array(40_000_000)), GZIP), large, second)).rejects.toMatchObject({
    code: "service_unavailable",
  });
  second.end();
  await readBodyOf(declared(bytes, GZIP), large, arrivals.begin("a"));
  first.end();
});
