/**
 * What a listener is told beside its address: how long and how much it is to bear.
 *
 * @module
 */
export const LISTENING = {
  /**
   * None of Bun's own: what is over it gets an answer without a body. `body.ts` has the limit, and what it leaves unread
   * Bun reads and throws away, without keeping it (seen with Bun 1.4.5).
   */
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  /** Seconds after which Bun closes a connection that is silent, and one whose request is still not complete. */
  idleTimeout: 60,
} as const;
