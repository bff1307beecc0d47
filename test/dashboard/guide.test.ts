/**
 * The documentation at `/docs/guide`, in a browser, on the executable: axe, both schemes, wide and narrow, the search, the keyboard, and
 * that nothing is asked of another host.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { addressOf, BASE, INDEX_PATH, partsOf } from "../../src/docs/contents.ts";
import { NARROW, openTab, WIDE, type Tab } from "../support/browser.ts";
import { inBrowser as test } from "../support/in-browser.ts";
import { pageText } from "../support/pages.ts";
import { startProcess, type CairnProcess } from "../support/process.ts";

const PICTURES = process.env["CAIRN_TEST_PICTURES"];

let cairn: CairnProcess;
beforeAll(async () => {
  cairn = await startProcess();
});
afterAll(() => cairn[Symbol.asyncDispose]());

/** Pages with all that a page can have: tables, code, pictures, lists of headings. */
const KINDS = [BASE, `${BASE}/dashboard`, `${BASE}/operate/configuration`, `${BASE}/adapters`, `${BASE}/reference/guarantees`];

async function open(tab: Tab, address: string): Promise<void> {
  await tab.go(`${cairn.address}${address}`);
  await tab.has("search:not([hidden])");
}

for (const { title, pages } of [{ title: "the contents", pages: [{ path: INDEX_PATH }] }, ...partsOf(pageText(INDEX_PATH))]) {
  test(`axe finds nothing on any page of ${title}, each has room on a phone, and asks this server alone`, async () => {
    using tab = await openTab();
    for (const { path } of pages) {
      const address = addressOf(path) ?? "";
      await tab.resize(WIDE);
      await open(tab, address);
      const problems = await tab.accessibilityProblems();
      await tab.resize(NARROW);
      expect({ address, problems, isTooWide: await tab.isTooWide() }).toEqual({ address, problems: [], isTooWide: false });
      if (PICTURES !== undefined) await tab.picture(`${PICTURES}/${address.replaceAll("/", "-")}.png`);
    }
    expect(tab.requests.filter(({ url }) => !url.startsWith(`${cairn.address}/`))).toEqual([]);
    expect(tab.complaints).toEqual([]);
  });
}

test("in the dark and on a phone axe finds nothing either", async () => {
  using tab = await openTab();
  await tab.scheme("dark");
  await tab.resize(NARROW);
  for (const address of KINDS) {
    await open(tab, address);
    expect({ address, problems: await tab.accessibilityProblems() }).toEqual({ address, problems: [] });
  }
  expect(tab.complaints).toEqual([]);
});

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
