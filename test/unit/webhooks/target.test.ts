import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { addressKind, type AddressKind } from "../../../src/lib/addresses.ts";
import { findTarget, type Resolve } from "../../../src/lib/outbound.ts";
import { checkUrl, isAllowed, refusalOf, type TargetRules } from "../../../src/webhooks/target.ts";

/** Ranges by their first and last address, with those just outside of them. */
const KINDS: Record<AddressKind, string> = {
  public: `
    1.1.1.1 8.8.8.8 93.184.215.14 2606:4700:4700::1111 2a00:1450:4001:82a::200e
    9.255.255.255 11.0.0.0  100.63.255.255 100.128.0.0  126.255.255.255 128.0.0.0  169.253.255.255 169.255.0.0
    172.15.255.255 172.32.0.0  192.167.255.255 192.169.0.0  198.17.255.255 198.20.0.0  223.255.255.255
    ::ffff:8.8.8.8 ::ffff:808:808 64:ff9b::808:808 2002:808:808::1`,
  loopback: `
    127.0.0.1 127.0.0.0 127.255.255.255 ::1 0:0:0:0:0:0:0:1
    ::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::`,
  private: `
    10.0.0.0 10.255.255.255  172.16.0.0 172.31.255.255  192.168.0.1 192.168.255.255  100.64.0.0 100.127.255.255
    169.254.0.1 169.254.255.255  192.0.0.8  198.18.0.1 198.19.255.255
    fc00::1 fd12:3456:789a::1 fe80::1 fe80::1%eth0 febf::1 fec0::1
    ::ffff:10.0.0.1 ::ffff:c0a8:1 64:ff9b::a00:1 64:ff9b:1::1 64:ff9b:1::808:808 64:ff9b:1:1::7f00:1 2002:c0a8:101::1`,
  metadata: `
    169.254.169.254 169.254.170.2 168.63.129.16 100.100.100.200 169.254.0.23 169.254.42.42
    fd00:ec2::254 fd20:ce::254 fd00:42::42
    64:ff9b:1::a9fe:a9fe 64:ff9b:1:ffff::169.254.42.42 64:ff9b:1:a9fe:a9:fe00:: 64:ff9b:1:a9:fe:a9fe:: 64:ff9b:1::a9:fea9:fe00:0
    ::ffff:169.254.169.254 ::ffff:a9fe:a9fe 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::`,
  reserved: `
    0.0.0.0 0.255.255.255 192.0.2.1 192.88.99.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
    :: ff02::1 100::1 2001:db8::1 2001::1 3fff::1 4000::1 ::ffff:0.0.0.0`,
};
const words = (text: string) => text.trim().split(/\s+/);

for (const [place, text] of Object.entries(KINDS)) {
  test(`addresses that are ${place}`, () => {
    const addresses = [...words(text), ...(place === "reserved" ? ["not an address", ""] : [])];
    expect(addresses.map((address) => `${address} ${addressKind(address)}`)).toEqual(addresses.map((address) => `${address} ${place}`));
  });
}

test("an IPv4 address is what it is, however it is wrapped in IPv6", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const plain = addressKind(address);
      fc.pre(!address.startsWith("0."));
      expect([`::ffff:${address}`, `64:ff9b::${address}`, `::ffff:0:${address}`].map(addressKind)).toEqual([plain, plain, plain]);
    }),
  );
});

const HERE: TargetRules = { loopback: true, private: false };
const OUTSIDE: TargetRules = { loopback: false, private: false };
const ANYWHERE: TargetRules = { loopback: false, private: true };
const resolveTarget = (url: URL, rules: TargetRules, resolve: Resolve) =>
  findTarget(url, { isAllowed: (kind) => isAllowed(kind, rules), resolve });
const unresolved = () => Promise.reject(new Error("nothing is looked up"));

