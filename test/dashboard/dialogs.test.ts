/**
 * Dialogs of the dashboard, and what a key sees that is not for all of it: axe, both schemes, wide and narrow, in a browser, on the
 * executable.
 *
 * Pictures go where `CAIRN_TEST_PICTURES` says.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { endOf } from "../support/backups.ts";
import { NARROW, signedInTab, WIDE } from "../support/browser.ts";
import { inBrowser as test } from "../support/in-browser.ts";
import { startProcess, type CairnProcess } from "../support/process.ts";
import { HOSTILE, tellStory, type Story } from "../support/story.ts";

const PICTURES = process.env["CAIRN_TEST_PICTURES"];

let cairn: CairnProcess;
let story: Story;
let webhookId: string;
beforeAll(async () => {
  cairn = await startProcess();
  story = await tellStory(cairn);
  const webhook = { url: "http://127.0.0.1:9/hook", events: ["turn.added"], description: HOSTILE };
  webhookId = (await cairn.ok(cairn.post("/v1/webhooks", webhook))).id;
  await endOf(cairn, (await cairn.ok(cairn.post("/v1/backups", {}))).id);
});
afterAll(() => cairn[Symbol.asyncDispose]());

const sessionPath = () => `/sessions/${story.main}`;
/** What opens each dialog: a screen, and the names of what is clicked on it. */
const DIALOGS: Record<string, readonly [path: () => string, ...names: string[]]> = {
  "edit-state": [sessionPath, "Edit state"],
  "edit-session": [sessionPath, "More actions", "Metadata and expiry"],
  "delete-session": [sessionPath, "More actions", "Delete"],
  rollback: [sessionPath, "Roll back to here"],
  "add-memory": [() => "/memories", "Add a memory"],
  "memory-history": [() => "/memories", "History"],
  "create-key": [() => "/keys", "Create a key"],
  "roll-key": [() => "/keys", "Actions for from the environment", "Roll"],
  "revoke-key": [() => "/keys", "Actions for from the environment", "Revoke"],
  "try-provider": [() => "/settings", "Try it"],
  "create-webhook": [() => "/webhooks", "Create a webhook"],
  "edit-webhook": [() => `/webhooks/${webhookId}`, "More actions", "Edit"],
  recover: [() => `/webhooks/${webhookId}`, "More actions", "Recover failed"],
  "delete-webhook": [() => `/webhooks/${webhookId}`, "More actions", "Delete"],
  "delete-backup": [() => "/backups", "Delete"],
  "erase-user": [() => `/users/${encodeURIComponent(HOSTILE)}`, "Erase"],
  keyboard: [() => "/", "Keyboard help"],
};

test("axe finds nothing in any dialog, light and wide or dark and narrow, and each has room", async () => {
  using tab = await signedInTab(cairn, "/sessions");
  for (const [scheme, width] of [
    ["light", WIDE],
    ["dark", NARROW],
  ] as const) {
    await tab.scheme(scheme);
    await tab.resize(width);
    for (const [name, [path, ...names]] of Object.entries(DIALOGS)) {
      await tab.go(`${cairn.address}/dashboard${path()}`);
      if (name === "keyboard" && width === NARROW) await tab.click("Menu");
      for (const one of names) await tab.click(one);
      await tab.has("dialog[open]");
      expect([name, await tab.accessibilityProblems(), await tab.isTooWide()]).toEqual([name, [], false]);
      if (PICTURES !== undefined) await tab.picture(`${PICTURES}/dialog-${name}-${scheme}-${width}.png`);
    }
  }
  expect(tab.complaints).toEqual([]);
});

test("axe finds nothing on what a key sees that is bound, or lacks a scope", async () => {
  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { user_id: HOSTILE, scopes: ["read"] }));
  using tab = await signedInTab(cairn, "", key);
  for (const [width, path] of [WIDE, NARROW].flatMap((width) =>
    ["", "users", "settings", "sessions/sess_000000000000"].map((path) => [width, path] as const),
  )) {
    await tab.resize(width);
    await tab.go(`${cairn.address}/dashboard/${path}`);
    await tab.has(".rows li, .empty, .problem");
    expect([path, width, await tab.accessibilityProblems(), await tab.isTooWide()]).toEqual([path, width, [], false]);
    if (PICTURES !== undefined) await tab.picture(`${PICTURES}/bound-${path.replaceAll("/", "-")}-${width}.png`);
  }
});
