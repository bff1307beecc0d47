/**
 * Encodes what it is sent as a query.
 *
 * @module
 */
import { openEncoder } from "../../../../src/embeddings/builtin/encoder.ts";

declare const self: Worker;

self.addEventListener("message", (event: MessageEvent<string>) => self.postMessage(openEncoder().encode(event.data, "query")));
