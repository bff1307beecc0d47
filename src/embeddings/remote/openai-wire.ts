/**
 * What goes over the wire to `/v1/embeddings` and back, as servers really speak it. Pure.
 *
 * Two options are not understood everywhere: `dimensions` (only models trained for it can shorten their vectors) and
 * `encoding_format: "base64"` (three times smaller than decimal numbers). A refusal that names one of them says to do
 * without; vectors are read in both forms whatever was asked for, since some servers ignore the wish.
 *
 * @module
 */
import { firstCodePoints } from "../../lib/text.ts";
import { DIMENSION } from "../embedder.ts";
import { ProviderError, type ProviderErrorFacts, type ProviderErrorKind } from "./provider-error.ts";

/** Which options a request carries. */
export interface RequestForm {
  readonly dimensions: boolean;
  readonly base64: boolean;
}

export function requestBody(model: string, texts: readonly string[], form: RequestForm): string {
  return JSON.stringify({
    model,
    input: texts,
    ...(form.dimensions ? { dimensions: DIMENSION } : {}),
    ...(form.base64 ? { encoding_format: "base64" } : {}),
  });
}

/** What the server says of a request it refused. */
export interface Complaint {
  /** Its words, or an empty text. */
  readonly message: string;
  /** The name it gives to the problem or to the field, if any. */
  readonly subject: string;
  /** The name of the problem alone, where it is one (`model_not_found`), or an empty text. */
  readonly code: string;
}

/**
 * Reads `{error: {message, param, code}}` (OpenAI, Ollama, llama.cpp), `{message}` (vLLM), `{error}` (Text Embeddings
 * Inference), `{detail}` (FastAPI: a text, or a list of `{loc, msg}`) and plain text. A page of HTML says nothing.
 */
export function readComplaint(body: string): Complaint {
  const json = parse(body);
  if (!isObject(json)) {
    return { message: typeof json === "string" ? json : body.trimStart().startsWith("<") ? "" : body, subject: "", code: "" };
  }
  const error = isObject(json["error"]) ? json["error"] : json;
  const details = Array.isArray(json["detail"]) ? json["detail"].filter(isObject) : [];
  const messages = [error["message"], json["error"], json["detail"], ...details.map(({ msg }) => msg)];
  const subjects = [
    error["param"],
    error["code"],
    error["type"],
    ...details.flatMap(({ loc }) => (Array.isArray(loc) ? (loc as unknown[]) : [])),
  ];
  const code = [error["code"], error["type"]].filter(isText).find((text) => CODE.test(text));
  return { message: messages.filter(isText).join("; "), subject: subjects.filter(isText).join(" "), code: code ?? "" };
}

const CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,47}$/;

/** Statuses with which servers refuse what a request says. */
const REFUSALS = [400, 413, 422, 501];

/** The form to try instead of one that was refused, if it was refused for its form. */
export function formInstead(form: RequestForm, status: number, { message, subject }: Complaint): RequestForm | undefined {
  if (!REFUSALS.includes(status)) return undefined;
  const text = `${subject} ${message}`;
  if (form.base64 && /encoding[_ ]?format|base64/i.test(text)) return { ...form, base64: false };
  if (form.dimensions && /dimension|matryoshka/i.test(text)) return { ...form, dimensions: false };
  return undefined;
}

/** Repeats are bounded: what a server says can be long, and be made to be tried from each of its characters. */
const ABOUT_LENGTH =
  /too (long|large|big|many tokens)|context (length|size|window)|max\w{0,20} (context|input|sequence|tokens|length)|exceed|less than \d{1,9} tokens|token limit/i;

/**
 * The error that a status other than 2xx is. What a server says may quote what it was sent, so its words are kept only where
 * that was our own; else its code has to do.
 */
export function refusal(
  status: number,
  complaint: Complaint,
  { retryAfterMs, redact, isOurs }: { retryAfterMs: number | undefined; redact: (text: string) => string; isOurs: boolean },
): ProviderError {
  const words = isOurs ? shortened(redact(complaint.message)) : "";
  const code = redact(complaint.code);
  const message = `The embedding provider answered ${status}${words !== "" ? `: ${words}` : code !== "" ? ` (${code})` : ""}`;
  const isAboutLength = [400, 413, 422, 500].includes(status) && ABOUT_LENGTH.test(complaint.message);
  const facts: ProviderErrorFacts = {
    status,
    retryAfterMs,
    // A quota that is used up is no crowd that passes.
    isTransient:
      (status === 429 && !/insufficient_quota/.test(complaint.subject)) ||
      status === 408 ||
      (status >= 500 && status !== 501 && !isAboutLength),
    mayBeTheTexts: [400, 413, 422, 500].includes(status),
    isAboutLength,
  };
  return new ProviderError(kindOf(status), message, facts);
}

