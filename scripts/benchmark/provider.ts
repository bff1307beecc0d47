/**
 * A server that speaks `/v1/embeddings` and gives dense vectors, so that an executable has a provider that is not its own.
 *
 * @module
 */
import { obey } from "./child.ts";
import { denseVector } from "./dense.ts";

export interface ProviderOrder {
  /** The one it had before, for a store that knows it by that; 0: any. */
  port: number;
}

obey(({ port }: ProviderOrder): Promise<number> => {
  const server = Bun.serve({
    port,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { input, model } = (await request.json()) as { input: string[]; model: string };
      const data = input.map((text, index) => ({
        object: "embedding",
        index,
        embedding: new Uint8Array(denseVector(text).buffer).toBase64(),
      }));
      return Response.json({ object: "list", data, model, usage: { prompt_tokens: 0, total_tokens: 0 } });
    },
  });
  return Promise.resolve(server.port as number);
});
