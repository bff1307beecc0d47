/**
 * The spans of time of which there are charts. Apart from what counts, so that the dashboard can take the types of the schema.
 *
 * @module
 */
export const HISTORY_SPANS = ["1h", "24h", "7d"] as const;
