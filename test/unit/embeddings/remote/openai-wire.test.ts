import { expect, test } from "bun:test";
import { formInstead, readComplaint, redactor, refusal } from "../../../../src/embeddings/remote/openai-wire.ts";
import { openAiEmbedder } from "../../../../src/embeddings/remote/openai.ts";
import { FakeClock } from "../../../support/clock.ts";
import { ratioOf } from "../../../support/timing.ts";

const LENGTH = 64 * 1024;
const redact = redactor("sk-proj-0123456789abcdef");
const repeated = (unit: string) => unit.repeat(Math.ceil(LENGTH / unit.length)).slice(0, LENGTH);

/** All that is made of an answer other than 2xx. */
function complain(text: string): void {
  const complaint = readComplaint(JSON.stringify({ error: { message: text, code: text, param: text } }));
  formInstead({ dimensions: true, base64: true }, 400, complaint);
  refusal(400, complaint, { retryAfterMs: undefined, redact, isOurs: true });
}

test("whatever a provider complains, making an error of it takes about as long as of plain words", () => {
  const plain = repeated("The model does not take this. ");
  const units = [
    "*",
    "*c",
    "cdef",
    "*cdef",
    "sk-pro",
    "sk-pro,",
    "max",
    "max ",
    "maxi",
    "less than 1",
    "1",
    " ",
    "\u0001",
    "too ",
    "<",
    "context ",
  ];
  for (const unit of units) {
    const ratio = ratioOf(
      () => complain(repeated(unit)),
      () => complain(plain),
      { bound: 5, floorMs: 1 },
    );
    expect({ unit, isSlow: ratio >= 5 }).toEqual({ unit, isSlow: false });
  }
});

test("an address of many slashes is taken about as quickly as another", () => {
  const clock = new FakeClock();
  const make = (path: string) => {
    const baseUrl = `https://models.example.org/${path}`;
    openAiEmbedder({ baseUrl, clock, random: () => 1, resolve: () => Promise.resolve([]) }).close();
  };
  const ratio = ratioOf(
    () => make(`${"/".repeat(LENGTH)}v1`),
    () => make(`${"a".repeat(LENGTH)}/v1`),
    { bound: 5, floorMs: 1 },
  );
  expect(ratio).toBeLessThan(5);
});
