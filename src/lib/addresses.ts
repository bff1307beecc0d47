/**
 * Kinds of IP addresses. Pure.
 *
 * IPv6 embeds IPv4 addresses in several ways (mapped, NAT64, 6to4); each counts as the IPv4 address. In a network's own NAT64
 * (64:ff9b:1::/48) there are four places for it, and only that network knows which: such an address is private, unless one of
 * the four is a metadata service. An address that is not known to be public is not.
 *
 * @module
 */
import { isIPv4, isIPv6 } from "node:net";

/**
 * - `metadata`: hands out the machine's credentials in a cloud; never called
 * - `reserved`: leads nowhere, or to many hosts; never a receiver of webhooks
 */
export type AddressKind = "public" | "loopback" | "private" | "metadata" | "reserved";

/** Addresses of cloud metadata services: the one of most clouds, Amazon's, Tencent's, Scaleway's, Azure's, Alibaba's, Oracle's. */
const METADATA = new Set([
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "169.254.0.23",
  "169.254.42.42",
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
]);
/** Amazon's, Google's, Scaleway's. */
const METADATA_IPV6 = new Set(["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42"].map(inFull));

const IPV4: readonly [network: string, bits: number, kind: AddressKind][] = [
  ["0.0.0.0", 8, "reserved"],
  ["10.0.0.0", 8, "private"],
  ["100.64.0.0", 10, "private"],
  ["127.0.0.0", 8, "loopback"],
  ["169.254.0.0", 16, "private"],
  ["172.16.0.0", 12, "private"],
  ["192.0.0.0", 24, "private"],
  ["192.0.2.0", 24, "reserved"],
  ["192.88.99.0", 24, "reserved"],
  ["192.168.0.0", 16, "private"],
  ["198.18.0.0", 15, "private"],
  ["198.51.100.0", 24, "reserved"],
  ["203.0.113.0", 24, "reserved"],
  ["224.0.0.0", 4, "reserved"],
  ["240.0.0.0", 4, "reserved"],
];

/** Prefixes of the address written out in full: 32 hex digits in groups of four. */
const IPV6: readonly [prefix: RegExp, kind: AddressKind][] = [
  [/^0000:0000:0000:0000:0000:0000:0000:0001$/, "loopback"],
  [/^0064:ff9b:0001:/, "private"],
  [/^f[cd]/, "private"],
  [/^fe[89a-f]/, "private"],
  [/^2001:0db8:/, "reserved"],
  [/^2001:00/, "reserved"],
  [/^3fff:0/, "reserved"],
  [/^[23]/, "public"],
];

/** The first of the two groups that hold an embedded IPv4 address. */
const EMBEDDED: readonly [prefix: RegExp, group: number][] = [
  [/^0000:0000:0000:0000:0000:(?:ffff|0000):(?!0000:000[01]$)/, 6],
  [/^0000:0000:0000:0000:ffff:0000:/, 6],
  [/^0064:ff9b:0000:0000:0000:0000:/, 6],
  [/^2002:/, 1],
];

/**
 * The bytes that hold it in a network's own NAT64, after a prefix of 48, 56, 64 and 96 bits.
 *
 * @see https://www.rfc-editor.org/rfc/rfc6052#section-2.2
 */
const LOCAL_NAT64 = /^0064:ff9b:0001:/;
const LOCAL_NAT64_BYTES = [
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
  [12, 13, 14, 15],
] as const;

/** Text that is no address counts as `reserved`. */
export function addressKind(address: string): AddressKind {
  if (isIPv4(address)) return kindOfIPv4(address);
  const [bare = ""] = address.split("%");
  if (!isIPv6(bare)) return "reserved";
  const full = inFull(bare);
  for (const [prefix, group] of EMBEDDED) {
    if (prefix.test(full)) return kindOfIPv4(bytesOf(full, [2 * group, 2 * group + 1, 2 * group + 2, 2 * group + 3]));
  }
  if (METADATA_IPV6.has(full)) return "metadata";
  if (LOCAL_NAT64.test(full) && LOCAL_NAT64_BYTES.some((places) => METADATA.has(bytesOf(full, places)))) return "metadata";
  return IPV6.find(([prefix]) => prefix.test(full))?.[1] ?? "reserved";
}

function kindOfIPv4(address: string): AddressKind {
  if (METADATA.has(address)) return "metadata";
  const number = toNumber(address);
  const found = IPV4.find(([network, bits]) => number >>> (32 - bits) === toNumber(network) >>> (32 - bits));
  return found?.[2] ?? "public";
}

function toNumber(address: string): number {
  return address.split(".").reduce((number, part) => ((number << 8) | Number(part)) >>> 0, 0);
}

/** `::1` is `0000:0000:0000:0000:0000:0000:0000:0001`. */
function inFull(address: string): string {
  const hex = address.toLowerCase().replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...parts: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts.slice(0, 4).map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [head = "", tail] = hex.split("::");
  const groups = (text: string | undefined) => (text === undefined || text === "" ? [] : text.split(":"));
  const before = groups(head);
  const after = groups(tail);
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return [...before, ...(tail === undefined ? [] : zeros), ...after].map((group) => group.padStart(4, "0")).join(":");
}

/** Four bytes of the 16 as an IPv4 address. */
function bytesOf(full: string, places: readonly number[]): string {
  const hex = full.replaceAll(":", "");
  return places.map((place) => Number.parseInt(hex.slice(2 * place, 2 * place + 2), 16)).join(".");
}

/** Whether only this machine reaches a listener of this name or address; one on both IPv4 and IPv6 sees `::ffff:127.0.0.1`. */
export function isLoopback(address: string): boolean {
  const name = address.toLowerCase().replace(/^::ffff:(?=[\d.]+$)/, "");
  return name === "localhost" || name === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}
