/**
 * Options of a listener besides its address: how long connections may idle, and how large requests may be.
 *
 * What it cannot be told: to answer a client that has ended its sending side behind a request that takes a while. Bun closes
 * such a connection at once, and aborts the request (seen with Bun 1.4.5: its `node:http` has `httpAllowHalfOpen`, which does
 * nothing for a server with `fetch`). So the README asks clients to keep their side open.
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
