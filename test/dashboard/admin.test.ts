/**
 * Keys, settings and webhooks of the dashboard, in a browser, on the executable.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { join } from "node:path";
import { signedInTab } from "../support/browser.ts";
import { inBrowser as test } from "../support/in-browser.ts";
import { scratchDirectory, startProcess, until, type CairnProcess } from "../support/process.ts";
import { startReceiver } from "../support/receiver.ts";

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
  await tab.choose("Requests, and how long traces stay", "pro");
  await tab.click("Create");
  await tab.sees("shown now and never again");
  await tab.click("Copy", ".secret");
  await tab.sees("Copied");
  const key = await tab.clipboard();
  expect(await statusFor(key)).toBe(200);
  await tab.click("I saved it");
  await tab.seesFlat("support agent");
  await tab.seesNo(key);
  expect(await cairn.all("/v1/api_keys?kind=key")).toContainEqual(
    expect.objectContaining({ name: "support agent", scopes: ["read"], tier: "pro" }),
  );

  await tab.click("Actions for support agent");
  await tab.click("Roll");
  await tab.choose("Old key expires", "0");
  await tab.click("Roll", "dialog");
  await tab.click("Copy", ".secret");
  await tab.sees("Copied");
  const rolled = await tab.clipboard();
  expect([await statusFor(key), await statusFor(rolled)]).toEqual([401, 200]);
  await tab.click("I saved it");

  await tab.holds(`document.querySelectorAll("[aria-label='Actions for support agent']").length > 0`);
  await tab.click("Actions for support agent");
  await tab.click("Revoke");
  await tab.fill("Reason", "No longer used.");
  await tab.click("Revoke", "dialog");
  await tab.sees("Key revoked");
  expect(await statusFor(rolled)).toBe(401);
  expect(tab.complaints).toEqual([]);
});

test("a key is bound to a user and an agent, and says so; an admin key cannot be", async () => {
  using tab = await signedInTab(cairn, "/keys");
  await tab.click("Create a key");
  await tab.fill("Name", "bound agent");
  await tab.fill("Bound to user", "user-42");
  await tab.fill("Bound to agent", "support-bot");
  await tab.click("Admin: keys, webhooks, settings; includes the others");
  await tab.has("[name=user_id][aria-invalid=true]");
  await tab.has("[name=agent_id][aria-invalid=true]");
  await tab.has("dialog form button:disabled");
  await tab.sees("cannot be bound. Empty this field, or take Admin away.");
  await tab.click("Admin: keys, webhooks, settings; includes the others");
  await tab.click("Create");
  await tab.click("I saved it");
  await tab.seesFlat("bound to agent support-bot and user user-42");
  const [key] = (await cairn.all("/v1/api_keys?kind=key")).filter(({ name }) => name === "bound agent");
  expect(key).toMatchObject({ scopes: ["read", "write"], user_id: "user-42", agent_id: "support-bot" });
  await tab.go(`${cairn.address}/dashboard/keys?id=${key.id}`);
  await tab.sees("bound agent");
  expect(await tab.run<number>(`document.querySelectorAll("tbody tr").length`)).toBe(1);
  await cairn.ok(cairn.delete(`/v1/api_keys/${key.id}`));
});

/** The application's page: that of the consent says "back", too. */
const BACK = `document.body?.innerText === "back"`;

