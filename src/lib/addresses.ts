/**
 * Kinds of IP addresses. Pure.
 *
 * IPv6 embeds IPv4 addresses in several ways (mapped, NAT64, 6to4); each counts as the IPv4 address. In a network's own NAT64
 * (64:ff9b:1::/48) there are four places for it, and only that network knows which: such an address is private, unless one of
 * the four is a metadata service. An address that is not known to be public is not.
 *
 * @module
 */
import { BlockList, isIPv4, isIPv6 } from "node:net";

/**
 * - `metadata`: hands out the machine's credentials in a cloud; never called
 * - `reserved`: leads nowhere, or to many hosts; never a receiver of webhooks
 */
export type AddressKind = "public" | "loopback" | "private" | "metadata" | "reserved";

/** The first range that holds an address says its kind; an address in none is reserved. */
const RANGES: readonly (readonly [AddressKind, string])[] = [
  // Of most clouds, Amazon's, Tencent's, Scaleway's, Azure's, Alibaba's and Oracle's; IPv6: Amazon's, Google's and Scaleway's.
  ["metadata", "169.254.169.254/32 169.254.170.2/32 169.254.170.23/32 169.254.0.23/32 169.254.42.42/32 168.63.129.16/32"],
  ["metadata", "100.100.100.200/32 192.0.0.192/32 fd00:ec2::254/128 fd00:ec2::23/128 fd20:ce::254/128 fd00:42::42/128"],
  ["loopback", "127.0.0.0/8 ::1/128"],
  ["private", "10.0.0.0/8 100.64.0.0/10 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.168.0.0/16 198.18.0.0/15"],
  ["private", "64:ff9b:1::/48 fc00::/7 fe80::/9"],
  ["reserved", "0.0.0.0/8 192.0.2.0/24 192.88.99.0/24 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"],
  ["reserved", "2001::/24 2001:db8::/32 3fff::/20"],
  ["public", "0.0.0.0/0 2000::/3"],
];

const LISTS = RANGES.map(([kind, ranges]) => {
  const list = new BlockList();
  for (const range of ranges.split(" ")) {
    const [network = "", bits] = range.split("/");
    list.addSubnet(network, Number(bits), isIPv4(network) ? "ipv4" : "ipv6");
  }
  return { kind, list };
});

/** The IPv4 address in the hex digits of an IPv6 one: mapped, compatible (but for `::` and `::1`), translated, NAT64, 6to4. */
const EMBEDDED = /^(?:0{20}(?:ffff|0{4})(?!0{7}[01]$)|0{16}ffff0{4}|0064ff9b0{16})(.{8})$|^2002(.{8})/;

/**
 * The IPv4 address in a network's own NAT64, after a prefix of 48, 56, 64 and 96 bits.
 *
 * @see https://www.rfc-editor.org/rfc/rfc6052#section-2.2
 */
const LOCAL_NAT64 = [/^0064ff9b0001(.{4})..(.{4})/, /^0064ff9b0001..(..)..(.{6})/, /^0064ff9b0001.{6}(.{8})/, /^0064ff9b0001.{12}(.{8})/];

/** Text that is no address counts as `reserved`. */
export function addressKind(address: string): AddressKind {
  if (isIPv4(address)) return kindOf(address, "ipv4");
  const [bare = ""] = address.split("%");
  if (!isIPv6(bare)) return "reserved";
  const digits = digitsOf(bare);
  const embedded = embeddedIn(digits, EMBEDDED);
  if (embedded !== undefined) return kindOf(embedded, "ipv4");
  const local = LOCAL_NAT64.flatMap((form) => embeddedIn(digits, form) ?? []);
  return local.some((one) => kindOf(one, "ipv4") === "metadata") ? "metadata" : kindOf(bare, "ipv6");
}

function kindOf(address: string, family: "ipv4" | "ipv6"): AddressKind {
  return LISTS.find(({ list }) => list.check(address, family))?.kind ?? "reserved";
}

/** The 32 hex digits of an IPv6 address. */
function digitsOf(address: string): string {
  const hex = address.toLowerCase().replace(/\d+\.\d+\.\d+\.\d+$/, (dotted) => {
    const [a = 0, b = 0, c = 0, d = 0] = dotted.split(".").map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [before = [], after = []] = hex.split("::").map((half) => half.split(":"));
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "");
  return [...before, ...zeros, ...after].map((group) => group.padStart(4, "0")).join("");
}

function embeddedIn(digits: string, form: RegExp): string | undefined {
  const found = form.exec(digits)?.slice(1).join("");
  return found === undefined
    ? undefined
    : Array.from({ length: 4 }, (_, i) => Number.parseInt(found.slice(2 * i, 2 * i + 2), 16)).join(".");
}

/** Checks whether only this machine reaches a listener of this name or address; one on both IPv4 and IPv6 sees `::ffff:127.0.0.1`. */
export function isLoopback(address: string): boolean {
  const name = address.toLowerCase().replace(/^::ffff:(?=[\d.]+$)/, "");
  return name === "localhost" || name === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}
