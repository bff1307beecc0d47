/**
 * The times of which there is a history. Apart from what counts, so that the dashboard can take the types of the schema.
 *
 * @module
 */
export const HISTORY_SPANS = ["1h", "24h"] as const;
