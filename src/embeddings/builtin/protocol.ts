/**
 * The messages between the request thread and the encoder's thread.
 *
 * @module
 */
export type ToEncoder =
  | { kind: "encode"; call: number; text: string; owner: string; isQuery: boolean }
  /** Nobody waits for it any more. */
  | { kind: "cancel"; call: number }
  | { kind: "close" };

export type FromEncoder =
  | { kind: "ready" }
  /** undefined for a text of which the encoder knows no character. */
  | { kind: "vector"; call: number; vector: Float32Array | undefined }
  /** This text cannot be encoded; others can. */
  | { kind: "failed"; call: number; reason: string }
  /** Ends the thread. */
  | { kind: "fatal"; reason: string }
  | { kind: "closed" };
