import { expect, test } from "bun:test";
import { ResponseBuffer } from "../../../src/http/response-buffer.ts";

const KIB = 1024;
/** Owner a may hold 500 KiB of it, as long as there is nobody else. */
const MAX = 1000 * KIB;

function streamed(body: string | ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  if (typeof body === "string") throw new Error("is not sent in pieces");
  return body;
}

const lengthOf = async (body: ReadableStream<Uint8Array>) => (await new Response(body).text()).length;

test("a small answer is sent as it is, by its bytes, and takes nothing", () => {
  const sending = new ResponseBuffer(MAX);
  for (const text of ["{}", "x".repeat(64 * KIB), "€".repeat(21_845)]) {
    for (let i = 0; i < 100; i++) expect(sending.bodyOf("a", text, false)).toBe(text);
  }
  expect(streamed(sending.bodyOf("a", "€".repeat(21_846), false))).toBeInstanceOf(ReadableStream);
});

test("an answer in pieces is the text", async () => {
  const text = "a€😀\n".repeat(100_000);
  expect(await new Response(new ResponseBuffer(10 * MAX).bodyOf("a", text, false)).text()).toBe(text);
});

test("an answer gives its room back when it is read to its end, and when nobody wants the rest", async () => {
  const sending = new ResponseBuffer(MAX);
  const text = "x".repeat(400 * KIB);
  for (let i = 0; i < 10; i++) {
    const body = streamed(sending.bodyOf("a", text, false));
    expect(() => sending.bodyOf("a", text, false)).toThrow("Too many bytes of answers are not read yet");
    if (i % 2 === 0) expect(await lengthOf(body)).toBe(text.length);
    else {
      const reader = body.getReader();
      await reader.read();
      await reader.cancel();
    }
  }
});

test("however much some hold, one that holds nothing has room for a little", () => {
  const sending = new ResponseBuffer(MAX);
  for (const owner of ["a", "b", "c"]) {
    const hold = () => sending.bodyOf(owner, "x".repeat(66 * KIB), false);
    expect(() => {
      for (;;) hold();
    }).toThrow("Too many bytes");
    expect(() => sending.refuseWithoutRoom(owner)).toThrow("Too many bytes");
  }
  sending.refuseWithoutRoom("e");
  streamed(sending.bodyOf("e", "x".repeat(66 * KIB), false));
});

test("the answer of a change is not refused: without room for it the connection ends", async () => {
  const sending = new ResponseBuffer(MAX);
  streamed(sending.bodyOf("a", "x".repeat(500 * KIB), false));
  const read = lengthOf(streamed(sending.bodyOf("a", "x".repeat(66 * KIB), true)));
  expect(
    await read.then(
      () => "answered",
      () => "ended",
    ),
  ).toBe("ended");
});
