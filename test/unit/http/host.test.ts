import { expect, test } from "bun:test";
import { hostCheck } from "../../../src/http/host.ts";

const cases: { listening: string; configured?: string[]; host: string | null; answers: boolean }[] = [
  { listening: "127.0.0.1", host: "127.0.0.1", answers: true },
  { listening: "127.0.0.1", host: "127.0.0.1:8700", answers: true },
  { listening: "127.0.0.1", host: "localhost:8700", answers: true },
  { listening: "127.0.0.1", host: "LocalHost", answers: true },
  { listening: "127.0.0.1", host: "[::1]:8700", answers: true },
  { listening: "::1", host: "[::1]", answers: true },
  { listening: "localhost", host: "127.0.0.1", answers: true },
  { listening: "127.0.0.5", host: "127.0.0.5:1", answers: true },
  { listening: "LOCALHOST", host: "localhost:8700", answers: true },
  { listening: "::ffff:127.0.0.1", host: "[::ffff:127.0.0.1]:8700", answers: true },
  // HTTP/1.0 sends none, and no browser speaks HTTP/1.0.
  { listening: "127.0.0.1", host: null, answers: true },

  { listening: "127.0.0.1", host: "", answers: false },
  { listening: "127.0.0.1", host: "evil.example", answers: false },
  { listening: "127.0.0.1", host: "evil.example:8700", answers: false },
  { listening: "127.0.0.1", host: "localhost.evil.example", answers: false },
  { listening: "127.0.0.1", host: "127.0.0.1.evil.example", answers: false },
  { listening: "127.0.0.1", host: "evil.example/localhost", answers: false },
  { listening: "127.0.0.1", host: "localhost@evil.example", answers: false },
  { listening: "127.0.0.1", host: "localhost, evil.example", answers: false },
  { listening: "127.0.0.1", host: "localhost:8700:8700", answers: false },
  { listening: "127.0.0.1", host: "localhost:", answers: false },
  { listening: "127.0.0.1", host: "0.0.0.0:8700", answers: false },
  { listening: "127.0.0.1", host: "192.168.0.10", answers: false },
  { listening: "::1", host: "evil.example", answers: false },
  { listening: "LOCALHOST", host: "evil.example", answers: false },
  { listening: "::ffff:127.0.0.1", host: "evil.example", answers: false },

  { listening: "127.0.0.1", configured: ["cairn.example"], host: "cairn.example", answers: true },
  { listening: "127.0.0.1", configured: ["cairn.example"], host: "CAIRN.example:443", answers: true },
  { listening: "127.0.0.1", configured: ["Cairn.Example"], host: "cairn.example", answers: true },
  { listening: "127.0.0.1", configured: ["cairn.example"], host: "localhost", answers: true },
  { listening: "127.0.0.1", configured: ["cairn.example"], host: "other.example", answers: false },
  { listening: "127.0.0.1", configured: ["cairn.example"], host: "sub.cairn.example", answers: false },
  { listening: "127.0.0.1", configured: ["cairn.example:8443"], host: "cairn.example:8443", answers: true },
  { listening: "127.0.0.1", configured: ["cairn.example:8443"], host: "cairn.example:80", answers: false },

  // Who listens beyond loopback is reached by names it cannot know.
  { listening: "0.0.0.0", host: "evil.example", answers: true },
  { listening: "192.168.0.10", host: "cairn.example", answers: true },

  // Unless its operator says which.
  { listening: "0.0.0.0", configured: ["cairn.example"], host: "cairn.example:8700", answers: true },
  { listening: "0.0.0.0", configured: ["cairn.example"], host: "127.0.0.1:8700", answers: true },
  { listening: "::", configured: ["cairn.example"], host: "[::1]:8700", answers: true },
  { listening: "192.168.0.10", configured: ["cairn.example"], host: "192.168.0.10:8700", answers: true },
  { listening: "0.0.0.0", configured: ["cairn.example"], host: "evil.example", answers: false },
  { listening: "::", configured: ["cairn.example"], host: "evil.example:8700", answers: false },
  { listening: "192.168.0.10", configured: ["cairn.example"], host: "192.168.0.11", answers: false },
];

for (const { listening, configured = [], host, answers } of cases) {
  const also = configured.length === 0 ? "" : ` (and ${configured.join(", ")})`;
  test(`a listener on ${listening}${also} ${answers ? "answers to" : "refuses"} the Host ${JSON.stringify(host)}`, () => {
    expect(hostCheck(listening, configured)(host)).toBe(answers);
  });
}
