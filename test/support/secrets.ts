/**
 * Secrets of each kind that are nobody's, made when they are needed: no file of the project has one.
 *
 * @module
 */
import { toBase62 } from "../../src/lib/base62.ts";
import { Markers } from "./marked.ts";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** `length` characters of an alphabet, always the same for a seed. */
export function varied(length: number, seed = 1, alphabet = LETTERS): string {
  let state = seed * 2654435761;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return alphabet[(state >>> 8) % alphabet.length];
  }).join("");
}

/** 30 characters and their CRC-32, after a prefix. */
export function withCrc(prefix: string, seed = 1): string {
  const text = varied(30, seed);
  return prefix + text + toBase62(Bun.hash.crc32(text), 6);
}

export const githubToken = (seed = 1): string => withCrc("ghp_", seed);

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const HEX = "0123456789abcdef";
const pem = (title: string): string =>
  [`-----BEGIN ${title}-----`, varied(64, 3), varied(64, 4), varied(40, 5), `-----END ${title}-----`].join("\n");

/** Examples of each kind, in the words around them. */
export const SECRETS: readonly { readonly kind: string; readonly secret: string; readonly before?: string; readonly after?: string }[] = [
  ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].map((prefix, i) => ({ kind: "github_token", secret: withCrc(prefix, i + 1) })),
  { kind: "github_token", secret: `github_pat_${varied(22)}_${varied(59, 2)}` },
  { kind: "gitlab_token", secret: `glpat-${varied(20)}` },
  { kind: "gitlab_token", secret: `glrt-${varied(27)}.01.${varied(9, 2, "0123456789abcdefghijklmnopqrstuvwxyz")}` },
  { kind: "npm_token", secret: withCrc("npm_") },
  { kind: "pypi_token", secret: `pypi-AgEIcHlwaS5vcmc${varied(90)}` },
  { kind: "rubygems_key", secret: `rubygems_${varied(48, 1, HEX)}` },
  { kind: "docker_token", secret: `dckr_pat_${varied(27)}` },
  ...["AKIA", "ASIA"].map((prefix) => ({ kind: "aws_access_key", secret: prefix + varied(16, 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") })),
  { kind: "aws_secret_key", secret: varied(40, 7), before: "aws_secret_access_key = " },
  { kind: "aws_secret_key", secret: varied(40, 8), before: 'AWS_SECRET_ACCESS_KEY="', after: '"' },
  { kind: "google_api_key", secret: `AIza${varied(35)}` },
  { kind: "google_oauth_secret", secret: `GOCSPX-${varied(28)}` },
  { kind: "google_oauth_token", secret: `ya29.${varied(120)}` },
  { kind: "slack_token", secret: `xoxb-${varied(11, 1, "123456789")}-${varied(12, 2, "123456789")}-${varied(24)}` },
  { kind: "slack_token", secret: `xapp-1-A${varied(10, 1, "ABCDEF0123456789")}-${varied(13, 1, "123456789")}-${varied(64, 1, HEX)}` },
  {
    kind: "slack_webhook",
    secret: `T${varied(8, 1, "ABCDEF012")}/B${varied(8, 2, "ABCDEF012")}/${varied(24)}`,
    before: "https://hooks.slack.com/services/",
  },
  ...["sk_live_", "rk_live_", "sk_test_"].map((prefix) => ({ kind: "stripe_key", secret: prefix + varied(24) })),
  { kind: "stripe_webhook_secret", secret: `whsec_${varied(32)}` },
  { kind: "anthropic_key", secret: `sk-ant-api03-${varied(93)}AA` },
  { kind: "openai_key", secret: `sk-${varied(20)}T3BlbkFJ${varied(20, 2)}` },
  { kind: "openai_key", secret: `sk-proj-${varied(74)}T3BlbkFJ${varied(74, 2)}` },
  { kind: "openrouter_key", secret: `sk-or-v1-${varied(64, 1, HEX)}` },
  { kind: "groq_key", secret: `gsk_${varied(52)}` },
  { kind: "xai_key", secret: `xai-${varied(80)}` },
  { kind: "perplexity_key", secret: `pplx-${varied(48)}` },
  { kind: "huggingface_token", secret: `hf_${varied(34, 1, LETTERS.slice(0, 52))}` },
  { kind: "replicate_token", secret: `r8_${varied(37)}` },
  { kind: "sendgrid_key", secret: `SG.${varied(22)}.${varied(43, 2)}` },
  { kind: "telegram_token", secret: `AA${varied(33)}`, before: "bot 1234567890:" },
  { kind: "digitalocean_token", secret: `dop_v1_${varied(64, 1, HEX)}` },
  { kind: "shopify_token", secret: `shpat_${varied(32, 1, HEX)}` },
  { kind: "databricks_token", secret: `dapi${varied(32, 1, HEX)}` },
  { kind: "vault_token", secret: `hvs.${varied(95)}` },
  { kind: "grafana_token", secret: `glsa_${varied(32)}_${varied(8, 1, HEX)}` },
  { kind: "postman_key", secret: `PMAK-${varied(24, 1, HEX)}-${varied(34, 2, HEX)}` },
  { kind: "notion_token", secret: `ntn_${varied(46)}` },
  { kind: "linear_key", secret: `lin_api_${varied(40)}` },
  { kind: "atlassian_token", secret: `ATATT3${varied(186)}` },
  { kind: "sentry_token", secret: `sntrys_eyJ${varied(150)}` },
  { kind: "supabase_key", secret: `sbp_${varied(40, 1, HEX)}` },
  { kind: "age_key", secret: `AGE-SECRET-KEY-1${varied(58, 1, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L")}` },
  { kind: "cairn_key", secret: `crn_${varied(24)}` },
  { kind: "jwt", secret: `${base64url({ alg: "HS256", typ: "JWT" })}.${base64url({ sub: "user-42" })}.${varied(43)}` },
  { kind: "jwt", secret: `${base64url({ alg: "none" })}.${base64url({ sub: "user-42" })}.` },
  ...["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"].map((title) => ({
    kind: "private_key",
    secret: pem(title),
  })),
  { kind: "private_key", secret: pem("EC PRIVATE KEY").replaceAll("\n", String.raw`\n`) },
  { kind: "url_password", secret: "hunter2", before: "postgres://cairn:", after: "@db.internal:5432/cairn" },
  ...["4111 1111 1111 1111", "4012888888881881", "5555-5555-5555-4444", "2223003122003222", "3782 822463 10005", "6011111111111117"].map(
    (secret) => ({ kind: "card_number", secret }),
  ),
  ...["3530111333300000", "30569309025904", "6200000000000005"].map((secret) => ({ kind: "card_number", secret })),
];

/** Those that are looked for on request alone. */
export const PERSONAL: typeof SECRETS = [
  ...["ada.lovelace@example.com", "a+b@sub.example.co.uk"].map((secret) => ({ kind: "email", secret })),
  ...["+44 20 7946 0958", "+1 (415) 555-2671", "(415) 555-2671", "415-555-2671", "+4915112345678"].map((secret) => ({
    kind: "phone",
    secret,
  })),
];

/** Texts of their own, each of which is a secret. */
export class SecretMarkers extends Markers {
  protected override made(hash: number | bigint): string {
    return githubToken(Number(BigInt(hash) % 1_000_000_007n));
  }
}
