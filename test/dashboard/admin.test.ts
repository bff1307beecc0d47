/**
 * Keys, settings and webhooks of the dashboard, in a browser, on the executable.
 *
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { signedInTab } from "../support/browser.ts";
import { startProcess, type CairnProcess } from "../support/process.ts";

let cairn: CairnProcess;
beforeAll(async () => {
  cairn = await startProcess();
});
afterAll(() => cairn[Symbol.asyncDispose]());

const statusFor = async (key: string) => (await fetch(`${cairn.address}/v1/sessions`, { headers: { "X-API-Key": key } })).status;

test("a key is created and shown once, rolled with an overlap, and revoked", async () => {
  using tab = await signedInTab(cairn, "/keys");
  await tab.click("Create a key");
  await tab.fill("Name", "support agent");
  await tab.click("Write: add, change and delete records");
  await tab.choose("Tier", "pro");
  await tab.click("Create");
  await tab.sees("shown now and never again");
  await tab.click("Copy", ".secret");
  await tab.sees("Copied");
  const key = await tab.clipboard();
  expect(await statusFor(key)).toBe(200);
  await tab.click("I have it");
  await tab.seesFlat("support agent");
  await tab.seesNo(key);
  expect(await cairn.all("/v1/api_keys?kind=key")).toContainEqual(
    expect.objectContaining({ name: "support agent", scopes: ["read"], tier: "pro" }),
  );

  await tab.click("Actions for support agent");
  await tab.click("Roll");
  await tab.choose("The old one ends", "0");
  await tab.click("Roll", "dialog");
  await tab.click("Copy", ".secret");
  await tab.sees("Copied");
  const rolled = await tab.clipboard();
  expect([await statusFor(key), await statusFor(rolled)]).toEqual([401, 200]);
  await tab.click("I have it");

  await tab.holds(`document.querySelectorAll("[aria-label='Actions for support agent']").length > 0`);
  await tab.click("Actions for support agent");
  await tab.click("Revoke");
  await tab.fill("Reason", "No longer used.");
  await tab.click("Revoke", "dialog");
  await tab.sees("Key revoked");
  expect(await statusFor(rolled)).toBe(401);
  expect(tab.complaints).toEqual([]);
});

test("a browser that is signed in is seen, and signed out from another one", async () => {
  using tab = await signedInTab(cairn, "/keys?kind=session");
  await tab.sees("this browser");
  const own = await tab.run<string>(`sessionStorage.getItem("cairn.key")`);
  await tab.click("Actions for Dashboard in Chrome");
  await tab.click("Sign out", ":popover-open");
  await tab.click("Sign out", "dialog");
  await tab.has("[name=key]");
  expect(await statusFor(own)).toBe(401);
});

test("a setting is changed and taken back, and says where its value comes from", async () => {
  using tab = await signedInTab(cairn, "/settings");
  await tab.fill("Region", "eu");
  await tab.choose("Memories of a session that expires", "delete");
  await tab.click("Save", "[aria-label=General]");
  await tab.sees("General: saved");
  await tab.sees("set here");
  expect((await cairn.get("/v1/settings")).body).toMatchObject({
    region: { value: "eu", source: "setting" },
    memories_on_expiry: { value: "delete", source: "setting" },
    trace_retention_days: { source: "default" },
  });
  await tab.click("Take back: Region");
  await tab.sees("Region: taken back");
  expect((await cairn.get("/v1/settings")).body).toMatchObject({ region: { value: null, source: "default" } });

  await tab.fill("Time limit of an attempt", "soon");
  await tab.click("Save", "[aria-label=Webhooks]");
  await tab.has("[name='webhooks.timeout'][aria-invalid=true]");
  expect((await cairn.get("/v1/settings")).body.webhooks.timeout.value).toBe("15s");
});

test("a provider that does not work is not set, and the reason stands there", async () => {
  using tab = await signedInTab(cairn, "/settings");
  await tab.choose("Provider", "openai");
  await tab.fill("Address of the server", "http://127.0.0.1:1/v1");
  await tab.fill("Model", "none");
  await tab.click("Save", "[aria-label='Embedding provider']");
  await tab.has("[aria-label='Embedding provider'] [role=alert]");
  expect((await cairn.get("/v1/settings")).body.embedding.provider.value).toBe("local");
});