test("an application that asks is shown by where its answer goes, connected with what was chosen, and disconnected", async () => {
  await using application = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("back") });
  const callback = `http://127.0.0.1:${application.port}/callback`;
  const registered = await fetch(`${cairn.address}/register`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ client_name: "<b>Notes</b>", redirect_uris: [callback] }),
  });
  const { client_id } = (await registered.json()) as { client_id: string };
  const asked = new URLSearchParams({
    client_id,
    redirect_uri: callback,
    response_type: "code",
    code_challenge: "c".repeat(43),
    code_challenge_method: "S256",
    state: "kept",
  });
  using tab = await signedInTab(cairn);
  await tab.go(`${cairn.address}/authorize?${asked.toString()}`);
  await tab.sees("<b>Notes</b>");
  await tab.sees("nobody: it registered itself");
  await tab.sees(`127.0.0.1:${application.port}`);
  await tab.sees("any program here could be the one that asks");
  await tab.click("Write: add, change and delete records");
  await tab.fill("Bound to user", "ada");
  await tab.click("Connect");
  await tab.holds(BACK);
  const back = new URL(await tab.run<string>("location.href"));
  expect([back.pathname, back.searchParams.get("state"), back.searchParams.get("code")]).toEqual([
    "/callback",
    "kept",
    expect.stringMatching(/^crn_ac_/),
  ]);
  const [grant] = await cairn.all("/v1/api_keys?kind=oauth");
  expect(grant).toMatchObject({ name: "<b>Notes</b>", scopes: ["read"], user_id: "ada", client_id });

  await tab.go(`${cairn.address}/dashboard/keys?kind=oauth`);
  await tab.sees("bound to user ada");
  await tab.click("Actions for <b>Notes</b>");
  await tab.click("Disconnect");
  await tab.click("Disconnect", "dialog");
  await tab.sees("No application is connected.");
  expect(await cairn.all("/v1/api_keys?kind=oauth")).toEqual([]);

  await tab.go(`${cairn.address}/dashboard/authorize#${asked.toString()}&user_id=mallory&agent_id=mallory`);
  await tab.click("Connect");
  await tab.holds(BACK);
  expect(await cairn.all("/v1/api_keys?kind=oauth")).toMatchObject([{ user_id: null, agent_id: null }]);

  await tab.go(`${cairn.address}/authorize?${asked.toString()}`);
  await tab.click("Refuse");
  await tab.holds(BACK);
  expect(new URL(await tab.run<string>("location.href")).searchParams.get("error")).toBe("access_denied");
});

test("a key is made without a choice of its rate: 60,000 requests a minute, traces as long as the settings say", async () => {
  using tab = await signedInTab(cairn, "/keys");
  await tab.click("Create a key");
  await tab.fill("Name", "plain agent");
  await tab.click("Create");
  await tab.click("I saved it");
  await tab.seesFlat("plain agent");
  const [key] = (await cairn.all("/v1/api_keys?kind=key")).filter(({ name }) => name === "plain agent");
  expect(key).toMatchObject({ tier: "enterprise", rate_limit: { per_minute: 60_000, burst: 120_000 } });
  await cairn.ok(cairn.delete(`/v1/api_keys/${key.id}`));
});

