/**
 * Which connections a proof is good for, as the program and the server each see them. That of a relay in a container cannot be made here.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { isProof, proofOf } from "../../../src/keys/local-proof.ts";

const NONCE = "n".repeat(32);
type Seen = readonly [client: string, server: string];

function ends([client, server]: Seen) {
  const [clientAddress = "", clientPort] = client.split(" ");
  const [address = "", port] = server.split(" ");
  return { client: { address: clientAddress, port: Number(clientPort) }, server: { address, port: Number(port) } };
}

const isTaken = (byProgram: Seen, byServer: Seen) => isProof(proofOf("secret", NONCE, ends(byServer)), "secret", NONCE, ends(byProgram));

const SAME: Record<string, { program: Seen; server: Seen }> = {
  "one address": { program: ["127.0.0.1 40000", "127.0.0.1 8700"], server: ["127.0.0.1 40000", "127.0.0.1 8700"] },
  "every address of IPv4": { program: ["127.0.0.1 40000", "127.0.0.1 8700"], server: ["127.0.0.1 40000", "0.0.0.0 8700"] },
  "every address": { program: ["127.0.0.1 40000", "127.0.0.2 8700"], server: ["::ffff:127.0.0.1 40000", ":: 8700"] },
  "every address, reached by IPv6": { program: ["::1 40000", "::1 8700"], server: ["::1 40000", ":: 8700"] },
  "a mapped address": { program: ["::ffff:127.0.0.1 40000", "::ffff:127.0.0.1 8700"], server: ["127.0.0.1 40000", "127.0.0.1 8700"] },
  "an address of a network": { program: ["192.0.2.1 40000", "192.0.2.1 8700"], server: ["192.0.2.1 40000", "192.0.2.1 8700"] },
  "an address of one link": { program: ["fe80::1%eth0 40000", "fe80::1%eth0 8700"], server: ["fe80::1 40000", "fe80::1 8700"] },
};

for (const [name, { program, server }] of Object.entries(SAME)) {
  test(`a server that listens on ${name} proves itself`, () => {
    expect(isTaken(program, server)).toBe(true);
  });
}

const OTHER: Record<string, { program: Seen; server: Seen }> = {
  "another port of the program": { program: ["127.0.0.1 40000", "127.0.0.1 8700"], server: ["127.0.0.1 40001", "127.0.0.1 8700"] },
  "another port of the server": { program: ["127.0.0.1 40000", "127.0.0.1 8701"], server: ["127.0.0.1 40000", "127.0.0.1 8700"] },
  "another port of one on every address": { program: ["127.0.0.1 40000", "127.0.0.1 8701"], server: ["127.0.0.1 40000", "0.0.0.0 8700"] },
  "another address of the server": { program: ["127.0.0.1 40000", "127.0.0.2 8700"], server: ["127.0.0.1 40000", "127.0.0.1 8700"] },
  "IPv6 in the place of IPv4": { program: ["::1 40000", "::1 8700"], server: ["127.0.0.1 40000", "0.0.0.0 8700"] },
  "a container with every address of its own": {
    program: ["172.17.0.1 40000", "172.17.0.1 8700"],
    server: ["172.17.0.1 40000", "0.0.0.0 8700"],
  },
};

for (const [name, { program, server }] of Object.entries(OTHER)) {
  test(`a proof that was passed on is none: ${name}`, () => {
    expect(isTaken(program, server)).toBe(false);
  });
}

test("a proof of a socket is none of a port, nor one of a port one of a socket", () => {
  const [client, server] = ["127.0.0.1 40000", "127.0.0.1 8700"];
  const [ofSocket, ofPort] = [proofOf("secret", NONCE, undefined), proofOf("secret", NONCE, ends([client, server]))];
  expect([isProof(ofSocket, "secret", NONCE, undefined), isProof(ofSocket, "secret", NONCE, ends([client, server]))]).toEqual([
    true,
    false,
  ]);
  expect(isProof(ofPort, "secret", NONCE, undefined)).toBe(false);
});
