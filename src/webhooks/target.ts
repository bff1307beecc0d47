/**
 * Where a webhook may lead: not to a place that only this machine can reach.
 *
 * A URL is checked when it is set and before every attempt: its form, and every address that its name stands for. An
 * attempt dials one of the addresses that were checked here and never looks the name up again, so that a name whose
 * answer changes in between gains nothing.
 *
 * @module
 */
import { isIP } from "node:net";
import { placeOf, type Place } from "../lib/addresses.ts";
import { addressesOf, hostOf, type Resolve } from "../lib/names.ts";

export interface TargetRules {
  /** Whether targets on this machine are allowed: they are on a server that only this machine can reach. */
  readonly loopback: boolean;
  /** Whether targets in private networks, and on this machine, are allowed. */
  readonly private: boolean;
}

export const URL_LENGTH_MAX = 2048;

export type CheckedUrl = { url: URL } | { problem: string };

/** The form alone. `http://2130706433/` and `http://0x7f.1/` come out as the addresses that they are. */
export function checkUrl(text: string): CheckedUrl {
  const url = text.length <= URL_LENGTH_MAX && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return { problem: `It must be a complete URL of at most ${URL_LENGTH_MAX} characters.` };
  if (url.protocol !== "http:" && url.protocol !== "https:") return { problem: "It must begin with http:// or https://." };
  if (url.username !== "" || url.password !== "") return { problem: "It must not contain a user name or a password." };
  return { url };
}

/**
 * - `dial`: every address is allowed; one of them is to be dialled
 * - `forbidden`: at least one is not
 * - `unknown`: the name has no address now
 */
export type Target =
  | { kind: "dial"; addresses: readonly [string, ...string[]] }
  | { kind: "forbidden"; reason: string }
  | { kind: "unknown"; reason: string };

/** Looks the name up, once, and checks what it stands for. */
export async function resolveTarget(url: URL, rules: TargetRules, resolve: Resolve): Promise<Target> {
  const host = hostOf(url);
  let addresses: readonly string[];
  try {
    addresses = await addressesOf(url, resolve);
  } catch {
    return { kind: "unknown", reason: `The name ${host} was not found.` };
  }
  const refused = addresses.find((address) => !isAllowed(placeOf(address), rules));
  if (refused !== undefined) return { kind: "forbidden", reason: refusal(host, refused) };
  // IPv4 first: a receiver on both is reached either way, and one on IPv4 alone often has an IPv6 name all the same.
  const [first, ...others] = addresses.toSorted((a, b) => isIP(a) - isIP(b));
  return first === undefined
    ? { kind: "unknown", reason: `The name ${host} has no address.` }
    : { kind: "dial", addresses: [first, ...others] };
}

function isAllowed(place: Place, rules: TargetRules): boolean {
  switch (place) {
    case "public":
      return true;
    case "loopback":
      return rules.loopback || rules.private;
    case "private":
      return rules.private;
    default:
      return false;
  }
}

function refusal(host: string, address: string): string {
  const place = placeOf(address);
  const subject = host === address ? host : `${host} (${address})`;
  if (place === "metadata" || place === "reserved") return `${subject} is not an address that can be a receiver's.`;
  return `${subject} is ${place === "loopback" ? "this machine" : "in a private network"}; the operator can allow that (webhooks.allow_private in the settings, or CAIRN_WEBHOOK_ALLOW_PRIVATE).`;
}
