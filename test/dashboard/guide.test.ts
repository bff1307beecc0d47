/**
 * The documentation at `/docs/guide`, in a browser, on the executable: axe, both schemes, wide and narrow, the search, the keyboard, and
 * that nothing is asked of another host.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { BASE, addressOf, INDEX_PATH, linkedPages } from "../../src/docs/contents.ts";
import { NARROW, openTab, WIDE } from "../support/browser.ts";
import { inBrowser as test } from "../support/in-browser.ts";
import { pageText } from "../support/pages.ts";
import { startProcess, type CairnProcess } from "../support/process.ts";

const PICTURES = process.env["CAIRN_TEST_PICTURES"];

let cairn: CairnProcess;
beforeAll(async () => {
  cairn = await startProcess();
});
afterAll(() => cairn[Symbol.asyncDispose]());

const ADDRESSES = [INDEX_PATH, ...linkedPages(pageText(INDEX_PATH))].map((path) => addressOf(path) ?? "");

for (const [scheme, width] of [
  ["light", WIDE],
  ["dark", NARROW],
] as const) {
  test(`axe finds nothing on any page, ${scheme} and ${width} px wide; each has room and asks this server alone`, async () => {
    using tab = await openTab();
    await tab.scheme(scheme);
    await tab.resize(width);
    for (const address of ADDRESSES) {
      await tab.go(`${cairn.address}${address}`);
      await tab.has("search:not([hidden])");
      expect({ address, problems: await tab.accessibilityProblems(), isTooWide: await tab.isTooWide() }).toEqual({
        address,
        problems: [],
        isTooWide: false,
      });
      if (PICTURES !== undefined) await tab.picture(`${PICTURES}/${address.replaceAll("/", "-")}-${scheme}-${width}.png`);
    }
    expect(tab.requests.filter(({ url }) => !url.startsWith(`${cairn.address}/`))).toEqual([]);
    expect(tab.complaints).toEqual([]);
  });
}

test("a search finds sections by the beginnings of words, and Enter opens the best one", async () => {
  using tab = await openTab();
  await tab.go(`${cairn.address}${BASE}`);
  await tab.has("search:not([hidden])");
  await tab.fill("Search", "who conn");
  await tab.has("#found a");
  expect(await tab.run<string>("document.querySelector('#found a').textContent")).toBe("Deploy: Who can connect");
  expect(await tab.accessibilityProblems()).toEqual([]);
  await tab.press("Enter");
  await tab.holds(`location.href === "${cairn.address}${BASE}/operate/deploy#who-can-connect"`);
  await tab.sees("Plain HTTP is for loopback only.");
});

test("a search without a result says so, and Escape ends it", async () => {
  using tab = await openTab();
  await tab.go(`${cairn.address}${BASE}/webhooks`);
  await tab.has("search:not([hidden])");
  await tab.fill("Search", "zzzz");
  await tab.sees("0 sections");
  await tab.press("Escape");
  await tab.seesNo("0 sections");
  expect(tab.complaints).toEqual([]);
});
