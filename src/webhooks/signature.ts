/**
 * The signatures by which a receiver verifies that a delivery is ours and unchanged. Pure.
 *
 * The plain one is a hex HMAC-SHA256 of the body, keyed with the text of the secret. The other is that of Standard Webhooks:
 * base64, over id, time and body, keyed with the bytes that the secret encodes, so that a delivery cannot be replayed later.
 *
 * @see https://www.standardwebhooks.com
 * @module
 */
import { createHmac, randomBytes } from "node:crypto";

const SECRET_PREFIX = "whsec_";
const SECRET_BYTES = 24;
const SECRET_SHAPE = /^[\x20-\x7e]{16,255}$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString("base64");
}

/** Reason why a secret that a caller chose cannot be used, without repeating it; undefined when it can. */
export function secretProblem(secret: string): string | undefined {
  if (!SECRET_SHAPE.test(secret)) return "It must be 16 to 255 printable ASCII characters.";
  if (secret.startsWith(SECRET_PREFIX) && !BASE64.test(secret.slice(SECRET_PREFIX.length))) {
    return `What follows ${SECRET_PREFIX} must be base64: it is decoded for the Standard Webhooks signature.`;
  }
  return undefined;
}

export function hexSignature(secret: string, body: string): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

export function standardSignature(secret: string, id: string, timestampSeconds: number, body: string): string {
  const key = secret.startsWith(SECRET_PREFIX) ? Buffer.from(secret.slice(SECRET_PREFIX.length), "base64") : secret;
  return `v1,${createHmac("sha256", key).update(`${id}.${timestampSeconds}.${body}`).digest("base64")}`;
}

export interface Signed {
  /** `evt_…` */
  id: string;
  timestampSeconds: number;
  body: string;
}

/** @param secrets - the current one, then those it replaced that are still valid */
export function signatureHeaders(secrets: readonly [string, ...string[]], { id, timestampSeconds, body }: Signed): Record<string, string> {
  const [current, previous] = secrets;
  return {
    "X-Webhook-Signature": hexSignature(current, body),
    // The plain header has room for one signature.
    ...(previous === undefined ? {} : { "X-Webhook-Signature-Previous": hexSignature(previous, body) }),
    "webhook-id": id,
    "webhook-timestamp": String(timestampSeconds),
    "webhook-signature": secrets.map((secret) => standardSignature(secret, id, timestampSeconds, body)).join(" "),
  };
}