function kindOf(status: number): ProviderErrorKind {
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 429) return "rate_limited";
  if (status === 408 || status === 504) return "timeout";
  if (status >= 500) return "unreachable";
  return status < 400 ? "bad_answer" : "rejected";
}

const MESSAGE_LENGTH_MAX = 200;

function shortened(text: string): string {
  // Control characters and runs of space would make a mess of a log.
  const line = text.replace(/[\s\p{Cc}]+/gu, " ").trim();
  const first = firstCodePoints(line, MESSAGE_LENGTH_MAX);
  return first === line ? line : `${first}…`;
}

/**
 * Takes the API key out of a text. Servers like to repeat it, whole or with its middle starred out.
 */
export function redactor(apiKey: string | undefined): (text: string) => string {
  if (apiKey === undefined) return (text) => text;
  const withoutKey = (text: string) => text.replaceAll(encodeURIComponent(apiKey), "[key]").replaceAll(apiKey, "[key]");
  // A word that begins as the key does is taken for it; keys such as "ollama" are too short for that.
  if (apiKey.length < 16) return withoutKey;
  const begun = new RegExp(`${apiKey.slice(0, 6).replace(/[^A-Za-z0-9]/g, "\\$&")}[^\\s"'<>,;)]*`, "g");
  const end = `*${apiKey.slice(-4)}`;
  // Word by word, as a pattern for any number of characters before the end would be tried from each of them.
  const withoutStarred = (word: string) => {
    const at = word.lastIndexOf(end);
    return at === -1 ? word : `[key]${word.slice(at + end.length)}`;
  };
  return (text) => withoutKey(text).replace(WORD, withoutStarred).replace(begun, "[key]");
}

const WORD = /[^\s"'<>]+/g;

/** A vector as the server sent it, of its own length, or what is wrong with it. */
export type Received = Float64Array | Float32Array | ProviderError;

/**
 * The vectors of an answer, in the order of the texts, by their `index` where the server gives one.
 *
 * @throws {ProviderError} `bad_answer` when they cannot be told apart: not JSON, another count, an index missing or twice
 */
export function readVectors(body: string, count: number): Received[] {
  const json = parse(body);
  const data = isObject(json) ? json["data"] : undefined;
  // An answer that is cut off is not JSON either, and comes whole the next time.
  if (!Array.isArray(data)) throw badAnswer("is not a list of embeddings", { isTransient: json === undefined });
  if (data.length !== count) throw badAnswer(`has ${data.length} embeddings for ${count} ${count === 1 ? "text" : "texts"}`);
  const items = data.map((item: unknown) => (isObject(item) ? item : {}));
  const isNumbered = items.some(({ index }) => index !== undefined);
  const received = Array.from<Received | undefined>({ length: count });
  items.forEach((item, place) => {
    const index = isNumbered ? item["index"] : place;
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= count || received[index as number] !== undefined) {
      throw badAnswer(`numbers its ${count} embeddings wrongly (index ${typeof index === "number" ? index : "missing"})`);
    }
    received[index as number] = vectorFrom(item["embedding"]);
  });
  return received as Received[];
}

function vectorFrom(embedding: unknown): Received {
  if (typeof embedding === "string") {
    const bytes = bytesFrom(embedding);
    if (bytes === undefined || bytes.length === 0 || bytes.length % 4 !== 0) return unusable("is not base64 of 4-byte numbers");
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
  }
  if (!Array.isArray(embedding) || embedding.length === 0) return unusable("is missing");
  if (!embedding.every((value) => typeof value === "number")) return unusable("holds something that is no number");
  return Float64Array.from(embedding);
}

function bytesFrom(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.fromBase64(text);
  } catch {
    return undefined;
  }
}

/** The vector with unit length and zeros up to `DIMENSION`, which changes no cosine. */
export function unitVector(received: Float64Array | Float32Array): Float32Array | ProviderError {
  let square = 0;
  for (const value of received) square += value * value;
  if (square === 0) return unusable("is all zeros");
  if (!Number.isFinite(square)) return unusable("holds a number that is not finite");
  const scale = 1 / Math.sqrt(square);
  const vector = new Float32Array(DIMENSION);
  for (let i = 0; i < received.length; i++) vector[i] = received[i]! * scale;
  return vector;
}

function unusable(what: string): ProviderError {
  return badAnswer(`cannot be used: an embedding ${what}`, { mayBeTheTexts: true });
}

export function badAnswer(what: string, facts: ProviderErrorFacts = {}): ProviderError {
  return new ProviderError("bad_answer", `The embedding provider's answer ${what}`, facts);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
