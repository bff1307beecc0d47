/**
 * Webhooks: who wants to hear of what, and where.
 *
 * A secret is shown once, when it is made: at creation and at rotation, and in a replay of such a request.
 *
 * @module
 */
import { HOUR_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, isId, nothingWithId, withPrefix, type BareId, type Id } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { findTarget, type Network } from "../lib/outbound.ts";
import { within } from "../lib/deadline.ts";
import { isoOrNull, toIso } from "../lib/time.ts";
import { originOnly } from "../lib/urls.ts";
import { eachFetched, type Reader, type Tx } from "../storage/access.ts";
import { MAX_KEY } from "../storage/keys.ts";
import { pageOf, rowsOf, type Page } from "../storage/page.ts";
import { webhookFailures, webhooks, type WebhookRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Activator } from "../tasks/task.ts";
import type { EventType } from "../traces/events.ts";
import { commitAdmin, commitSecret, recordAdmin, type Caller, type Deps } from "../traces/record.ts";
import { pauseOf, type Outcomes } from "./outcome.ts";
import { firstDueAt } from "./queue.ts";
import { newSecret, secretProblem } from "./signature.ts";
import { checkUrl, refusalOf } from "./target.ts";

export type WebhookId = Id<"whk">;

export interface WebhookDeps extends Deps {
  readonly webhooks: {
    readonly network: Network;
    readonly outcomes: Readonly<Outcomes>;
    /** Makes new deliveries. */
    readonly deliveries: Activator;
    /** Attempts under way. */
    readonly inFlight: ReadonlySet<Promise<void>>;
  };
}

export interface NewWebhook {
  url: string;
  events: readonly EventType[];
  description: string | null;
  enabled: boolean;
  /** One is made when none is given. */
  secret?: string | undefined;
}

export interface WebhookChanges {
  url?: string | undefined;
  events?: readonly EventType[] | undefined;
  description?: string | undefined;
  enabled?: boolean | undefined;
}

/** A rotated secret keeps signing together with the new one for this long. */
const OVERLAP_MS = LIMITS.webhookSecretOverlapHours * HOUR_MS;
/** However often it is rotated: a header has to hold a signature for each. */
const PREVIOUS_SECRETS_MAX = 4;
/** Looking a name up must not hold a request for longer; every attempt looks again. */
const LOOK_UP_MS = 2_000;

/** @throws {ApiError} `invalid_request` for a URL that leads where it must not, a secret that cannot be used, or too many webhooks */
export async function createWebhook(deps: WebhookDeps, caller: Caller, input: NewWebhook): Promise<JsonText> {
  refuseBadSecret(input.secret);
  const secret = input.secret ?? newSecret();
  const url = await allowedUrl(deps, input.url);
  const { description, enabled } = input;
  const events = [...new Set(input.events)];
  return commitSecret(deps, caller, (tx) => {
    if (tx.keys(webhooks, { from: "", to: MAX_KEY }).length >= LIMITS.webhooksMax) {
      throw new ApiError("invalid_request", `There can be at most ${LIMITS.webhooksMax} webhooks. Delete one first.`);
    }
    const key = tx.bareId();
    // Before the webhook is there: its own creation is not for it.
    recordAdmin(tx, caller, "webhook.created", {
      webhook_id: withPrefix("whk", key),
      ...traced({ url, events, description, enabled }),
    });
    const row: WebhookRow = {
      url,
      events,
      description,
      enabled,
      disabledReason: null,
      secret,
      previousSecrets: [],
      createdAt: tx.now,
      updatedAt: tx.now,
      failingSince: null,
    };
    tx.add(webhooks, key, row);
    return webhookJson(tx, key, row, secret);
  });
}

/** Newest first. */
export function listWebhooks({ store }: Deps, page: Page<WebhookId>): JsonText | Promise<JsonText> {
  const to = page.startingAfter === undefined ? MAX_KEY : bare(page.startingAfter);
  return store.read((reader) => {
    const rows = Array.from(rowsOf(reader, webhooks, { from: "", to, descending: true }, page.limit + 1));
    return pageOf(
      eachFetched(rows, ({ key, row }) => ({ id: withPrefix("whk", key), json: webhookJson(reader, key, row) })),
      page.limit,
    );
  });
}

export function getWebhook({ store }: Deps, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const { key, row } = findWebhook(reader, id);
    return webhookJson(reader, key, row);
  });
}

/**
 * Changes a webhook; a change of nothing leaves no trace. Enabling starts afresh: events from while it was disabled are not
 * delivered, and earlier failures are forgotten.
 */
export async function updateWebhook(deps: WebhookDeps, caller: Caller, id: string, changes: WebhookChanges): Promise<JsonText> {
  await deps.store.read((reader) => findWebhook(reader, id));
  const url = changes.url === undefined ? undefined : await allowedUrl(deps, changes.url);
  const answer = await commitAdmin(deps, caller, (tx) => {
    const { key, row: before } = findWebhook(tx, id);
    const enabled = changes.enabled ?? before.enabled;
    const isEnabledAnew = enabled && !before.enabled;
    const events = changes.events === undefined ? before.events : [...new Set(changes.events)];
    const description = changes.description ?? before.description;
    const isSame =
      (url ?? before.url) === before.url &&
      toJson(events) === toJson(before.events) &&
      description === before.description &&
      enabled === before.enabled;
    if (isSame) return webhookJson(tx, key, before);
    const row: WebhookRow = {
      ...before,
      url: url ?? before.url,
      events,
      description,
      enabled,
      updatedAt: Math.max(before.updatedAt, tx.now),
      // Another receiver has not failed yet.
      ...(url === undefined || url === before.url ? {} : { failingSince: null, pausedUntil: null }),
      ...(isEnabledAnew ? { failingSince: null, pausedUntil: null, disabledReason: null } : {}),
    };
    tx.put(webhooks, key, row);
    recordChanges(tx, caller, key, before, row);
    return webhookJson(tx, key, row);
  });
  // Deliveries that were pending when it was disabled continue.
  deps.webhooks.deliveries.wake();
  return answer;
}

