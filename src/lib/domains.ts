/**
 * Domains of a server: the names for which it gets a certificate. Pure.
 *
 * @module
 */
import { domainToASCII } from "node:url";

export const DOMAINS_FORM = "host names separated by commas, such as memory.example.org: no addresses, ports or wildcards";

/** Let's Encrypt takes as many for one certificate. */
const DOMAINS_MAX = 100;
const NAME = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*(?=[^.]*[a-z])[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** @returns the names as certificates have them, each once; undefined for a text of another form */
export function parseDomains(text: string): string[] | undefined {
  const parts = text.split(",").map((part) => part.trim());
  const names = new Set(parts.map((part) => (/[/\\:?#@]/.test(part) ? "" : domainToASCII(part))));
  return names.size <= DOMAINS_MAX && Array.from(names).every((name) => NAME.test(name)) ? Array.from(names) : undefined;
}
