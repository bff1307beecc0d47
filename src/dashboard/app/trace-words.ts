/**
 * A trace in the words of a person: the one who did it stands before, the user behind.
 *
 * @module
 */
import type { Trace } from "./api.ts";
import { counted, number } from "./words.ts";

type Details = Trace["details"];

const SHOWN_LENGTH = 120;

const said = (details: Details, name: string): string => {
  const value = details[name];
  if (typeof value !== "string" || value === "") return "";
  return `: “${value.length > SHOWN_LENGTH ? `${value.slice(0, SHOWN_LENGTH).toWellFormed()}…` : value}”`;
};
const numbered = (details: Details, name: string): string => (typeof details[name] === "number" ? ` ${number(details[name])}` : "");
const named = (details: Details, name: string): string => (typeof details[name] === "string" ? ` ${details[name]}` : "");

/** Number of paths that a change of a state touched. */
function changesIn({ state_diff: difference }: Details): string {
  const parts = typeof difference === "object" && difference !== null ? Object.values(difference) : [];
  const count = parts.reduce((sum: number, part: unknown) => sum + Object.keys(part ?? {}).length, 0);
  return count === 0 ? "" : `, ${counted(count, "changes")}`;
}

const WORDS: Record<Trace["action"], (details: Details) => string> = {
  "session.created": (d) => `began a session${named(d, "external_id")}`,
  "session.updated": () => "changed a session",
  "session.deleted": (d) => `deleted a session${said(d, "reason")}`,
  "session.forked": (d) => `forked a session at state${numbered(d, "fork_version")}`,
  "session.expired": () => "let a session expire",
  "state.updated": (d) => `changed the state to${numbered(d, "version") || " a new one"}${changesIn(d)}${said(d, "reasoning")}`,
  "state.rolled_back": (d) => `rolled back from state${numbered(d, "from_version")} to${numbered(d, "to_version")}${said(d, "reason")}`,
  "turn.added": (d) =>
    d["output_type"] === "error"
      ? `logged turn${numbered(d, "turn_number")}, which failed${said(d, "reasoning")}`
      : `logged turn${numbered(d, "turn_number")}${said(d, "reasoning")}`,
  "memory.created": (d) => `remembered${said(d, "content_preview") || " something"}`,
  "memory.updated": (d) => `changed a memory${d["content_changed"] === true ? "" : ", not its content"}`,
  "memory.deleted": (d) => `forgot${said(d, "content_preview") || " a memory"}`,
  "memory.expired": (d) => `let a memory expire${said(d, "content_preview")}`,
  "memory.superseded": (d) => `replaced a memory${said(d, "content_preview")}`,
  "retrieval.rated": () => "said what helped of what was found",
  "api_key.created": (d) => `created the key${named(d, "name") || named(d, "prefix")}`,
  "api_key.rolled": (d) => `rolled the key${named(d, "name") || named(d, "prefix")}`,
  "api_key.revoked": (d) => `revoked the key${named(d, "name") || named(d, "prefix")}`,
  "backup.started": () => "began a backup",
  "backup.created": () => "made a backup",
  "backup.failed": (d) => `could not make a backup${said(d, "reason")}`,
  "backup.copied": () => "copied a backup",
  "backup.copy_failed": (d) => `could not copy a backup${said(d, "reason")}`,
  "backup.downloaded": () => "downloaded a backup",
  "backup.deleted": (d) => `deleted a backup${said(d, "reason")}`,
  "user.erased": (d) => `erased the user${named(d, "user_id")}`,
  "settings.updated": (d) => `changed the settings ${Object.keys((d["changes"] as object | undefined) ?? {}).join(", ")}`,
  "webhook.created": (d) => `created a webhook${named(d, "url")}`,
  "webhook.updated": () => "changed a webhook",
  "webhook.disabled": (d) => `switched off a webhook${named(d, "url")}${said(d, "reason")}`,
  "webhook.secret_rotated": (d) => `gave a webhook a new secret${named(d, "url")}`,
  "webhook.deleted": (d) => `deleted a webhook${named(d, "url")}`,
};

/** @returns the action alone where nothing is left of its details */
export function wordsOf({ action, details }: Trace): string {
  // A newer server can have actions that this page does not know.
  return Object.hasOwn(WORDS, action) ? WORDS[action](details).trim() : action;
}

/** Checks whether somebody should look at it. */
export function isTrouble({ action, details }: Trace): boolean {
  return action.endsWith("failed") || action === "webhook.disabled" || (action === "turn.added" && details["output_type"] === "error");
}
