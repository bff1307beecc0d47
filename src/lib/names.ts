/**
 * What names stand for on the network.
 *
 * @module
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";

/** The addresses of a name. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export const systemResolve: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

/** Where a URL leads: to the address in it, or to what its name stands for now. Rejects as `resolve` does. */
export async function addressesOf(url: URL, resolve: Resolve): Promise<readonly string[]> {
  const host = hostOf(url);
  return isIP(host) === 0 ? resolve(host) : [host];
}

/** The name or address in a URL, without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}
