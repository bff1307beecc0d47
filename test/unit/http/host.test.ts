import { expect, test } from "bun:test";
import { hostCheck } from "../../../src/http/host.ts";

/** Who listens beyond loopback is reached by names it cannot know, unless its operator says which. */
const cases: { listening: string; configured?: string[]; answers?: string; refuses?: string }[] = [
  {
    listening: "127.0.0.1",
    answers: "127.0.0.1 127.0.0.1:8700 localhost:8700 LocalHost [::1]:8700",
    refuses:
      "evil.example evil.example:8700 localhost.evil.example 127.0.0.1.evil.example evil.example/localhost localhost@evil.example " +
      "localhost,evil.example localhost:8700:8700 localhost: 0.0.0.0:8700 192.168.0.10",
  },
  { listening: "::1", answers: "[::1]", refuses: "evil.example" },
  { listening: "localhost", answers: "127.0.0.1" },
  { listening: "127.0.0.5", answers: "127.0.0.5:1" },
  { listening: "LOCALHOST", answers: "localhost:8700", refuses: "evil.example" },
  { listening: "::ffff:127.0.0.1", answers: "[::ffff:127.0.0.1]:8700", refuses: "evil.example" },
  {
    listening: "127.0.0.1",
    configured: ["cairn.example"],
    answers: "cairn.example CAIRN.example:443 localhost",
    refuses: "other.example sub.cairn.example",
  },
  { listening: "127.0.0.1", configured: ["Cairn.Example"], answers: "cairn.example" },
  { listening: "127.0.0.1", configured: ["cairn.example:8443"], answers: "cairn.example:8443", refuses: "cairn.example:80" },
  { listening: "0.0.0.0", answers: "evil.example" },
  { listening: "192.168.0.10", answers: "cairn.example" },
  { listening: "0.0.0.0", configured: ["cairn.example"], answers: "cairn.example:8700 127.0.0.1:8700", refuses: "evil.example" },
  { listening: "::", configured: ["cairn.example"], answers: "[::1]:8700", refuses: "evil.example:8700" },
  { listening: "192.168.0.10", configured: ["cairn.example"], answers: "192.168.0.10:8700", refuses: "192.168.0.11" },
];

for (const { listening, configured = [], answers = "", refuses = "" } of cases) {
  const also = configured.length === 0 ? "" : ` and ${configured.join(", ")}`;
  test(`the hosts that a listener on ${listening}${also} answers to`, () => {
    const answersTo = hostCheck({ host: listening, allowedHosts: configured });
    const hosts = [answers, refuses].map((text) => text.split(" ").filter((host) => host !== ""));
    expect(hosts.map((some) => some.filter(answersTo))).toEqual([hosts[0]!, []]);
  });
}

test("an empty Host and a list of two are refused; HTTP/1.0, which no browser speaks, sends none", () => {
  const answersTo = hostCheck({ host: "127.0.0.1", allowedHosts: [] });
  expect(["", "localhost, evil.example", null].map(answersTo)).toEqual([false, false, true]);
});
