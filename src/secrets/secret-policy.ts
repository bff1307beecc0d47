/**
 * The settings `secrets` and `secret_kinds`: what becomes of secrets in what clients send, and how many there were.
 *
 * A secret is counted by its kind, and named nowhere else: no log, trace or error has it.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { SECRET_GROUPS, SECRET_KINDS, type SecretGroup } from "./kinds.ts";
import { screen, screenedText, type Redaction, type ScreenedMembers } from "./screen.ts";

export const SECRET_ACTIONS = ["off", "tag", "redact", "block"] as const;
type SecretAction = (typeof SECRET_ACTIONS)[number];

/** Syntax of `parseSecretKinds`, in words. */
export const SECRET_KINDS_FORM = `one or more of ${SECRET_GROUPS.join(", ")}, separated by commas`;

const isGroup = (name: string): name is SecretGroup => (SECRET_GROUPS as readonly string[]).includes(name);

/** The groups of kinds that are looked for; undefined for any other text. */
export function parseSecretKinds(text: string): ReadonlySet<SecretGroup> | undefined {
  const names = text.split(",").map((name) => name.trim());
  return names.every(isGroup) ? new Set(names) : undefined;
}

interface SecretSettings {
  readonly secrets: SecretAction;
  readonly secret_kinds: string;
}

type Json = Readonly<Record<string, unknown>>;

/** A request once its secrets are dealt with. */
export interface Admitted {
  readonly value: Json;
  /** Secrets that were taken out, for the answer. */
  readonly redacted: readonly Redaction[];
  /** Kinds that were left in, for the marks of records. */
  readonly marked: readonly string[];
}

const NOTHING: readonly never[] = [];

export class SecretPolicy {
  /** Secrets found since the start, by what became of them and by kind. */
  readonly counts = { tag: noneFound(), redact: noneFound(), block: noneFound() };
  readonly #settings: () => SecretSettings;
  #kinds = "";
  #groups: ReadonlySet<SecretGroup> = new Set();

  constructor(settings: () => SecretSettings) {
    this.#settings = settings;
  }

  /**
   * Deals with the secrets in a request as the settings say.
   *
   * @throws {ApiError} `invalid_request` naming the first place, where they are to be refused
   */
  admit(value: Json, members: ScreenedMembers): Admitted {
    const { secrets: action, secret_kinds: kinds } = this.#settings();
    if (action === "off") return { value, redacted: NOTHING, marked: NOTHING };
    const { value: screened, found } = screen(value, members, this.#groupsOf(kinds));
    for (const { kind, count } of found) this.counts[action][kind] = (this.counts[action][kind] ?? 0) + count;
    const [first] = found;
    if (action === "block" && first !== undefined) throw blocked(first);
    if (action === "redact") return { value: screened, redacted: found, marked: NOTHING };
    return { value, redacted: NOTHING, marked: [...new Set(found.map(({ kind }) => kind))] };
  }

  /** A text that is kept because of a read, which is never refused: without its secrets, unless these are kept otherwise too. */
  logged<Value>(value: Value): Value {
    const { secrets: action, secret_kinds: kinds } = this.#settings();
    return action === "off" || action === "tag" ? value : screenedText(value, this.#groupsOf(kinds));
  }

  #groupsOf(kinds: string): ReadonlySet<SecretGroup> {
    if (kinds !== this.#kinds) {
      this.#kinds = kinds;
      this.#groups = parseSecretKinds(kinds) ?? new Set();
    }
    return this.#groups;
  }
}

function noneFound(): Record<string, number> {
  return Object.fromEntries(SECRET_KINDS.map((kind) => [kind, 0]));
}

function blocked({ path, kind }: Redaction): ApiError {
  const message = `${path} has a secret (${kind}), which this store does not take (setting secrets). Nothing was changed.`;
  return new ApiError("invalid_request", message, { param: path });
}