/** Cancels pending deliveries; a task removes them. */
export function deleteWebhook(deps: WebhookDeps, caller: Caller, id: string, reason: string | undefined): Promise<JsonText> {
  return commitAdmin(deps, caller, (tx) => {
    const { key, row } = findWebhook(tx, id);
    tx.remove(webhooks, key);
    tx.remove(webhookFailures, key);
    recordAdmin(tx, caller, "webhook.deleted", { webhook_id: id, url: originOnly(row.url), reason: reason ?? null });
    return toJson({ object: "webhook", id, deleted: true });
  });
}

/** Gives a webhook a new secret; the previous one signs too for a day. */
export function rotateSecret(deps: WebhookDeps, caller: Caller, id: string, chosen: string | undefined): Promise<JsonText> {
  refuseBadSecret(chosen);
  const secret = chosen ?? newSecret();
  return commitSecret(deps, caller, (tx) => {
    const { key, row: before } = findWebhook(tx, id);
    const { now } = tx;
    const previous = [{ secret: before.secret, until: now + OVERLAP_MS }, ...before.previousSecrets];
    const row: WebhookRow = {
      ...before,
      secret,
      previousSecrets: previous.filter(({ until, secret: old }) => until > now && old !== secret).slice(0, PREVIOUS_SECRETS_MAX),
      updatedAt: Math.max(before.updatedAt, now),
    };
    tx.put(webhooks, key, row);
    recordAdmin(tx, caller, "webhook.secret_rotated", {
      webhook_id: id,
      url: originOnly(row.url),
      previous_valid_until: toIso(now + OVERLAP_MS),
    });
    return webhookJson(tx, key, row, secret);
  });
}

/** A change that disables it is a trace of its own, so that one action finds whatever stopped the deliveries. */
function recordChanges(tx: Tx, caller: Caller, key: BareId, before: WebhookRow, after: WebhookRow): void {
  const isDisabled = before.enabled && !after.enabled;
  const [from, to] = [traced(before), traced(after)];
  const names = TRACED.filter((name) => toJson(before[name]) !== toJson(after[name]) && !(isDisabled && name === "enabled"));
  if (names.length > 0) {
    const changes = Object.fromEntries(names.map((name) => [name, { from: from[name], to: to[name] }]));
    recordAdmin(tx, caller, "webhook.updated", { webhook_id: withPrefix("whk", key), changes });
  }
  if (isDisabled) recordAdmin(tx, caller, "webhook.disabled", tracedDisabling(key, after));
}

export function tracedDisabling(key: BareId, { url, disabledReason }: WebhookRow): Record<string, unknown> {
  return { webhook_id: withPrefix("whk", key), url: originOnly(url), reason: disabledReason };
}

const TRACED = ["url", "events", "description", "enabled"] as const;

/** Webhook as traces show it. */
function traced({ url, events, description, enabled }: Pick<WebhookRow, (typeof TRACED)[number]>) {
  return { url: originOnly(url), events, description, enabled };
}

/** @throws {ApiError} `resource_not_found` */
export function findWebhook(reader: Reader, id: string): { key: BareId; row: WebhookRow } {
  const key = isId("whk", id) ? bare(id) : undefined;
  const row = key === undefined ? undefined : reader.get(webhooks, key);
  if (key === undefined || row === undefined) {
    throw new ApiError("resource_not_found", nothingWithId("webhook", "whk", id), { param: "webhook_id" });
  }
  return { key, row };
}

export function webhookJson(reader: Reader, key: BareId, row: WebhookRow, secret?: string): JsonText {
  const last = row.failingSince === null ? undefined : unlessUnreadable(() => reader.get(webhookFailures, key))?.last;
  return toJson({
    object: "webhook",
    id: withPrefix("whk", key),
    url: row.url,
    events: row.events,
    description: row.description,
    enabled: row.enabled,
    disabled_reason: row.disabledReason,
    failing_since: isoOrNull(row.failingSince),
    last_failure: last === undefined ? null : { at: toIso(last.at), response_code: last.status, error: last.error },
    next_attempt_at: row.enabled ? isoOrNull(nextAttemptAt(reader, key, row)) : null,
    secret,
    created_at: toIso(row.createdAt),
    updated_at: toIso(row.updatedAt),
  });
}

/** Not before the end of a pause that the receiver has asked for. */
function nextAttemptAt(reader: Reader, webhook: BareId, row: WebhookRow): number | null {
  const dueAt = firstDueAt(reader, webhook);
  return dueAt === undefined ? null : Math.max(dueAt, pauseOf(row, reader.now) ?? 0);
}

function refuseBadSecret(secret: string | undefined): void {
  const problem = secret === undefined ? undefined : secretProblem(secret);
  if (problem !== undefined) throw new ApiError("invalid_request", `secret cannot be used. ${problem}`, { param: "secret" });
}

/** The URL as it was given. A name that is not known now is let through: every attempt looks again. */
async function allowedUrl({ clock, webhooks: { network } }: WebhookDeps, text: string): Promise<string> {
  const checked = checkUrl(text);
  if ("problem" in checked) throw refusedUrl(checked.problem);
  const target = await within(clock, LOOK_UP_MS, findTarget(checked.url, network));
  if (target?.kind === "forbidden") throw refusedUrl(refusalOf(checked.url, target.address));
  return text;
}

function refusedUrl(reason: string): ApiError {
  return new ApiError("invalid_request", `url cannot be used. ${reason}`, { param: "url" });
}
