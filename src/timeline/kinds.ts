/**
 * Kinds of entries in the timeline of a session. Apart from what reads it, so that the dashboard can take the types of the schema.
 *
 * @module
 */
export const TIMELINE_KINDS = ["turn", "version", "memory", "retrieval", "fork"] as const;
