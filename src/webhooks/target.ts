/**
 * URLs that a webhook may have: none that leads to an address which only this machine can reach.
 *
 * A URL is checked when it is set and before every attempt: its form, and every address that its name stands for. Pure;
 * `lib/outbound.ts` resolves names.
 *
 * @module
 */
import { addressKind, type AddressKind } from "../lib/addresses.ts";
import { hostOf } from "../lib/outbound.ts";

export interface TargetRules {
  /** Allows this machine: on for a server that only this machine can reach. */
  readonly loopback: boolean;
  /** Allows private networks, and this machine. */
  readonly private: boolean;
}

export const URL_LENGTH_MAX = 2048;

export type CheckedUrl = { url: URL } | { problem: string };

/** Checks the form alone. `http://2130706433/` and `http://0x7f.1/` come out as the addresses that they are. */
export function checkUrl(text: string): CheckedUrl {
  const url = text.length <= URL_LENGTH_MAX && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return { problem: `It must be a complete URL of at most ${URL_LENGTH_MAX} characters.` };
  if (url.protocol !== "http:" && url.protocol !== "https:") return { problem: "It must begin with http:// or https://." };
  if (url.username !== "" || url.password !== "") return { problem: "It must not contain a user name or a password." };
  return { url };
}

/** Checks whether receivers may have an address of this kind. */
export function isAllowed(kind: AddressKind, rules: TargetRules): boolean {
  return kind === "public" || (kind === "private" && rules.private) || (kind === "loopback" && (rules.loopback || rules.private));
}

/** Reason why a URL that leads to this address is refused. */
export function refusalOf(url: URL, address: string): string {
  const host = hostOf(url);
  const kind = addressKind(address);
  const subject = host === address ? host : `${host} (${address})`;
  if (kind === "metadata" || kind === "reserved") return `${subject} is not an address that can be a receiver's.`;
  return `${subject} is ${kind === "loopback" ? "this machine" : "in a private network"}; the operator can allow that (webhooks.allow_private in the settings, or CAIRN_WEBHOOK_ALLOW_PRIVATE).`;
}
