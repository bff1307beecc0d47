/**
 * Finds secrets in a text, in one pass over its characters. Pure.
 *
 * Words (letters, digits, `_`, `-`) are cut by hand, and only one that begins as a key does is compared with a pattern: of most texts
 * none is. So a text takes about as long whether it was written to be slow or not.
 *
 * @module
 */
import { isVaried, KEY_FORMS, KEY_WORD_LENGTH_MIN, type KeyForm, type SecretGroup } from "./kinds.ts";
import { cardEnd, phoneEnd } from "./numbers.ts";

/** A place in a text, in UTF-16 units. */
export interface FoundSecret {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
}

const OTHER = 0;
const LETTER = 1;
const DIGIT = 2;
/** Class of each ASCII character; of others it is `OTHER`. */
const CLASSES = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[0-9]/.test(character)) return DIGIT;
  return /[A-Za-z_-]/.test(character) ? LETTER : OTHER;
});

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const COLON = 0x3a;
const AT = 0x40;
const PLUS = 0x2b;
const PARENTHESIS = 0x28;
const HYPHEN = 0x2d;
const POINT = 0x2e;

/** Lengths of words: the first group of a card's number, all of one, a telephone number with hyphens. */
const CARD_GROUP_LENGTH = 4;
const CARD_LENGTH_MIN = 14;
const PHONE_LENGTH_MIN = 12;

/** Forms by the first character of their prefix. */
const FORMS: ReadonlyMap<number, readonly KeyForm[]> = Map.groupBy(KEY_FORMS, ({ prefix }) => prefix.charCodeAt(0));
/** Words that end in front of a point: the rest of such a key follows it. */
const SHORT_WORDS: ReadonlySet<string> = new Set(
  KEY_FORMS.map(({ prefix }) => prefix).filter((prefix) => /^(?:SG|ya29|hvs)$/.test(prefix)),
);

const SHORT_WORD_LENGTH_MAX = 4;

/** The shortest text that has a secret: an address of e-mail. */
const TEXT_LENGTH_MIN = 6;

export function findSecrets(text: string, groups: ReadonlySet<SecretGroup>): FoundSecret[] {
  if (text.length < TEXT_LENGTH_MIN) return [];
  const found: FoundSecret[] = [];
  const hasKeys = groups.has("keys");
  const hasCards = groups.has("cards");
  const hasEmail = groups.has("email");
  const hasPhone = groups.has("phone");
  const add = (kind: string, start: number, end: number | undefined) => {
    if (end !== undefined) found.push({ kind, start, end });
  };
  const { length } = text;
  for (let at = 0; at < length;) {
    const code = text.charCodeAt(at);
    const kind = code < 128 ? CLASSES[code]! : OTHER;
    if (kind === OTHER) {
      if (hasKeys && code === COLON) addOfUrl(text, at, add);
      else if (hasEmail && code === AT) addEmail(text, at, add);
      else if (hasPhone && (code === PLUS || code === PARENTHESIS) && isDigit(text, at + 1)) add("phone", at, phoneEnd(text, at));
      at++;
      continue;
    }
    let end = at + 1;
    let digits = kind === DIGIT ? 1 : 0;
    for (; end < length; end++) {
      const next = text.charCodeAt(end);
      const of = next < 128 ? CLASSES[next]! : OTHER;
      if (of === OTHER) break;
      if (of === DIGIT) digits++;
    }
    if (hasKeys) addKeys(text, at, end, digits === 0, add);
    if (kind === DIGIT) {
      if (hasCards && (end - at === CARD_GROUP_LENGTH || end - at >= CARD_LENGTH_MIN)) add("card_number", at, cardEnd(text, at));
      if (hasPhone && (end - at >= PHONE_LENGTH_MIN || text.charCodeAt(end) === POINT)) add("phone", at, phoneEnd(text, at));
    }
    at = end;
  }
  if (hasKeys) addPrivateKeys(text, add);
  return withoutOverlaps(found);
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code < 128 && CLASSES[code] === DIGIT;
}

type Add = (kind: string, start: number, end: number | undefined) => void;

/** Looks at a word, and behind an escape that it begins with: `\nghp_…` in JSON within a text, `%3Dghp_…` in a URL. */
function addKeys(text: string, start: number, end: number, mayBeName: boolean, add: Add): void {
  let first = start;
  while (first < end && text.charCodeAt(first) === HYPHEN) first++;
  const length = end - first;
  if (length < KEY_WORD_LENGTH_MIN && !(length <= SHORT_WORD_LENGTH_MAX && SHORT_WORDS.has(text.slice(first, end)))) return;
  if (mayBeName && length <= NAME_LENGTH_MAX) addNamed(text, first, end, add);
  addKey(text, first, add);
  const before = start === 0 ? 0 : text.charCodeAt(start - 1);
  if (before === BACKSLASH) addKey(text, start + 1, add);
  else if (before === PERCENT) addKey(text, start + 2, add);
}