/** What becomes of a URL on a loopback listener, on one that is reached from outside, and with private targets allowed. */
const URLS: { urls: string; allowed: [here: boolean, outside: boolean, anywhere: boolean] }[] = [
  { urls: "http://8.8.8.8/ https://[2606:4700:4700::1111]:8443/x http://134744072/", allowed: [true, true, true] },
  {
    urls: `http://127.0.0.1/ http://127.1:8080/ http://2130706433/ http://0x7f000001/ http://0x7f.1/ http://0177.0.0.1/
      http://017700000001/ http://[::1]/ http://[::ffff:127.0.0.1]/ http://[0:0:0:0:0:ffff:7f00:1]/ http://１２７.0.0.1/ http://127。0。0。1/`,
    allowed: [true, false, true],
  },
  {
    urls: `http://10.0.0.1/ http://0xa000001/ http://192.168.1.1/ http://172.16.0.1/ http://169.254.1.1/ http://100.64.0.1/
      http://[fd12::1]/ http://[fe80::1]/`,
    allowed: [false, false, true],
  },
  {
    urls: `http://169.254.169.254/latest/meta-data/ http://2852039166/ http://0xa9fea9fe/ http://0251.0376.0251.0376/
      http://[::ffff:169.254.169.254]/ http://[fd00:ec2::254]/ http://0.0.0.0/ http://0/ http://[::]/ http://224.0.0.1/
      http://255.255.255.255/`,
    allowed: [false, false, false],
  },
];

for (const { urls, allowed } of URLS) {
  for (const url of words(urls)) {
    test(`${url} is allowed on loopback: ${allowed[0]}, beyond: ${allowed[1]}, with private targets: ${allowed[2]}`, async () => {
      const checked = checkUrl(url);
      if ("problem" in checked) throw new Error(checked.problem);
      const targets = await Promise.all([HERE, OUTSIDE, ANYWHERE].map((rules) => resolveTarget(checked.url, rules, unresolved)));
      expect(targets.map(({ kind }) => kind)).toEqual(allowed.map((isRight) => (isRight ? "dial" : "forbidden")));
    });
  }
}

const NO_URLS = `agents.example.com/hook /hook //agents.example.com/ ftp://agents.example.com/ file:///etc/passwd gopher://127.0.0.1/
  javascript:alert(1) unix:/run/docker.sock http:// http://user@agents.example.com/ http://user:word@agents.example.com/
  https://:word@agents.example.com/ http://agents.example.com:99999/ http://[::1 http://256.0.0.1/`;

for (const url of [...words(NO_URLS), "", "http://a b/", `http://agents.example.com/${"x".repeat(2048)}`]) {
  test(`what is no URL of a receiver is refused: ${url.slice(0, 60)}`, () => {
    expect(checkUrl(url)).toEqual({ problem: expect.any(String) });
  });
}

test("of a name every address has to be allowed, and IPv4 is dialled first", async () => {
  const url = new URL("https://agents.example.com/hook");
  const of = (addresses: string[], rules = OUTSIDE) => resolveTarget(url, rules, () => Promise.resolve(addresses));
  expect(await of(["2606:4700:4700::1111", "8.8.8.8"])).toEqual({ kind: "dial", addresses: ["8.8.8.8", "2606:4700:4700::1111"] });
  expect(await of(["8.8.8.8", "10.0.0.1"])).toEqual({ kind: "forbidden", address: "10.0.0.1" });
  expect(refusalOf(url, "10.0.0.1")).toStartWith("agents.example.com (10.0.0.1) is in a private network");
  expect(await of(["8.8.8.8", "::1"])).toMatchObject({ kind: "forbidden" });
  expect(await of(["8.8.8.8", "169.254.169.254"], ANYWHERE)).toMatchObject({ kind: "forbidden" });
  expect(await of([])).toMatchObject({ kind: "unknown" });
  expect(await resolveTarget(url, OUTSIDE, unresolved)).toMatchObject({ kind: "unknown" });
});
