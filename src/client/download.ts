/**
 * Files of the server, piece by piece.
 *
 * @module
 */
import { unexpected } from "./errors.ts";
import type { CallOptions, Http } from "./http.ts";

/** Each piece has as long as an answer usually has. */
const PIECE_MS = 30_000;

/** Gives the pieces of a file until all are read or the loop is left. @throws {CairnError} also where it breaks off */
export async function* download(http: Http, path: string, { signal, timeoutMs = PIECE_MS }: CallOptions): AsyncGenerator<Uint8Array, void> {
  const exchange = http.exchange(signal);
  try {
    exchange.limit(timeoutMs);
    const response = await http.send(exchange, { method: "GET", path });
    if (response.body === null) throw unexpected(response);
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = (await exchange.part(reader.read())) as { done: boolean; value: Uint8Array };
      if (done) return;
      exchange.limit(timeoutMs);
      yield value;
    }
  } finally {
    exchange.close();
  }
}
