import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EncodedKind, encoderKernels, openEncoder, preparedText } from "../../../../src/embeddings/builtin/encoder.ts";
import { findWeights } from "../../../../src/embeddings/builtin/native.ts";
import { checkEncoder } from "../../../../src/embeddings/builtin/self-check.ts";
import { WEIGHTS_FILES } from "../../../../src/embeddings/builtin/weights.ts";
import REFERENCE from "./reference.json";

const encoder = openEncoder();
const KINDS: readonly EncodedKind[] = ["query", "passage"];
/** What all vectors of the reference come to, on every processor and system, by every compiler. */
const SHA256 = "f35af680aaeb4ffbd6c2958d605d171d9c17bc0464a3432062f3dd52bcdef127";

function cosine(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

function referenceVector(base64: string): Float32Array {
  const bytes = Buffer.from(base64, "base64");
  return Float32Array.from(new Float16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2));
}

function bytesOf(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("hex");
}

/** Of all vectors of the reference. */
function hashBy(kernels: string): string {
  const opened = openEncoder({ kernels });
  const hash = createHash("sha256");
  for (const { text, kind } of REFERENCE) hash.update(bytesOf(opened.encode(text, kind as EncodedKind)!));
  return hash.digest("hex");
}

describe("beside the same network in numpy, which shares no code", () => {
  test("every text has the same tokens", () => {
    const cut = REFERENCE.map(({ name, text, kind }) => ({ name, tokens: Array.from(encoder.tokens(text, kind as EncodedKind)) }));
    expect(cut).toEqual(REFERENCE.map(({ name, tokens }) => ({ name, tokens })));
  });

  test("every vector points the same way", () => {
    const far = REFERENCE.map(({ name, text, kind, vector }) => ({
      name,
      cosine: cosine(encoder.encode(text, kind as EncodedKind)!, referenceVector(vector)),
    })).filter((one) => one.cosine < 0.9999);
    expect(far).toEqual([]);
  });
});

describe("a text has one vector, to the last bit", () => {
  for (const kernels of encoderKernels()) {
    test(`by the kernels ${kernels}`, () => {
      expect(openEncoder({ kernels }).kernels).toBe(kernels);
      expect(hashBy(kernels)).toBe(SHA256);
    });
  }

  test("which an executable checks where it runs, too", () => {
    expect(checkEncoder()).toEqual(encoderKernels());
  });

  test("in steps, among other texts", () => {
    const texts = REFERENCE.filter(({ kind }) => kind === "query").map(({ text }) => text);
    const whole = texts.map((text) => bytesOf(encoder.encode(text, "query")!));
    const runs = texts.map((text) => encoder.begin(text, "query")!);
    for (let layer = 1; layer <= 12; layer++) expect(new Set(runs.map((run) => run.step()))).toEqual(new Set([layer === 12]));
    expect(runs.map((run) => bytesOf(run.result()))).toEqual(whole);
    for (const run of runs) run.close();
  });

  test("on another thread", async () => {
    const text = REFERENCE[0]!.text;
    const worker = new Worker(new URL("encoding-worker.ts", import.meta.url).href);
    const answer = Promise.withResolvers<string>();
    worker.addEventListener("message", (event: MessageEvent<Float32Array>) => answer.resolve(bytesOf(event.data)));
    worker.addEventListener("error", (event) => answer.reject(new Error(event.message)));
    worker.postMessage(text);
    const [here, there] = [bytesOf(encoder.encode(text, "query")!), await answer.promise];
    worker.terminate();
    expect(there).toBe(here);
  });
});

describe("a run", () => {
  test("has no result before its last layer, and nothing once it is closed", () => {
    const run = encoder.begin("a text", "query")!;
    run.step();
    expect(() => run.result()).toThrow("This run has layers before it.");
    run.close();
    expect(() => run.step()).toThrow("This run is closed.");
    expect(() => run.result()).toThrow("This run is closed.");
    run.close();
  });

  test("is nothing where there is no vector", () => {
    expect(encoder.begin(" ", "query")).toBeUndefined();
  });
});

