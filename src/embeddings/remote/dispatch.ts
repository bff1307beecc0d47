/**
 * Gets texts embedded by a server that may be slow, busy, choosy or gone.
 *
 * ```
 * embed ─► two lanes ─► one request of many texts ─┬─ answered ──────────────► vectors
 *                            ▲                     ├─ busy ── pause, again
 *                            └─ halves ◄───────────┼─ refused, and a plain text is not: it is the texts
 *                                                  └─ anything else ─────────► down, until a probe succeeds
 * ```
 *
 * Every call ends before its deadline. While the server is down calls fail at once with the reason; nothing here decides
 * when to probe. What it learns of the server changes the size of later requests, and where a text is cut that is too long
 * for the model. Knows nothing of HTTP.
 *
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import { estimateTokens, firstTokens, halves } from "./batching.ts";
import { type Lane, Lanes } from "./lanes.ts";
import { closed, ProviderError, tooLate } from "./provider-error.ts";
import { timeLimit } from "../../lib/time-limit.ts";

/** OpenAI takes 300,000 tokens in a request; half of that leaves room for a wrong estimate. */
const REQUEST_TOKENS_MAX = 150_000;
const REQUEST_TEXTS_MAX = 96;

/** Every model reads as much, so a shorter text is not refused for its length, whatever the server says. */
const TEXT_TOKENS_MIN = 64;

/** How long a caller waits at most: a caller that stores a memory waits too, so it is no longer. And how long for one request. */
const DEADLINE_MS: Readonly<Record<Lane, number>> = { query: 10_000, memory: 30_000 };
const ATTEMPT_MS = 20_000;
/** A local server may have to load the model first, and some start over when nobody waits for it. */
const PROBE_MS = 60_000;

/** Waits 0.5 s, 1 s, 2 s, 4 s, each shortened by up to a half by chance: five attempts in at most 7.5 s. */
const ATTEMPTS_MAX = 5;
const BACKOFF_MS = 500;
/** A 500 is rarely about load; then it is better to find out soon which text it is about. */
const ATTEMPTS_MAX_OF_500 = 3;

/** When to look again whether a server that is down is back: after 5 s, 10 s, 20 s … 5 min. */
const PROBE_AFTER_MS = 5_000;
const PROBE_AFTER_MS_MAX = 300_000;
/** Nobody's text but ours: what a server says of it can be shown. */
export const PLAIN_TEXT = "The quick brown fox jumps over the lazy dog.";

/** A request that was in time with as many texts as were allowed lets the next one have this many more. */
const TEXTS_MORE = 4;

/**
 * One request.
 *
 * @returns for each text its vector or why it has none; at least one vector
 * @throws {ProviderError}
 */
export type Ask = (texts: readonly string[], limitMs: number, signal: AbortSignal) => Promise<(Float32Array | ProviderError)[]>;

export interface DispatcherParts {
  readonly ask: Ask;
  readonly clock: Clock;
  readonly random: () => number;
}

