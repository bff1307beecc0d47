/**
 * What tests of embedding providers share: setting one, and what it has made of the memories.
 *
 * @module
 */
import type { Cairn } from "./cairn.ts";
import { refuses, type EmbeddingServer } from "./embedding-server.ts";

export const TEA = "The customer prefers green tea to coffee.";
export const CHESS = "Luca plays chess online under the name of rook42.";
export const RENT = "The landlord raised the rent of the flat.";
/** Nothing that is worth another attempt, so that one failure is enough. */
export const DOWN = refuses(404, "The model is gone for lunch.");
export const UNAVAILABLE = { status: 503, code: "service_unavailable" };

export const openai = ({ baseUrl }: EmbeddingServer, more: Record<string, unknown> = {}) => ({
  provider: "openai",
  base_url: baseUrl,
  model: "some-model",
  ...more,
});

export const setEmbedding = (cairn: Cairn, embedding: Record<string, unknown>, headers: Record<string, string> = {}) =>
  cairn.patch("/v1/settings", { embedding }, { headers });

export async function setProvider(cairn: Cairn, server: EmbeddingServer, more: Record<string, unknown> = {}): Promise<any> {
  return (await cairn.ok(setEmbedding(cairn, openai(server, more)))).embedding;
}

/** Has texts found by their words, for tests of many that are not about the encoder. */
export const findByWords = (cairn: Cairn) => cairn.ok(cairn.patch("/v1/settings", { embedding: { provider: "words" } }));

/** The task that makes pending vectors. */
export const EMBEDDINGS = "embeddings";
export const makeVectors = (cairn: Cairn) => cairn.runTask(EMBEDDINGS);

/** What the operator was told, without times. */
export function log(cairn: Cairn): Record<string, unknown>[] {
  return cairn.logged.map((line) => {
    const { time: _time, ...entry } = JSON.parse(line);
    return entry;
  });
}

export const vectorsOf = async (cairn: Cairn) => (await cairn.settings()).embedding.vectors;

const WORDS = ["tea", "trains", "rent", "chess", "gardens", "music", "bread"];
const NAMES = ["Anna", "Boris", "Clara", "David", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Karim"];
const PLACES = ["Oslo", "Lima", "Cairo", "Delhi", "Quito", "Tunis", "Perth", "Kyoto"];
/** No two of 616 are alike. */
export const NOTES = (count: number) =>
  Array.from({ length: count }, (_, i) => `${NAMES[i % 11]} talked about ${WORDS[i % 7]} in ${PLACES[i % 8]}, says note n${1000 + i}.`);

export async function addAll(cairn: Cairn, contents: readonly string[], more: Record<string, unknown> = {}): Promise<any[]> {
  const session = await cairn.createSession({ user_id: "user" });
  return Promise.all(contents.map((content) => cairn.addMemory(session.id, content, more)));
}