describe("what a text is written with", () => {
  test("composed or not, with spaces around it or characters that nobody sees, it has the same vector", () => {
    const written = [
      "Où est le café\u00a0?",
      "  Où est le café\u00a0?\n",
      "Ou\u0300 est le cafe\u0301\u00a0?",
      "O\u00adù est\u2060 le ca\u200bfé\u00a0?\ufeff",
    ];
    for (const kind of KINDS) expect(new Set(written.map((text) => bytesOf(encoder.encode(text, kind)!))).size).toBe(1);
  });

  test("with the marks of a letter in whatever order, it has the same vector", () => {
    const written = ["Người Việt", "Ngu\u031bo\u031b\u0300i Vie\u0323\u0302t", "Ngu\u031bo\u0300\u031bi Vie\u0302\u0323t"];
    for (const kind of KINDS) expect(new Set(written.map((text) => bytesOf(encoder.encode(text, kind)!))).size).toBe(1);
  });

  test("joiners stay where they are part of how a word is written, and go elsewhere", () => {
    expect(preparedText("می\u200cخواهم")).toBe("می\u200cخواهم");
    expect(preparedText("pass\u200cword\u200d")).toBe("password");
  });

  const SAYING_NOTHING: Readonly<Record<string, string>> = {
    "an empty text": "",
    "a blank one": " \t\n\u3000\u00a0",
    "control characters": "\0\u0001\u001f",
    "characters that nobody sees": "\u200b\u00ad\ufeff",
    "unknown characters": "\u{f0000}\u{f0001} \u{f0002}",
    "a surrogate without its other half": "\ud83d",
    "its other half": "\udc36 \udc36",
  };
  for (const [name, text] of Object.entries(SAYING_NOTHING)) {
    test(`${name}: has no vector`, () => {
      expect(KINDS.map((kind) => encoder.encode(text, kind))).toEqual([undefined, undefined]);
    });
  }

  test("a run of unknown characters counts as one, however long", () => {
    const once = encoder.tokens("a \u{f0000} b", "passage");
    expect(encoder.tokens(`a ${"\u{f0000}\u{f0001}".repeat(5_000)} b`, "passage")).toEqual(once);
  });

  test("within a text NUL is nothing, and a surrogate without its other half a space", () => {
    expect(encoder.tokens("one\0two", "query")).toEqual(encoder.tokens("onetwo", "query"));
    expect(encoder.tokens("one\ud800two\udc36", "query")).toEqual(encoder.tokens("one two", "query"));
  });

  test("what is beyond 512 tokens has no part in the vector", () => {
    const long = "x".repeat(10_000);
    expect(encoder.pieces(long).starts.length).toBe(3_334);
    expect(encoder.tokens(long, "passage").length).toBe(512);
    expect(bytesOf(encoder.encode(long, "passage")!)).toBe(bytesOf(encoder.encode(`${long} and something else`, "passage")!));
  });
});

describe("the pieces of a text", () => {
  test("say where they are, and how rare", () => {
    const text = "The café in Zürich, 10 000 ﬁne words";
    const { starts, ends, costs } = encoder.pieces(text);
    const pieces = Array.from(starts, (start, i) => text.slice(start, ends[i]));
    expect(pieces).toEqual(["The", "café", "in", "Zürich", ",", "10", "000", "ﬁne", "words"]);
    expect(costs[3]!).toBeGreaterThan(costs[2]! + 5);
    expect(Math.max(...encoder.pieces("\u{f0000}").costs)).toBeGreaterThan(Math.max(...costs) + 10);
  });

  test("of any text are in its order, and of a long one as well", () => {
    const inOrder = (text: string) => {
      const prepared = preparedText(text);
      const { starts, ends, costs } = encoder.pieces(prepared);
      expect(costs.every((cost) => Number.isFinite(cost) && cost >= 0)).toBe(true);
      expect(starts.every((start, i) => start <= ends[i]! && ends[i]! <= prepared.length && start >= (starts[i - 1] ?? 0))).toBe(true);
    };
    fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 300 }), inOrder), { numRuns: 300 });
    inOrder("a word, then 漢字かな and others. ".repeat(2_000));
  });

  test("and of any text the vector has length 1, or there is none", () => {
    const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 60 }).map((codes) => String.fromCharCode(...codes));
    const check = (text: string, kind: EncodedKind) => {
      const vector = encoder.encode(text, kind);
      if (vector !== undefined) expect(vector.reduce((sum, value) => sum + value * value, 0)).toBeCloseTo(1, 4);
    };
    fc.assert(fc.property(units, fc.constantFrom(...KINDS), check), { numRuns: 100 });
  });
});

describe("weights", () => {
  test("are the files whose hashes are known, none of 50 MB or more", () => {
    const found = findWeights().map(({ path }) => createHash("sha256").update(readFileSync(path)).digest("hex"));
    expect(found).toEqual(WEIGHTS_FILES.map(({ sha256 }) => sha256));
    expect(Math.max(...WEIGHTS_FILES.map(({ bytes }) => bytes))).toBeLessThan(50_000_000);
  });

  test("that are missing, cut short, damaged or something else are refused by the name of the file", () => {
    const directory = mkdtempSync(join(tmpdir(), "cairn-weights-"));
    const [network, ...rows] = findWeights();
    const refusal = (name: string, change: (bytes: Buffer) => void, cutTo = network!.bytes) => {
      const bytes = readFileSync(network!.path);
      const copy = join(directory, name);
      change(bytes);
      writeFileSync(copy, bytes);
      truncateSync(copy, cutTo);
      try {
        openEncoder({ weights: [{ ...network!, path: copy }, ...rows] });
        return "none";
      } catch (error) {
        return (error as Error).message.replaceAll(directory, "");
      }
    };
    try {
      const begin = "The weights of the built-in embedding cannot be used:";
      expect(refusal("whole", () => {})).toBe("none");
      expect(refusal("short", () => {}, 1_000_000)).toBe(`${begin} /short is cut short: it should have 18744920 bytes from byte 0 on.`);
      expect(refusal("damaged", (bytes) => bytes.writeUInt8(bytes.readUInt8(9_000_001) ^ 1, 9_000_001))).toBe(
        `${begin} /damaged is damaged: it has another checksum.`,
      );
      expect(refusal("other", (bytes) => bytes.fill(0, 0, 8))).toBe(`${begin} /other holds something else.`);
      const missing = [network!, { ...rows[0]!, path: join(directory, "tokens-1.bin") }, rows[1]!];
      expect(() => openEncoder({ weights: missing })).toThrow("/tokens-1.bin could not be opened: No such file or directory.");
      expect(() => openEncoder({ weights: [network!, rows[0]!] })).toThrow("is for 250001 rows of tokens, and there are 125001.");
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
