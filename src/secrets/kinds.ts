/**
 * The kinds of secrets that are known by their form: what one begins with, the rest of it, and the checksum where its kind has one. Pure.
 *
 * A kind that could be anything else, such as 32 hexadecimal digits, is not here: nothing is to be found in a text that has no secret.
 * Each pattern is tried at the beginning of a word alone and goes over its characters once.
 *
 * @module
 */
import { toBase62 } from "../lib/base62.ts";

/** Groups of kinds, by the names in the setting `secret_kinds`. */
export const SECRET_GROUPS = ["keys", "cards", "email", "phone"] as const;
export type SecretGroup = (typeof SECRET_GROUPS)[number];

/** A key by the word that it is, which begins with a text of its own. */
export interface KeyForm {
  readonly kind: string;
  readonly prefix: string;
  /** Sticky, from the prefix on. */
  readonly pattern: RegExp;
  /** Checks what the pattern cannot: a checksum, or that it is no placeholder. */
  readonly fits: (key: string) => boolean;
}

/** Length of the shortest word that a key begins with. */
export const KEY_WORD_LENGTH_MIN = 16;

const DISTINCT_MIN = 8;
const PLACEHOLDER = /x{5}|EXAMPLE|\.{3}|your[-_]/i;

/** Checks that a text is as varied as what chance makes. */
export function isVaried(text: string): boolean {
  let seen = "";
  for (let i = 0; i < text.length && seen.length < DISTINCT_MIN; i++) if (!seen.includes(text[i]!)) seen += text[i]!;
  return seen.length === DISTINCT_MIN && !PLACEHOLDER.test(text);
}

/** A key of 30 base62 characters and the CRC-32 of these, as GitHub and npm give them. */
function hasCrc(key: string): boolean {
  const [text, sum] = [key.slice(-36, -6), key.slice(-6)];
  return toBase62(Bun.hash.crc32(text), sum.length) === sum;
}

/** A header of JSON that names an algorithm. */
function isJwt(token: string): boolean {
  const text = Buffer.from(token.slice(0, token.indexOf(".")), "base64url").toString("utf8");
  if (!text.endsWith("}")) return false;
  try {
    const header: unknown = JSON.parse(text);
    return typeof header === "object" && header !== null && "alg" in header && typeof header.alg === "string";
  } catch {
    return false;
  }
}

const END = "(?![A-Za-z0-9_-])";
function key(kind: string, prefix: string, rest: string, fits: KeyForm["fits"] = isVaried): KeyForm {
  const begin = prefix.replaceAll(/[.]/g, String.raw`\.`);
  return { kind, prefix, pattern: new RegExp(`${begin}${rest}`, "y"), fits };
}

const GITLAB = ["glpat", "gldt", "glrt", "glptt", "glft", "glsoat", "glagent", "glcbt", "glimt"];
const AWS = ["AKIA", "ASIA", "ABIA", "ACCA"];