/** A text on its way, and its caller. */
interface Call {
  text: string;
  tokens: number;
  /** By `clock.elapsed()`. */
  readonly deadline: number;
  isSettled: boolean;
  isEmbedded: boolean;
  settle(outcome: Float32Array | Error): void;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #lanes: Lanes<Call>;
  readonly #closing = new AbortController();
  /** Texts in a request: what the server is known to take at most, and what it has kept up with lately. */
  #textsMax = REQUEST_TEXTS_MAX;
  #textsNow = REQUEST_TEXTS_MAX;
  /** The shortest text that was refused for its length. */
  #tokensRefused = Infinity;
  #failure: { readonly error: ProviderError; readonly retryAtMs: number } | undefined;
  #failuresInARow = 0;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#lanes = new Lanes({
      clock: parts.clock,
      limits: () => ({ textsMax: this.#textsNow, tokensMax: REQUEST_TOKENS_MAX }),
      serve: (calls) => this.#serve(calls),
    });
  }

  /** Why the server counts as down, and the Unix milliseconds before which a probe makes no sense; undefined while it is up. */
  get failure(): { readonly error: ProviderError; readonly retryAtMs: number } | undefined {
    return this.#failure;
  }

  /** @throws {ProviderError} at once while the server is down, and at the lane's deadline at the latest */
  async embed(text: string, lane: Lane): Promise<Float32Array> {
    if (this.#closing.signal.aborted) throw closed();
    if (this.#failure !== undefined) throw this.#failure.error;
    const { clock } = this.#parts;
    const { promise, resolve, reject } = Promise.withResolvers<Float32Array>();
    const call: Call = {
      text,
      tokens: estimateTokens(text),
      deadline: clock.elapsed() + DEADLINE_MS[lane],
      isSettled: false,
      isEmbedded: false,
      settle(outcome) {
        if (call.isSettled) return;
        call.isSettled = true;
        call.isEmbedded = outcome instanceof Float32Array;
        cancel();
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      },
    };
    const cancel = clock.timer(DEADLINE_MS[lane], () => call.settle(tooLate(DEADLINE_MS[lane])));
    if (!this.#lanes.add(lane, call))
      call.settle(new ProviderError("rate_limited", "Too many texts are waiting for the embedding provider."));
    return promise;
  }

  /** Asks once for a plain text, down or not; the server is then one or the other. */
  async probe(): Promise<void> {
    try {
      await this.#embedPlainText(PROBE_MS);
    } catch (error) {
      if (error instanceof ProviderError) this.#goDown(error);
      throw error;
    }
    this.#failure = undefined;
  }

  close(): void {
    this.#closing.abort();
    for (const call of this.#lanes.clear()) call.settle(closed());
  }

  /** Settles every call; the server counts as down if it could not. */
  async #serve(calls: Call[]): Promise<void> {
    const deadline = Math.max(...calls.map((call) => call.deadline));
    const limit = timeLimit(this.#parts.clock, deadline - this.#parts.clock.elapsed(), this.#closing.signal);
    try {
      await this.#embedCalls(calls, limit.signal, false);
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error));
      if (reason instanceof ProviderError && !this.#closing.signal.aborted && this.#failure === undefined) this.#goDown(reason);
      for (const call of calls) call.settle(reason);
    } finally {
      limit.end();
    }
  }

  /**
   * Embeds in one request, or where texts were refused, in halves.
   *
   * @param isServerWell - has embedded a plain text since the trouble began, so what is refused now is refused for itself
   * @returns true if one request was enough
   * @throws {ProviderError} when the server is to blame; calls are then left unsettled
   */
  async #embedCalls(calls: Call[], signal: AbortSignal, isServerWell: boolean): Promise<boolean> {
    for (const call of calls) if (call.tokens >= this.#tokensRefused) cut(call, this.#tokensRefused / 2);
    let trouble: ProviderError;
    try {
      await this.#embedWithRetries(calls, signal, isServerWell);
      return true;
    } catch (error) {
      if (!(error instanceof ProviderError) || error.facts.mayBeTheTexts !== true) throw error;
      trouble = error;
    }
    // Where that fails too, it is the server, and what it says then quotes nobody.
    if (!isServerWell) await this.#embedPlainText(DEADLINE_MS.query);
    const open = calls.filter(({ isSettled }) => !isSettled);
    if (open.length > 1) {
      const [first, second] = halves(open);
      const isFirstTaken = await this.#embedCalls(first, signal, true);
      const isSecondTaken = await this.#embedCalls(second, signal, true);
      // Nothing was wrong with any of them, so they were too many; a 500 may also just have passed.
      if (isFirstTaken && isSecondTaken) {
        this.#textsNow = Math.min(this.#textsNow, first.length);
        if (trouble.facts.status !== 500) this.#textsMax = this.#textsNow;
      }
      return false;
    }
    const [call] = open;
    if (call !== undefined) await this.#embedRefused(call, trouble, signal);
    return false;
  }

  /** A text that was refused for itself: half of it, if it is said to be too long, or nothing. */
  async #embedRefused(call: Call, trouble: ProviderError, signal: AbortSignal): Promise<void> {
    const { tokens } = call;
    if (trouble.facts.isAboutLength !== true || tokens < 2 * TEXT_TOKENS_MIN) return call.settle(trouble);
    cut(call, tokens / 2);
    await this.#embedCalls([call], signal, true);
    // Texts of this length need not be tried again.
    if (call.isEmbedded) this.#tokensRefused = Math.min(this.#tokensRefused, tokens);
  }

  async #embedWithRetries(calls: Call[], signal: AbortSignal, isServerWell: boolean): Promise<void> {
    const { clock, random } = this.#parts;
    for (let attempt = 1; ; attempt++) {
      const open = calls.filter(({ isSettled }) => !isSettled);
      if (open.length === 0) return;
      const deadline = Math.max(...open.map((call) => call.deadline));
      try {
        const texts = open.map(({ text }) => text);
        const outcomes = await this.#ask(texts, ATTEMPT_MS, signal);
        open.forEach((call, i) => call.settle(outcomes[i]!));
        this.#failuresInARow = 0;
        if (open.length >= this.#textsNow) this.#textsNow = Math.min(this.#textsMax, this.#textsNow + TEXTS_MORE);
        return;
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error;
        // A slow machine may manage half of it in time.
        if (error.kind === "timeout") this.#textsNow = Math.min(this.#textsNow, Math.ceil(open.length / 2));
        const { isTransient, status, retryAfterMs = 0 } = error.facts;
        const attemptsMax = status !== 500 ? ATTEMPTS_MAX : isServerWell ? 1 : ATTEMPTS_MAX_OF_500;
        const pauseMs = Math.max(retryAfterMs, BACKOFF_MS * 2 ** (attempt - 1) * (0.5 + random() / 2));
        if (isTransient !== true || attempt >= attemptsMax || clock.elapsed() + pauseMs >= deadline) throw error;
        await clock.sleep(pauseMs, this.#closing.signal);
      }
    }
  }

  async #embedPlainText(limitMs: number): Promise<void> {
    const [outcome] = await this.#ask([PLAIN_TEXT], limitMs, this.#closing.signal);
    if (outcome instanceof ProviderError) throw outcome;
  }

  async #ask(texts: string[], limitMs: number, signal: AbortSignal): Promise<(Float32Array | ProviderError)[]> {
    try {
      return await this.#parts.ask(texts, limitMs, signal);
    } catch (error) {
      throw this.#closing.signal.aborted ? closed() : error;
    }
  }

  #goDown(error: ProviderError): void {
    const { clock } = this.#parts;
    const afterMs = Math.min(PROBE_AFTER_MS_MAX, PROBE_AFTER_MS * 2 ** Math.min(this.#failuresInARow, 16));
    this.#failuresInARow++;
    this.#failure = { error, retryAtMs: clock.elapsed() + Math.max(afterMs, error.facts.retryAfterMs ?? 0) };
    for (const call of this.#lanes.clear()) call.settle(error);
  }
}

function cut(call: Call, tokensMax: number): void {
  call.text = firstTokens(call.text, tokensMax);
  call.tokens = estimateTokens(call.text);
}