test("Escape and the button × ask before a secret is gone or what was written is lost; a second Escape stays", async () => {
  using tab = await signedInTab(cairn, "/keys");
  const isOpen = () => tab.run<boolean>(`document.querySelector("dialog[open]") !== null`);
  await tab.click("Create a key");
  await tab.press("Escape");
  await tab.holds(`document.querySelector("dialog[open]") === null`);

  await tab.click("Create a key");
  await tab.fill("Name", "half written");
  await tab.press("Escape");
  await tab.sees("Discard what you have written?");
  await tab.press("Escape");
  await tab.seesNo("Discard what you have written?");
  expect(await isOpen()).toBe(true);
  expect(await tab.run<string>("document.activeElement.name")).toBe("name");
  await tab.click("Close");
  await tab.click("Stay here");
  expect(await tab.run<string>(`document.querySelector("[name=name]").value`)).toBe("half written");
  await tab.run(`(document.querySelector("dialog").dispatchEvent(new Event("cancel", { cancelable: true })), true)`);
  await tab.sees("Discard what you have written?");
  await tab.click("Stay here");

  await tab.click("Create");
  await tab.sees("shown now and never again");
  const secret = await tab.run<string>(`document.querySelector(".secret code").textContent`);
  await tab.press("Escape");
  await tab.sees("This key is never shown again.");
  await tab.press("Escape");
  await tab.seesNo("This key is never shown again.");
  await tab.sees(secret);
  await tab.click("Close");
  await tab.click("Close", ".question");
  await tab.holds(`document.querySelector("dialog[open]") === null`);
  expect(tab.complaints).toEqual([]);
  const [key] = (await cairn.all("/v1/api_keys?kind=key")).filter(({ name }) => name === "half written");
  await cairn.ok(cairn.delete(`/v1/api_keys/${key.id}`));
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

test("a setting is changed and reset, and says where its value comes from", async () => {
  using tab = await signedInTab(cairn, "/settings");
  await tab.fill("Region", "eu");
  await tab.click("Save", "[aria-label=General]");
  await tab.sees("General: saved");
  await tab.choose("Memories of a session that expires", "delete");
  await tab.click("Save", "[aria-label='Sessions and memories']");
  await tab.sees("Sessions and memories: saved");
  await tab.fill("Largest body of a request, in MiB", "2.5");
  await tab.click("Save", "[aria-label=Sizes]");
  await tab.sees("Sizes: saved");
  await tab.sees("set here");
  expect((await cairn.get("/v1/settings")).body).toMatchObject({
    region: { value: "eu", source: "setting" },
    memories_on_expiry: { value: "delete", source: "setting" },
    trace_retention_days: { source: "default" },
    max_body_bytes: { value: 2_621_440, source: "setting" },
  });
  await tab.click("Reset: Largest body of a request, in MiB");
  await tab.click("Reset: Region");
  await tab.sees("Region: reset");
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
  expect((await cairn.get("/v1/settings")).body.embedding.provider.value).toBe("builtin");
});

test("a provider is tried with a pair of texts, without saving anything", async () => {
  using tab = await signedInTab(cairn, "/settings");
  await tab.click("Try it");
  await tab.click("Try");
  await tab.sees("✓ works");
  await tab.seesFlat("score 0.");
  await tab.press("Escape");
  await tab.choose("Provider", "openai");
  await tab.fill("Address of the server", "http://127.0.0.1:1/v1");
  await tab.fill("Model", "none");
  await tab.click("Try it");
  await tab.click("Try");
  await tab.has("dialog .problem");
  expect((await cairn.get("/v1/settings")).body.embedding.provider).toMatchObject({ value: "builtin", source: "default" });
});

test("a webhook is created with its secret shown once, tested, switched off and on, and deleted", async () => {
  await using receiver = startReceiver(() => new Response("thanks"));
  using tab = await signedInTab(cairn, "/webhooks");
  await tab.sees("There is no webhook");
  await tab.click("Create a webhook");
  await tab.fill("URL", receiver.url);
  await tab.click("memory.created");
  await tab.click("Create");
  await tab.sees("shown now and never again");
  await tab.sees("timingSafeEqual");
  await tab.click("Copy", ".secret");
  await tab.sees("Copied");
  const secret = await tab.clipboard();
  expect(secret).toStartWith("whsec_");
  await tab.click("Copy sample");
  await tab.holds(`navigator.clipboard.readText().then((text) => text.includes("isFromCairn"))`);
  const sample = await tab.clipboard();
  await tab.click("I saved it");
  await tab.click(receiver.url);
  await tab.sees("● on");
  await tab.click("Test");
  await tab.sees("The receiver took the event.");
  await tab.seesFlat("✓ 200");
  await tab.press("Escape");
  await tab.seesFlat("webhook.test ✓ delivered 200");
  await tab.click("Rotate secret");
  await tab.click("Rotate");
  await tab.sees("shown now and never again");
  await tab.click("I saved it");
  await tab.click("More actions");
  await tab.click("Switch off");
  await tab.sees("○ off");
  await tab.click("More actions");
  await tab.click("Delete", ":popover-open");
  await tab.click("Delete", "dialog");
  await tab.sees("There is no webhook");
  expect(receiver.received.map(({ event }) => event.type)).toEqual(["webhook.test"]);
  using scratch = scratchDirectory();
  const program = join(scratch.path, "sample.mjs");
  await Bun.write(program, sample);
  const { isFromCairn } = (await import(program)) as { isFromCairn: (secret: string, body: string, signature: string) => boolean };
  const { body = "", headers = {} } = receiver.received[0] ?? {};
  const signature = headers["x-webhook-signature"] ?? "";
  expect([isFromCairn(secret, body, signature), isFromCairn(`${secret}x`, body, signature)]).toEqual([true, false]);
  expect(tab.complaints).toEqual([]);
});

test("a receiver that fails is seen to fail from the first attempt on, and what it answered is withheld by name", async () => {
  const { id } = await cairn.ok(cairn.post("/v1/webhooks", { url: "http://127.0.0.1:9/hook", events: ["memory.created"] }));
  await using receiver = startReceiver(() => new Response("no", { status: 500 }));
  await cairn.ok(cairn.request("PATCH", `/v1/webhooks/${id}`, { url: receiver.url }));
  const session = await cairn.createSession();
  await cairn.ok(cairn.post("/v1/memory", { session_id: session.id, content: "prefers tea", embed: false }));
  await receiver.got(1);
  await until("the outcome", async () => (await cairn.get(`/v1/webhooks/${id}`)).body.failing_since !== null);
  using tab = await signedInTab(cairn, `/webhooks/${id}`);
  await tab.seesFlat("memory.created ✗ failing 500");
  await tab.holds(`/attempts? failed, 1 pending/.test(document.body.innerText)`);
  await tab.holds(`/✗ failing for [0-9]+ [a-z]+: 500, next try/.test(document.body.innerText)`);
  await tab.run(`(document.querySelector(".rows summary").click(), true)`);
  await tab.sees("Answer withheld: private address.");
  await tab.go(`${cairn.address}/dashboard/webhooks`);
  await tab.holds(`/none delivered, [1-9] attempts? failed, 1 pending/.test(document.body.innerText)`);
  await tab.go(`${cairn.address}/dashboard/webhooks?show=failed`);
  await tab.sees("No delivery was given up.");
  await cairn.ok(cairn.delete(`/v1/webhooks/${id}`));
  expect(tab.complaints).toEqual([]);
});

test("a delivery that failed shows what was posted and what came back, and is made again", async () => {
  const { id } = await cairn.ok(cairn.post("/v1/webhooks", { url: "http://127.0.0.1:9/hook", events: ["turn.added"] }));
  await using receiver = startReceiver((_, count) => new Response("no", { status: count === 1 ? 410 : 200 }));
  await cairn.ok(cairn.request("PATCH", `/v1/webhooks/${id}`, { url: receiver.url }));
  const session = await cairn.createSession();
  const text = (content: string) => ({ type: "text", content });
  await cairn.ok(cairn.post(`/v1/sessions/${session.id}/turns`, { input: text("Hello?"), output: text("Yes.") }));
  using tab = await signedInTab(cairn, `/webhooks/${id}`);
  await tab.seesFlat("turn.added ✗ given up 410");
  await tab.sees("○ off");
  await tab.run(`(document.querySelector(".rows summary").click(), true)`);
  await tab.sees('"content": "Hello?"');
  await tab.choose("Event", "memory.created");
  await tab.sees("No delivery matches.");
  await tab.choose("Event", "turn.added");
  await tab.choose("After", "2020-01-01T00:00");
  await tab.sees("1 delivery, no more");
  await tab.choose("Before", "2020-01-02T00:00");
  await tab.sees("No delivery matches.");
  expect(await tab.run<string>("location.search")).toMatch(/^\?event_type=turn.added&created_after=20\S+Z&created_before=20\S+Z$/);
  await tab.go(`${cairn.address}/dashboard/webhooks`);
  await tab.seesFlat("Last 24 h: 0 % of 1 delivered, 1 attempt failed, 1 given up");
  expect(await tab.run<number>(`document.querySelectorAll(".day svg g").length`)).toBe(25);
  await tab.go(`${cairn.address}/dashboard/webhooks?show=failed`);
  await tab.sees("1 delivery, no more");
  await tab.run(`(document.querySelector(".rows summary").click(), true)`);
  await tab.has("[aria-label=Responses] .attempts");
  // Request and response side by side.
  expect(
    await tab.run<boolean>(`(([request, response]) => request.top === response.top && request.right < response.left)(
    ["Request", "Responses"].map((name) => document.querySelector(\`[aria-label=\${name}]\`).getBoundingClientRect()))`),
  ).toBe(true);
  await tab.sees("Retry all");
  await tab.go(`${cairn.address}/dashboard/webhooks/${id}?status=failed`);
  await tab.click("More actions");
  await tab.click("Switch on");
  await tab.sees("● on");
  await tab.sees("Retry all");
  // It makes all of the webhook again, which a list of one type does not show.
  await tab.choose("Event", "turn.added");
  await tab.seesNo("Retry all");
  await tab.sees("1 delivery, no more");
  await tab.choose("Event", "");
  await tab.click("Retry all");
  await tab.sees("1 delivery made again");
  await tab.sees("No delivery matches.");
  await receiver.got(2);
  expect(receiver.received.map(({ event }) => event.id)).toEqual(Array(2).fill(receiver.received[0]?.event.id));
  await cairn.ok(cairn.delete(`/v1/webhooks/${id}`));
});

test("a backup is made, downloaded by a ticket, and deleted", async () => {
  using tab = await signedInTab(cairn, "/backups");
  await tab.sees("There is none yet.");
  await tab.sees("cairn restore FILE --force");
  await tab.click("Make a backup");
  await tab.sees("✓ ready");
  await tab.click("Download");
  await until("the download to begin", async () => (await cairn.all("/v1/traces?action=backup.downloaded")).length === 1);
  expect(await tab.run<string>("location.pathname")).toBe("/dashboard/backups");
  await tab.click("Delete", "tbody");
  await tab.fill("Reason", "Only tried.");
  await tab.click("Delete", "dialog");
  await tab.sees("Backup deleted");
  await tab.sees("There is none yet.");
  expect(await cairn.all("/v1/backups")).toEqual([]);
  expect(tab.complaints).toEqual([]);
});
