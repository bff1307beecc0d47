/**
 * Signing in and out of the dashboard, in a browser, on the executable.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { NARROW, openTab, signedInTab, WIDE, type Tab } from "../support/browser.ts";
import { inBrowser as test } from "../support/in-browser.ts";
import { startProcess, type CairnProcess } from "../support/process.ts";

let cairn: CairnProcess;
beforeAll(async () => {
  cairn = await startProcess();
});
afterAll(() => cairn[Symbol.asyncDispose]());

const keptKey = (tab: Tab) => tab.run<string | null>(`sessionStorage.getItem("cairn.key")`);
const statusFor = async (key: string) => (await fetch(`${cairn.address}/v1/sessions`, { headers: { "X-API-Key": key } })).status;

async function linkPrinted(): Promise<string> {
  const { stdout } = await cairn.command("dashboard", "--url", cairn.address);
  const [link] = /http\S+#key=\S+/.exec(stdout) ?? [];
  if (link === undefined) throw new Error(`no link in ${stdout}`);
  return link;
}

test("a wrong key is refused in words, and the screen that was asked for comes after a right one", async () => {
  using tab = await openTab();
  await tab.go(`${cairn.address}/dashboard/sessions?agent_id=a`);
  await tab.fill("API key", "crn_nothing");
  await tab.click("Sign in");
  await tab.sees("The API key is not valid");
  await tab.fill("API key", cairn.key);
  await tab.click("Sign in");
  await tab.sees("No session matches");
  expect(await tab.run<string>("location.pathname + location.search")).toBe("/dashboard/sessions?agent_id=a");
});

test("what is kept is a session key, not the one that was typed, and no cookie", async () => {
  using tab = await signedInTab(cairn);
  const kept = await keptKey(tab);
  expect(kept).toStartWith("crn_");
  expect(kept).not.toBe(cairn.key);
  expect(await tab.run<string>("document.cookie + JSON.stringify(Object.entries(localStorage))")).toBe("[]");
  const own = await fetch(`${cairn.address}/v1/api_keys/current`, { headers: { "X-API-Key": kept ?? "" } });
  expect(await own.json()).toMatchObject({ kind: "session", name: "Dashboard in Chrome", expires_at: expect.any(String) });
  await tab.click("Sign out");
  await tab.has("[name=key]");
  expect(await keptKey(tab)).toBeNull();
  expect(await statusFor(kept ?? "")).toBe(401);
});

test("where others on the way could read the key, the page says so before it is typed", async () => {
  using tab = await openTab();
  await tab.go(`${cairn.address}/dashboard`);
  await tab.has("[name=key]");
  await tab.seesNo("This connection is not encrypted");
  await tab.pretendInsecure();
  await tab.go(`${cairn.address}/dashboard`);
  await tab.sees("This connection is not encrypted");
});

test("a link signs in once, and is gone from the address and the history", async () => {
  const link = await linkPrinted();
  using tab = await openTab();
  await tab.go(link);
  await tab.has("nav");
  expect(await tab.run<string>("location.href")).toBe(`${cairn.address}/dashboard/`);
  await tab.click("Sign out");
  await tab.has("[name=key]");
  using other = await openTab();
  await other.go(link);
  await other.sees("The API key is not valid, has expired or was revoked.");
  expect(await other.run<string>("location.href")).toBe(`${cairn.address}/dashboard/`);
});

test("a second tab is signed in by the first, and signed out with it", async () => {
  using first = await signedInTab(cairn);
  using second = await openTab();
  await second.go(`${cairn.address}/dashboard/sessions`);
  await second.has("nav");
  expect(await keptKey(second)).toBe(await keptKey(first));
  await first.click("Sign out");
  await second.has("[name=key]");
  expect(await keptKey(second)).toBeNull();
});

test("a session key that was revoked signs out and says so", async () => {
  using tab = await signedInTab(cairn, "/sessions");
  await tab.sees("No session yet");
  const own = await fetch(`${cairn.address}/v1/api_keys/current`, { headers: { "X-API-Key": (await keptKey(tab)) ?? "" } });
  await cairn.ok(cairn.delete(`/v1/api_keys/${((await own.json()) as { id: string }).id}`));
  await tab.fill("Agent", "b");
  await tab.sees("You were signed out");
});

test("a screen that the key is not for says which scope it needs, and lets one sign in with another key", async () => {
  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["read"] }));
  using tab = await signedInTab(cairn, "/settings", key);
  for (const path of ["settings", "keys", "webhooks/whk_000000000000"]) {
    await tab.go(`${cairn.address}/dashboard/${path}`);
    await tab.seesFlat("It needs a key with the scope admin. Yours may read.");
  }
  expect(tab.complaints).toEqual([]);
  await tab.click("Sign in with another key");
  await tab.fill("API key", cairn.key);
  await tab.click("Sign in");
  await tab.seesNo("It needs a key");
});

test("a key that is bound to a user sees what is the user's, and is told why the rest is not there", async () => {
  await using cairn = await startProcess();
  const own = await cairn.createSession({ agent_id: "a", user_id: "bound-user" });
  const other = await cairn.createSession({ agent_id: "a", user_id: "other-user" });
  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { user_id: "bound-user" }));
  using tab = await signedInTab(cairn, "", key);
  await tab.sees("This key is bound to user bound-user");
  await tab.seesFlat("may read and write, bound to user bound-user");
  await tab.sees(own.id);
  await tab.seesNo(other.id);
  await tab.seesNo("Users");
  await tab.click("Sessions");
  await tab.sees(own.id);
  await tab.seesNo(other.id);
  await tab.click("Nothing said yet");
  await tab.click("bound-user");
  await tab.holds(`location.pathname + location.search === "/dashboard/sessions?user_id=bound-user"`);
  await tab.go(`${cairn.address}/dashboard/users/other-user`);
  await tab.sees("It covers all users and agents. Your key is bound to user bound-user.");
  expect(tab.complaints).toEqual([]);
  await tab.go(`${cairn.address}/dashboard/sessions/${other.id}`);
  await tab.sees(`There is no session ${other.id}`);
  await tab.click("traces");
  await tab.sees("No trace matches");
});

test("a session key is not taken to sign in, and the page says what is", async () => {
  using first = await signedInTab(cairn);
  const kept = (await keptKey(first)) ?? "";
  await first.run(`(sessionStorage.clear(), true)`);
  await first.go(`${cairn.address}/dashboard`);
  await first.fill("API key", kept);
  await first.click("Sign in");
  await first.sees("use the API key that it came from, or the link that cairn dashboard prints");
});

test("the sign-in screen is free of what axe finds, in both schemes, wide and narrow", async () => {
  using tab = await openTab();
  for (const scheme of ["light", "dark"] as const) {
    await tab.scheme(scheme);
    for (const width of [WIDE, NARROW]) {
      await tab.resize(width);
      await tab.go(`${cairn.address}/dashboard`);
      await tab.has("[name=key]");
      expect([scheme, width, await tab.accessibilityProblems(), await tab.isTooWide()]).toEqual([scheme, width, [], false]);
    }
  }
  expect(tab.complaints).toEqual([]);
});
