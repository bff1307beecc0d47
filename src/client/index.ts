/**
 * Exports of `cairn-client`.
 *
 * @module
 */
export { Cairn } from "./client.ts";
export { CairnError, type ErrorCode } from "./errors.ts";
export { verifyWebhook, type WebhookHeaders } from "./webhooks.ts";
export type { Documents, DocumentOwner } from "./documents.ts";
export type { EventOptions } from "./events.ts";
export type { CairnOptions, CallOptions } from "./http.ts";
export type { Listing, Page } from "./page.ts";
export type * from "./types.ts";
