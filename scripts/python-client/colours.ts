/**
 * The two colours of the client for Python.
 *
 * @module
 */
import { MADE } from "./document.ts";

/** Differences between the two colours. */
export interface Colour {
  readonly module: "_sync" | "_async";
  readonly head: string;
  readonly prefix: "" | "Async";
  readonly define: "def" | "async def";
  readonly run: string;
  readonly iterate: "iterate" | "aiterate";
  readonly generator: (item: string) => string;
}

export const BLOCKING: Colour = {
  module: "_sync",
  head: `"""The client whose calls block, ${MADE}"""`,
  prefix: "",
  define: "def",
  run: "self._client.run",
  iterate: "iterate",
  generator: (item) => `Generator[${item}, None, None]`,
};
export const AWAITING: Colour = {
  module: "_async",
  head: `"""The client whose calls are awaited, ${MADE}"""`,
  prefix: "Async",
  define: "async def",
  run: "await self._client.arun",
  iterate: "aiterate",
  generator: (item) => `AsyncGenerator[${item}, None]`,
};