export const KEY_FORMS: readonly KeyForm[] = [
  ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].map((prefix) => key("github_token", prefix, `[A-Za-z0-9]{36}${END}`, hasCrc)),
  key("github_token", "github_pat_", `[A-Za-z0-9]{22}_[A-Za-z0-9]{59}${END}`),
  ...GITLAB.map((name) => key("gitlab_token", `${name}-`, String.raw`[\w-]{20,320}(?:\.\w{2}\.\w{9}|\.\w{9})?${END}`)),
  key("npm_token", "npm_", `[A-Za-z0-9]{36}${END}`, hasCrc),
  key("pypi_token", "pypi-AgE", String.raw`[\w-]{50,1000}`),
  key("rubygems_key", "rubygems_", `[a-f0-9]{48}${END}`),
  key("docker_token", "dckr_pat_", String.raw`[\w-]{27}${END}`),
  ...AWS.map((prefix) => key("aws_access_key", prefix, `[A-Z2-7]{16}${END}`)),
  key("google_api_key", "AIza", String.raw`[\w-]{35}${END}`),
  key("google_oauth_secret", "GOCSPX-", String.raw`[\w-]{28}${END}`),
  key("google_oauth_token", "ya29", String.raw`\.[\w-]{30,1000}`),
  key("slack_token", "xox", String.raw`[abeoprs]-(?=[A-Za-z-]*\d)[A-Za-z0-9-]{20,250}`),
  key("slack_token", "xapp-", String.raw`\d-[A-Z0-9]{8,20}-\d{8,20}-[a-z0-9]{32,80}${END}`),
  ...["sk_live_", "rk_live_", "sk_test_", "rk_test_"].map((prefix) => key("stripe_key", prefix, `[A-Za-z0-9]{16,120}${END}`)),
  key("stripe_webhook_secret", "whsec_", "[A-Za-z0-9+/]{32,64}={0,2}(?![A-Za-z0-9_/+-])"),
  key("anthropic_key", "sk-ant-", String.raw`(?:api|admin|oat|ort|sid)\d\d-[\w-]{80,120}${END}`),
  key("openai_key", "sk-", String.raw`(?:(?:proj|svcacct|admin|None)-)?[\w-]{20,90}T3BlbkFJ[\w-]{20,90}${END}`),
  key("openrouter_key", "sk-or-v1-", `[a-f0-9]{64}${END}`),
  key("groq_key", "gsk_", `[A-Za-z0-9]{52}${END}`),
  key("xai_key", "xai-", `[A-Za-z0-9]{80}${END}`),
  key("perplexity_key", "pplx-", `[A-Za-z0-9]{48}${END}`),
  key("huggingface_token", "hf_", `[A-Za-z]{34}${END}`),
  key("replicate_token", "r8_", `[A-Za-z0-9]{37}${END}`),
  key("sendgrid_key", "SG", String.raw`\.[\w-]{22}\.[\w-]{43}${END}`),
  key("telegram_token", "AA", String.raw`(?<=(?<![A-Za-z0-9_-])\d{8,10}:AA)[\w-]{33}${END}`),
  key("digitalocean_token", "dop_v1_", `[a-f0-9]{64}${END}`),
  ...["shpat_", "shpss_", "shpca_", "shppa_"].map((prefix) => key("shopify_token", prefix, `[a-fA-F0-9]{32}${END}`)),
  key("databricks_token", "dapi", String.raw`[a-f0-9]{32}(?:-\d)?${END}`),
  key("vault_token", "hvs", String.raw`\.[\w-]{90,300}${END}`),
  key("grafana_token", "glsa_", `[A-Za-z0-9]{32}_[a-fA-F0-9]{8}${END}`),
  key("postman_key", "PMAK-", `[a-f0-9]{24}-[a-f0-9]{34}${END}`),
  key("notion_token", "ntn_", `[A-Za-z0-9]{40,50}${END}`),
  key("linear_key", "lin_api_", `[A-Za-z0-9]{40}${END}`),
  key("atlassian_token", "ATATT3", String.raw`[\w=-]{180,200}(?![\w=-])`),
  key("sentry_token", "sntrys_eyJ", String.raw`[A-Za-z0-9+/=_-]{60,600}`),
  key("supabase_key", "sbp_", `[a-f0-9]{40}${END}`),
  key("age_key", "AGE-SECRET-KEY-1", `[AC-HJ-NP-Z02-9]{58}${END}`),
  key("cairn_key", "crn_", `[A-Za-z0-9]{24}${END}`),
  key("jwt", "eyJ", String.raw`[\w-]{10,4000}\.[\w-]{2,100000}\.[\w-]{0,2000}${END}`, isJwt),
];

/** Every kind that can be found. */
export const SECRET_KINDS: readonly string[] = [
  ...new Set(KEY_FORMS.map(({ kind }) => kind)),
  "aws_secret_key",
  "slack_webhook",
  "url_password",
  "private_key",
  "card_number",
  "email",
  "phone",
];
