/**
 * Verification that a delivery of a webhook comes from Cairn: by the signature of Standard Webhooks, with Web Crypto.
 *
 * @see https://www.standardwebhooks.com
 * @module
 */

const TOLERANCE_SECONDS = 300;
const PREFIX = "whsec_";

/** Signature and its time: the headers of the request, as `Headers` or as an object with names in lower case. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Returns whether a request was signed with the secret of the webhook, at most five minutes ago or ahead.
 *
 * @param body - as it came: JSON that was parsed and written again has other bytes
 *
 * @example if (!(await verifyWebhook(secret, request.headers, await request.text()))) return new Response(null, { status: 400 });
 */
export async function verifyWebhook(
  secret: string,
  headers: WebhookHeaders,
  body: string | Uint8Array,
  now: number = Date.now(),
): Promise<boolean> {
  const [id, timestamp, signatures] = ["id", "timestamp", "signature"].map((name) => header(headers, `webhook-${name}`));
  if (!id || !signatures || !timestamp || !/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const secretBytes = secret.startsWith(PREFIX) ? fromBase64(secret.slice(PREFIX.length)) : encode(secret);
  // Nothing is signed with a secret that is none: an empty key would verify what anybody can sign.
  if (secretBytes === undefined || secretBytes.length === 0) throw new TypeError("secret must be the secret of the webhook: whsec_…");
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", secretBytes, algorithm, false, ["verify"]);
  const signed = joined(encode(`${id}.${timestamp}.`), typeof body === "string" ? encode(body) : body);
  // While a secret is replaced there is a signature of each.
  for (const signature of signatures.split(" ")) {
    const bytes = signature.startsWith("v1,") ? fromBase64(signature.slice(3)) : undefined;
    if (bytes !== undefined && (await crypto.subtle.verify(algorithm, key, bytes, signed))) return true;
  }
  return false;
}

function header(headers: WebhookHeaders, name: string): string | undefined {
  if (typeof headers.get === "function") return (headers as Headers).get(name) ?? undefined;
  const value = (headers as Readonly<Record<string, string | readonly string[] | undefined>>)[name];
  return typeof value === "string" ? value : value?.[0];
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
