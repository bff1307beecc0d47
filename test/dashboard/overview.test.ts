/**
 * The overview of the dashboard and the way from an id to its record, in a browser, on the executable.
 *
 * @module
 */
import { expect } from "bun:test";
import { signedInTab } from "../support/browser.ts";
import { BROWSER, inBrowser as test } from "../support/in-browser.ts";
import { CURL, needs } from "../support/platform.ts";
import { inTurns, startProcess, until } from "../support/process.ts";
import { tellStory } from "../support/story.ts";

needs(BROWSER, CURL)("without any record it shows a first conversation, which works as it stands and appears", async () => {
  await using cairn = await startProcess();
  using tab = await signedInTab(cairn);
  await tab.sees("Nothing is stored yet");
  await tab.click("Create a key and fill it in");
  await tab.sees("The key is in the lines below");
  const [{ prefix }] = (await cairn.all("/v1/api_keys?kind=key")).filter(({ name }: any) => name === "first agent");
  for (const [language, says] of [
    ["MCP", `${cairn.address}/mcp --header "X-API-Key: ${prefix}`],
    ["Python", `Cairn("${prefix}`],
    ["TypeScript", `apiKey: "${prefix}`],
    ["curl", `KEY=${prefix}`],
  ] as const) {
    await tab.click(language);
    await tab.holds(`document.querySelector("[aria-label='A first conversation']").textContent.includes(${JSON.stringify(says)})`);
  }
  expect([await tab.accessibilityProblems(), await tab.isTooWide()]).toEqual([[], false]);
  await tab.click("Copy");
  await tab.sees("Copied");
  const commands = await tab.clipboard();
  expect(commands).toContain(cairn.address);
  const shell = Bun.spawn(["bash", "-eu", "-c", commands], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  expect([await shell.exited, await new Response(shell.stderr).text()]).toEqual([0, ""]);
  await tab.sees("remembered: “The customer prefers e-mail to phone calls.”");
  await tab.seesNo("Nothing is stored yet");
  await tab.run(`(document.querySelector(".rows li > a").click(), true)`);
  await tab.sees("The customer prefers e-mail to phone calls.");
});

test("the first conversation can be sent from the page, which then shows its session", async () => {
  await using cairn = await startProcess();
  using tab = await signedInTab(cairn);
  await tab.click("Send them from here");
  for (const text of ["Where is my order?", "The customer prefers e-mail to phone calls.", "order"]) await tab.sees(text);
  await tab.has("#version-1");
  expect(await cairn.all("/v1/sessions")).toMatchObject([{ agent_id: "support-bot", turn_count: 1, memory_count: 1, state_version: 1 }]);
  expect(tab.complaints).toEqual([]);
});

test("it says how much there is and what needs somebody, and what happens appears", async () => {
  await using cairn = await startProcess();
  const { main } = await tellStory(cairn);
  const webhook = await cairn.ok(cairn.post("/v1/webhooks", { url: "http://127.0.0.1:9/hook", events: ["turn.added"] }));
  await cairn.ok(cairn.post(`/v1/webhooks/${webhook.id}/test`, {}));
  await until("the delivery to fail", async () => (await cairn.get(`/v1/webhooks/${webhook.id}`)).body.failing_since !== null);
  using tab = await signedInTab(cairn);
  await tab.seesFlat("1 delivery given up. See which http://127.0.0.1:9/hook ✗ failing for");
  await tab.has("[aria-label='What has failed'].trouble.failed");
  for (const words of [
    "rolled back from state 2 to 1: “The carrier refused the new address.”",
    "remembered: “She is allergic to peanuts and must not eat satay.”",
    "changed the state to 2",
  ])
    await tab.seesFlat(words);
  await tab.seesFlat("sessions 3 turns 5");
  await tab.seesFlat("memories 4");
  await tab.sees("live");
  await tab.holds(`document.querySelector("[aria-label='Requests a minute']") !== null`);
  await tab.run(`(document.querySelector("[aria-label='Requests a minute']").focus(), true)`);
  await tab.press("Home");
  await tab.holds(`/^0 at [0-9][0-9]:[0-9][0-9]$/.test(document.activeElement.getAttribute("aria-valuetext"))`);
  await tab.press("End");
  await tab.holds(`/^[0-9]+ now$/.test(document.activeElement.getAttribute("aria-valuetext"))`);
  const moveTo = (type: string, place: number) =>
    tab.run(`(() => {
      const { left, width } = document.activeElement.getBoundingClientRect();
      document.activeElement.dispatchEvent(new PointerEvent("${type}", { bubbles: true, clientX: left + ${place} * width }));
      return true;
    })()`);
  await moveTo("pointermove", 0.01);
  await tab.holds(`/^Requests a minute0 at /.test(document.activeElement.closest("figure").querySelector("figcaption").textContent)`);
  await moveTo("pointerleave", 0.01);
  await tab.holds(`/ now$/.test(document.activeElement.closest("figure").querySelector("figcaption").textContent)`);
  await tab.click("Last day");
  expect(await tab.run<string>("location.search")).toBe("?span=24h");
  await cairn.ok(cairn.post(`/v1/sessions/${main}/state`, { state: { step: "done" } }));
  await tab.holds(`document.querySelector(".rows .arrived")?.innerText.includes("changed the state to 4")`);
  expect(tab.complaints).toEqual([]);
});

test("actors are named by their keys, and sign-ins stand apart from other changes", async () => {
  await using cairn = await startProcess();
  const { id: keyId, key, prefix } = await cairn.ok(cairn.post("/v1/api_keys", { name: "support agent" }));
  const { id } = await cairn.createSession();
  await cairn.ok(cairn.post(`/v1/sessions/${id}/state`, { state: { step: 1 } }, { "X-API-Key": key }));
  await cairn.ok(cairn.post(`/v1/sessions/${id}/rollback`, { version: 0 }, { "X-API-Key": key }));
  using tab = await signedInTab(cairn);
  await tab.seesFlat(`changed the state to 1, 1 change ${prefix} support agent`);
  await tab.sees("began a session");
  expect(
    await tab.run<number>(`[...document.querySelectorAll(".story-line")].filter((one) => one.title === "api_key.created").length`),
  ).toBe(
    // Of this key; that of the environment was registered before the session.
    (await cairn.all("/v1/traces?action=api_key.created")).filter(({ details }) => details.kind === "key").length,
  );
  await tab.seesNo("signed in");
  await tab.go(`${cairn.address}/dashboard/traces`);
  await tab.seesFlat(`state.rolled_back ${prefix} support agent`);
  await tab.seesNo("signed in");
  await tab.click("Sign-ins");
  await tab.seesFlat("api_key.created signed in");
  await tab.seesNo("state.rolled_back");
  await tab.go(`${cairn.address}/dashboard/sessions/${id}`);
  await tab.seesFlat(`rollback to state 0 · ${prefix} support agent`);
  await tab.click("Compare");
  await tab.has(".sides");
  await tab.seesFlat(`rollback to state 0 · ${prefix} support agent`);
  // Opened directly, after which no other screen has read the names.
  await tab.go(`${cairn.address}/dashboard/compare?a=${id}:1&b=${id}:2`);
  await tab.seesFlat(`rollback to state 0 · ${prefix} support agent`);
  await cairn.ok(cairn.delete(`/v1/api_keys/${keyId}`));
  expect(tab.complaints).toEqual([]);
});

test("changes are found behind more sign-ins than a page has, and the page says that those are left out", async () => {
  await using cairn = await startProcess();
  await cairn.createSession();
  for (let count = 0; count < 60; count++) await cairn.ok(cairn.post("/v1/sign_in", {}));
  using tab = await signedInTab(cairn);
  await tab.sees("began a session");
  await tab.sees("traces of sign-ins");
  await tab.seesNo("Every change appears here as it happens.");
  await tab.go(`${cairn.address}/dashboard/traces`);
  await tab.sees("traces of sign-ins");
  await tab.holds(`document.querySelector(".rows").innerText.includes("session.created")`);
  await tab.run(`(document.querySelector("a[href='/dashboard/traces?show=sign-ins']").click(), true)`);
  await tab.seesFlat("api_key.created signed in");
  await tab.seesNo("session.created");
  expect(tab.complaints).toEqual([]);
});

test("a turn is found by its id among those that were added at the same time to other sessions", async () => {
  await using cairn = await startProcess();
  const sessions = await Promise.all(["a", "b", "c", "d"].map((agent) => cairn.createSession({ agent_id: agent })));
  const said = { type: "text", content: "Hello." };
  const turns: any[] = [];
  await inTurns(
    Array.from({ length: 120 }, (_, index) => sessions[index % 4]?.id),
    32,
    async (id) => {
      turns.push(await cairn.ok(cairn.post(`/v1/sessions/${id}/turns`, { input: said, output: said })));
    },
  );
  using tab = await signedInTab(cairn);
  for (const { id, session_id } of [turns[3], turns[60], turns[119]]) {
    await tab.go(`${cairn.address}/dashboard/go/${id}`);
    await tab.has(`#${id}.target`);
    expect(await tab.run<string>("location.pathname")).toBe(`/dashboard/sessions/${session_id}`);
  }
});

test("an id leads to its record", async () => {
  await using cairn = await startProcess();
  const { main } = await tellStory(cairn);
  const [memory] = await cairn.all(`/v1/memory?session_id=${main}`);
  const [trace] = await cairn.all(`/v1/traces?session_id=${main}`);
  const [turn, nextTurn] = await cairn.all(`/v1/sessions/${main}/turns`);
  const [key] = await cairn.all("/v1/api_keys");
  const webhook = await cairn.ok(cairn.post("/v1/webhooks", { url: "http://127.0.0.1:9/hook", events: ["turn.added"] }));
  const delivery = await cairn.ok(cairn.post(`/v1/webhooks/${webhook.id}/test`, {}));
  const backup = await cairn.ok(cairn.post("/v1/backups", {}));
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: true }));
  await cairn.ok(cairn.post(`/v1/sessions/${main}/context`, { query: "What may she not eat?" }));
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: null }));
  const [retrieval] = await cairn.all(`/v1/sessions/${main}/retrievals`);
  const left = await cairn.createSession({ agent_id: "gone" });
  const kept = await cairn.addMemory(left.id, "This outlives its session.");
  using tab = await signedInTab(cairn);
  await tab.fill("Search everything", memory.id);
  await tab.press("Enter");
  await tab.has(`#${memory.id}.target`);
  const places: [id: string, has: string][] = [
    [main, "#version-0"],
    [turn.id, `#${turn.id}.target`],
    [nextTurn.id, `#${nextTurn.id}.target`],
    [retrieval.id, `#${retrieval.id}.target`],
    [trace.id, ".facts"],
    [key.id, "tbody tr"],
    [webhook.id, ".facts"],
    [delivery.id, ".rows details[open] .attempts"],
    [delivery.event_id, ".rows details[open] .attempts"],
    [backup.id, "tr.target"],
    [kept.id, ".spine"],
    ["user-42", ".counts"],
    ["mem_000000000000", "[role=alert]"],
    ["turn_000000000000", "[role=alert]"],
    ["ret_000000000000", "[role=alert]"],
    ["dlv_000000000000", "[role=alert]"],
    ["evt_000000000000", "[role=alert]"],
    ["bkp_000000000000", "[role=alert]"],
  ];
  for (const [id, has] of places) {
    await tab.go(`${cairn.address}/dashboard/go/${id}`);
    await tab.has(has);
  }
  for (const id of ["nothing", "turn_1", "req_000000000000"]) {
    await tab.go(`${cairn.address}/dashboard/go/${id}`);
    await tab.sees("this one does not");
  }
});