function addKey(text: string, start: number, add: Add): void {
  for (const { kind, prefix, pattern, fits } of FORMS.get(text.charCodeAt(start)) ?? []) {
    if (!text.startsWith(prefix, start)) continue;
    pattern.lastIndex = start;
    const [key] = pattern.exec(text) ?? [];
    if (key !== undefined && fits(key)) return add(kind, start, start + key.length);
  }
}

const NAME_LENGTH_MAX = 32;
/** Names under which a key of 40 characters is a secret one of AWS. */
const NAMES = /^(?:[a-z]+_)?(?:aws_?)?secret_?(?:access_?)?key$/i;
const NAMED = /["'\\]{0,2}\s{0,4}(?:=>|[:=])\s{0,4}["'\\]{0,2}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])/y;

/** A secret key of AWS has no form of its own, but a name. */
function addNamed(text: string, start: number, end: number, add: Add): void {
  if (!NAMES.test(text.slice(start, end))) return;
  NAMED.lastIndex = end;
  const [whole, key] = NAMED.exec(text) ?? [];
  if (whole === undefined || key === undefined || !isVaried(key)) return;
  add("aws_secret_key", end + whole.length - key.length, end + whole.length);
}

/** Checks the value of a member by the name of that, as `findSecrets` does for both in one text. */
export function isNamedSecret(name: string, value: string): boolean {
  return value.length === 40 && name.length <= NAME_LENGTH_MAX && NAMES.test(name) && /^[A-Za-z0-9/+]+$/.test(value) && isVaried(value);
}

const SLACK = "hooks.slack.com/services/";
const SLACK_PATH = /T[A-Z0-9]{6,14}\/B[A-Z0-9]{6,14}\/[A-Za-z0-9]{16,40}/y;
const LOGIN = /[^\s:@/?#"'<>[\]\\]{0,128}:([^\s@/"'<>\\]{1,256})@/y;
/** Passwords of examples and templates. */
const NO_PASSWORD = /^(?:pass(?:word|wd)?|pwd|secret|token|\*+|x+|[<$%{[].*)$/i;

function addOfUrl(text: string, colon: number, add: Add): void {
  const start = colon + 3;
  if (!text.startsWith("//", colon + 1)) return;
  if (text.startsWith(SLACK, start)) {
    SLACK_PATH.lastIndex = start + SLACK.length;
    const [path] = SLACK_PATH.exec(text) ?? [];
    if (path !== undefined) add("slack_webhook", start + SLACK.length, start + SLACK.length + path.length);
    return;
  }
  LOGIN.lastIndex = start;
  const [whole, password] = LOGIN.exec(text) ?? [];
  if (whole === undefined || password === undefined || NO_PASSWORD.test(password)) return;
  const end = start + whole.length - 1;
  add("url_password", end - password.length, end);
}

const LOCAL_PART_LENGTH_MAX = 64;
const LOCAL_PART = /[A-Za-z0-9_](?:[\w.+%'-]*[\w+%'-])?$/;
const DOMAIN = /(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])/y;

/** @param at - the place of an `@` */
function addEmail(text: string, at: number, add: Add): void {
  DOMAIN.lastIndex = at + 1;
  const [domain] = DOMAIN.exec(text) ?? [];
  if (domain === undefined) return;
  const before = text.slice(Math.max(0, at - LOCAL_PART_LENGTH_MAX), at);
  let length = before.length;
  while (length > 0 && /[\w.+%'-]/.test(before[length - 1]!)) length--;
  const [local] = LOCAL_PART.exec(before.slice(length)) ?? [];
  if (local !== undefined) add("email", at - local.length, at + 1 + domain.length);
}

const BEGIN = "-----BEGIN ";
const PRIVATE = /-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----/y;
const END_MARK = /-----END [A-Z0-9 ]{0,40}-----/y;
const DATA = /[A-Za-z0-9+/]{40}/;
const UNENDED = /[A-Za-z0-9+/=\s\\]*/y;

/** Blocks of PEM; one that is cut off goes as far as its data. A title alone is none. */
function addPrivateKeys(text: string, add: Add): void {
  for (let start = text.indexOf(BEGIN); start !== -1; start = text.indexOf(BEGIN, start + BEGIN.length)) {
    PRIVATE.lastIndex = start;
    const [title] = PRIVATE.exec(text) ?? [];
    if (title === undefined) continue;
    const data = start + title.length;
    const mark = text.indexOf("-----", data);
    END_MARK.lastIndex = mark === -1 ? text.length : mark;
    const [last] = END_MARK.exec(text) ?? [];
    UNENDED.lastIndex = data;
    const end = last === undefined ? data + (UNENDED.exec(text)?.[0].length ?? 0) : mark + last.length;
    if (DATA.test(text.slice(data, end))) add("private_key", start, end);
  }
}

/** In the order of the text; of those that overlap the first. A password in front of a host looks like an address of e-mail. */
function withoutOverlaps(found: FoundSecret[]): FoundSecret[] {
  if (found.length < 2) return found;
  let end = 0;
  return found
    .toSorted((a, b) => a.start - b.start || Number(a.kind === "email") - Number(b.kind === "email"))
    .filter((one) => {
      if (one.start < end) return false;
      ({ end } = one);
      return true;
    });
}
