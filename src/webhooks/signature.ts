/**
 * What a receiver verifies: that a delivery is ours and unchanged. Pure.
 *
 * Two signatures of the same body. The plain one is a hex HMAC-SHA256 of the body, keyed with the secret's text as it
 * stands. The other is that of Standard Webhooks: base64, over id, time and body, keyed with the bytes that the secret's
 * text stands for, so that a delivery cannot be replayed later.
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

/** What is wrong with a secret that a caller chose; undefined when it can be used. Never repeats it. */
export function secretProblem(secret: string): string | undefined {
  if (!SECRET_SHAPE.test(secret)) return "It must be 16 to 255 printable ASCII characters.";
  if (secret.startsWith(SECRET_PREFIX) && !BASE64.test(secret.slice(SECRET_PREFIX.length))) {
    return `What follows ${SECRET_PREFIX} must be base64: it is decoded for the Standard Webhooks signature.`;
  }
  return undefined;
}

/** The plain signature. */
export function hexSignature(secret: string, body: string): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

/** One signature of Standard Webhooks: `v1,` and base64. */
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

/**
 * The headers that sign a delivery.
 *
 * @param secrets - the current one, then those that it replaced and that are still valid
 */
export function signatureHeaders(secrets: readonly [string, ...string[]], { id, timestampSeconds, body }: Signed): Record<string, string> {
  const [current, previous] = secrets;
  return {
    "X-Webhook-Signature": hexSignature(current, body),
    // The plain header has room for one signature: the one before has a header of its own.
    ...(previous === undefined ? {} : { "X-Webhook-Signature-Previous": hexSignature(previous, body) }),
    "webhook-id": id,
    "webhook-timestamp": String(timestampSeconds),
    "webhook-signature": secrets.map((secret) => standardSignature(secret, id, timestampSeconds, body)).join(" "),
  };
}
