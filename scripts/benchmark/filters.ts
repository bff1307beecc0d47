/**
 * The filters that searches are measured with, from one memory in ten thousand to all of them.
 *
 * @module
 */

/** Of these each memory passes by chance: what a filter has to do with a question is nothing. */
export const SHARES = { all: 1, "50 %": 0.5, "10 %": 0.1, "1 %": 0.01, "0.1 %": 0.001, "0.01 %": 0.0001 } as const;

/** `topics`: the texts of a hundredth of all topics, which hardly ever are what is asked about; `user`: those of one user. */
export const FILTER_NAMES = [...(Object.keys(SHARES) as (keyof typeof SHARES)[]), "topics", "user"] as const;
export type FilterName = (typeof FILTER_NAMES)[number];

const TOPIC_GROUPS = 100;

/** A question, with the user and the group of topics that it is asked with where the filter is one of those. */
export interface Asked {
  query: string;
  user: number;
  group: string;
}

export function tagOf(name: FilterName): string {
  return `share ${name}`;
}

/** The tag of texts of this topic; empty for a text without one. */
export function groupOf(topic: number): string {
  return topic === -1 ? "" : `topics ${topic % TOPIC_GROUPS}`;
}

/** The ways in which a share of the memories is asked for. */
export const FILTERED_BY = ["tags", "metadata", "rows"] as const;
export type FilteredBy = (typeof FILTERED_BY)[number];

/** Metadata of a memory of these shares. */
export function metadataOf(shares: readonly FilterName[]): Record<string, true> {
  return Object.fromEntries(shares.map((name) => [memberOf(name), true]));
}

function memberOf(name: FilterName): string {
  return `one in ${Math.round(1 / SHARES[name as keyof typeof SHARES])}`;
}

/** Parameters of a search besides its query. */
export function filterOf(name: FilterName, { user, group }: Asked, by: FilteredBy): Record<string, unknown> {
  if (name === "all") return {};
  if (name === "user") return { user_id: `user-${user}` };
  if (by !== "tags" && name !== "topics")
    return { filter: { [`metadata.${memberOf(name)}`]: by === "metadata" ? true : { $exists: true } } };
  return { tags: [name === "topics" ? group : tagOf(name)] };
}
