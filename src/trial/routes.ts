/**
 * Trying an embedding provider: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import type { SettingsDeps } from "../settings/operations.ts";
import { changesIn } from "../settings/schema.ts";
import { EmbeddingTrial, EmbeddingTry } from "./schema.ts";
import { Trials } from "./trial.ts";

const settings = endpointGroup({ name: "Trials", description: "Trying what is not set yet." }, "admin");

export function trialEndpoints(deps: SettingsDeps): Endpoint[] {
  const trials = new Trials(deps);
  return [
    settings.post("/v1/settings/embedding/try", {
      summary: "Try an embedding provider",
      description:
        "Says whether it works, or why not, and what score it gives to a pair of texts. Nothing is saved. One is tried at a time.",
      body: EmbeddingTry,
      response: EmbeddingTrial,
      run: ({ sent, body: { query, content } }) => trials.run(changesIn({ embedding: sent.embedding ?? {} }), { query, content }),
    }),
  ];
}
