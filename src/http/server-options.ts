/**
 * Options of a listener besides its address.
 *
 * Bun has none for a client that ends its sending side while a request is handled: it closes the connection and aborts the
 * request (seen with Bun 1.4.5, where `httpAllowHalfOpen` of `node:http` does nothing for a server with `fetch`). So the
 * the documentation asks clients to keep their side open.
 *
 * @module
 */
export const SERVER_OPTIONS = {
  /**
   * No limit of Bun's, which would answer without a body. `body.ts` has the limit; Bun reads and drops what that leaves
   * unread, without keeping it (seen with Bun 1.4.5).
   */
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  /** Seconds after which Bun closes a silent connection, and one whose request is still incomplete. */
  idleTimeout: 60,
} as const;
