/**
 * Requests to `/v1/embeddings` and their answers, as servers really speak it. Pure.
 *
 * Two options are not understood everywhere: `dimensions` (only models trained for it can shorten their vectors) and
 * `encoding_format: "base64"` (three times smaller than decimal numbers). A refusal that names one of them says to do
 * without; vectors are read in both forms whatever was asked for, since some servers ignore the wish.
 *
 * @module
 */
import { firstCodePoints } from "../../lib/text.ts";
import { DIMENSION_MAX } from "../embedder.ts";
import { badAnswer, ProviderError, type ProviderErrorKind } from "./provider-error.ts";

/** Options that a request carries. */
export interface RequestForm {
  readonly dimensions: boolean;
  readonly base64: boolean;
}

export function requestBody(model: string, texts: readonly string[], form: RequestForm, dimensions = DIMENSION_MAX): string {
  return JSON.stringify({
    model,
    input: texts,
    ...(form.dimensions ? { dimensions } : {}),
    ...(form.base64 ? { encoding_format: "base64" } : {}),
  });
}

/** An answer with a status other than 2xx. */
export interface ErrorAnswer {
  readonly status: number;
  readonly body: string;
  readonly retryAfterMs: number | undefined;
  /** True if it came from a public address. */
  readonly isPublic: boolean;
}

/** The form to try instead of one that was refused, if it was refused for its form. */
export function fallbackForm(form: RequestForm, { status, body }: ErrorAnswer): RequestForm | undefined {
  if (![400, 413, 422, 501].includes(status)) return undefined;
  if (form.base64 && /encoding[_ ]?format|base64/i.test(body)) return { ...form, base64: false };
  if (form.dimensions && /dimension|matryoshka/i.test(body)) return { ...form, dimensions: false };
  return undefined;
}

/** Repeats are bounded: what a server says can be long, and be made to be tried from each of its characters. */
const TOO_LONG =
  /too (long|large|big|many tokens)|context (length|size|window)|max\w{0,20} (context|input|sequence|tokens|length)|exceed|less than \d{1,9} tokens|token limit/i;

/**
 * The error that an answer other than 2xx is. What a server says may quote what it was sent, so its words are shown only if
 * that was the probe text; otherwise its code has to do. Of a server that is not public they are shown only in the form in which
 * embedding servers write them: a base URL can lead to any service of the network.
 */
export function refusal(
  { status, body, retryAfterMs, isPublic }: ErrorAnswer,
  { apiKey, isProbe }: { apiKey: string | undefined; isProbe: boolean },
): ProviderError {
  const { message, code, isPlain } = parseErrorBody(body);
  const words = isProbe && (isPublic || !isPlain) ? shortened(withoutKey(message, apiKey)) : "";
  const said = words !== "" ? `: ${words}` : code !== "" ? ` (${withoutKey(code, apiKey)})` : "";
  const inputRejected = [400, 413, 422, 500].includes(status);
  const isTooLong = inputRejected && TOO_LONG.test(message);
  // A quota that is used up does not refill in a moment.
  const isBusy = status === 408 || (status === 429 && !body.includes("insufficient_quota"));
  return new ProviderError(kindOf(status), `The embedding provider answered ${status}${said}`, {
    status,
    retryAfterMs,
    isTransient: isBusy || (status >= 500 && status !== 501 && !isTooLong),
    inputRejected,
    isTooLong,
  });
}

function kindOf(status: number): ProviderErrorKind {
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 429) return "rate_limited";
  if (status === 408 || status === 504) return "timeout";
  if (status >= 500) return "unreachable";
  return status < 400 ? "bad_answer" : "rejected";
}

const CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,47}$/;

/**
 * Message of the server, and the name that it gives to the problem: `{error: {message, code, type}}` (OpenAI, Ollama,
 * llama.cpp), `{message}` (vLLM), `{error}` (Text Embeddings Inference), `{detail}` (FastAPI) or plain text, but not HTML.
 */
function parseErrorBody(body: string): { message: string; code: string; isPlain: boolean } {
  const json = parse(body);
  if (!isObject(json)) return { message: body.trimStart().startsWith("<") ? "" : body, code: "", isPlain: true };
  const error = isObject(json["error"]) ? json["error"] : json;
  const message = error["message"] ?? json["error"] ?? json["detail"] ?? "";
  return {
    message: typeof message === "string" ? message : JSON.stringify(message),
    code: [error["code"], error["type"]].find((name): name is string => typeof name === "string" && CODE.test(name)) ?? "",
    isPlain: false,
  };
}

const MESSAGE_LENGTH_MAX = 200;

/** One line: control characters and runs of space would make a mess of a log. */
function shortened(text: string): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, " ").trim();
  const first = firstCodePoints(line, MESSAGE_LENGTH_MAX);
  return first === line ? line : `${first}…`;
}

/**
 * Takes the API key out of a text. Servers like to repeat it, whole or with its middle starred out, so a word that begins as a
 * key does is taken for it; keys such as "ollama" are too short for that.
 */
function withoutKey(text: string, apiKey: string | undefined): string {
  if (apiKey === undefined) return text;
  const whole = text.replaceAll(apiKey, "[key]");
  return apiKey.length < 16 ? whole : whole.replace(new RegExp(`${RegExp.escape(apiKey.slice(0, 6))}[^\\s"'<>,;)]*`, "g"), "[key]");
}

/**
 * The vectors of an answer, in the order of the texts, by their `index` where the server gives one: at unit length, or what
 * is wrong with one.
 *
 * @throws {ProviderError} `bad_answer` when they cannot be told apart: not JSON, another count, an index missing or twice
 */
export function readVectors(body: string, count: number): (Float32Array | ProviderError)[] {
  const json = parse(body);
  const data = isObject(json) ? json["data"] : undefined;
  // An answer that is cut off is not JSON either, and comes whole the next time.
  if (!Array.isArray(data)) throw badAnswer("is not a list of embeddings", { isTransient: json === undefined });
  if (data.length !== count) throw badAnswer(`has ${data.length} embeddings for ${count} ${count === 1 ? "text" : "texts"}`);
  const vectors = new Map<unknown, Float32Array | ProviderError>();
  data.forEach((item: unknown, place) => {
    const { index = place, embedding } = isObject(item) ? item : {};
    vectors.set(index, readVector(embedding));
  });
  return data.map((_, place) => {
    const vector = vectors.get(place);
    if (vector === undefined) throw badAnswer(`has no embedding with the index ${place}`);
    return vector;
  });
}

function readVector(embedding: unknown): Float32Array | ProviderError {
  const numbers: unknown = typeof embedding === "string" ? numbersFrom(embedding) : embedding;
  if (!Array.isArray(numbers) || numbers.length === 0) return unusable("is missing, or not base64 of 4-byte numbers");
  const square = numbers.reduce<number>((sum, value) => sum + (typeof value === "number" ? value * value : NaN), 0);
  if (!Number.isFinite(square)) return unusable("holds something that is no finite number");
  if (square === 0) return unusable("is all zeros");
  const scale = 1 / Math.sqrt(square);
  return Float32Array.from(numbers, (value: number) => value * scale);
}

function numbersFrom(base64: string): number[] | undefined {
  try {
    return Array.from(new Float32Array(Uint8Array.fromBase64(base64).buffer));
  } catch {
    return undefined;
  }
}

function unusable(what: string): ProviderError {
  return badAnswer(`cannot be used: an embedding ${what}`, { inputRejected: true });
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
