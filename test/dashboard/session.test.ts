/**
 * The session page of the dashboard, and the comparison of states, in a browser, on the executable.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { signedInTab, type Tab } from "../support/browser.ts";
import { inBrowser as test } from "../support/in-browser.ts";
import { inTurns, startProcess, until, type CairnProcess } from "../support/process.ts";
import { startServer } from "../support/server.ts";
import { tellStory } from "../support/story.ts";

let cairn: CairnProcess;
beforeAll(async () => {
  cairn = await startProcess();
});
afterAll(() => cairn[Symbol.asyncDispose]());

const state = (id: string, value: object) => cairn.ok(cairn.post(`/v1/sessions/${id}/state`, { state: value }));
const turn = (id: string, content: string) =>
  cairn.ok(cairn.post(`/v1/sessions/${id}/turns`, { input: { type: "text", content }, output: { type: "text", content: "Yes." } }));
const entries = (tab: Tab) => tab.run<number>(`document.querySelectorAll(".spine > [data-row]").length`);

async function sessionWithStates(count: number): Promise<string> {
  const { id } = await cairn.createSession({ user_id: "user-7", initial_state: { step: 0 } });
  for (let step = 1; step <= count; step++) await state(id, { step });
  return id;
}

test("a session is one line of time: turns, states with what changed, memories, and forks", async () => {
  const { main, fork } = await tellStory(cairn);
  using tab = await signedInTab(cairn, `/sessions/${main}?order=desc`);
  await tab.has("#version-3");
  const kinds = await tab.run<string[]>(
    `[...document.querySelectorAll(".spine > [data-row]")].map((entry) => entry.className.split(" ")[0])`,
  );
  expect(kinds).toEqual("memory turn version fork turn memory version turn memory version turn version".split(" "));
  for (const text of [
    "The carrier refused the new address.",
    "order.items[1] moved to [0]",
    "3 → 2",
    "✗ error",
    "409 The parcel is out for delivery.",
    "Forked at state 2",
    fork,
    "#health",
  ])
    await tab.seesFlat(text);
  await tab.click("Turns");
  await tab.sees("4 entries, no more");
  expect(await tab.run<string>("location.search")).toBe("?order=desc&kind=turn");
  await tab.choose("Order", "asc");
  await tab.holds(`document.querySelector(".spine > li")?.innerText.includes("Turn 1")`);
  expect(tab.complaints).toEqual([]);
});

test("a context is shown as the agent got it, with what has changed since, and what it found is rated", async () => {
  const { id } = await cairn.createSession({ user_id: "user-9" });
  const { id: memory } = await cairn.ok(cairn.post("/v1/memory", { session_id: id, content: "She lives in Lyon." }));
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: true }));
  const asked = { query: "Where does she live?", format: "text", max_tokens: 500 };
  const { retrieval_id } = await cairn.ok(cairn.post(`/v1/sessions/${id}/context`, asked));
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: false }));
  await cairn.ok(cairn.request("PATCH", `/v1/memory/${memory}`, { content: "She lives in <b>Rome</b>." }));
  using tab = await signedInTab(cairn, `/sessions/${id}`);
  await tab.click("As the agent got it");
  await tab.seesFlat("this is what it said then");
  expect(await tab.run<string>(`document.querySelector(".replay pre").textContent`)).toContain('"She lives in Lyon."');
  await tab.click("Useful", ".retrieval");
  await tab.has(`.rating [aria-pressed="true"]`);
  expect((await cairn.get(`/v1/retrievals/${retrieval_id}`)).body.feedback).toMatchObject({ useful: [memory] });
  for (const [scheme, width] of [
    ["light", 1280],
    ["dark", 360],
  ] as const) {
    await tab.scheme(scheme);
    await tab.resize(width);
    expect({ problems: await tab.accessibilityProblems(), isTooWide: await tab.isTooWide() }).toEqual({ problems: [], isTooWide: false });
  }
  expect(tab.complaints).toEqual([]);
});

test("what was found for a query stands in the line of time, with scores, memories that open, and the turn that came of it", async () => {
  const { id } = await cairn.createSession({ user_id: "user-8" });
  const remember = (content: string) => cairn.ok(cairn.post("/v1/memory", { session_id: id, content }));
  await remember("She is allergic to peanuts.");
  const gone = await remember("She was in Rome.");
  for (let i = 0; i < 6; i++) await remember(`She ate ${i} figs.`);
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: true }));
  await cairn.ok(cairn.post(`/v1/sessions/${id}/context`, { query: "Is she <b>allergic</b>?", memory_limit: 8 }));
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: false }));
  await cairn.ok(cairn.delete(`/v1/memory/${gone.id}`));
  using tab = await signedInTab(cairn, `/sessions/${id}`);
  await tab.seesFlat("Found");
  await tab.seesFlat("context 8 of at most 8");
  for (const text of ["Is she <b>allergic</b>?", "She is allergic to peanuts.", "3 more", "No turn followed yet."])
    await tab.seesFlat(text);
  await tab.click("3 more");
  await tab.seesFlat(`${gone.id} is gone.`);
  for (const [scheme, width] of [
    ["light", 1280],
    ["dark", 360],
  ] as const) {
    await tab.scheme(scheme);
    await tab.resize(width);
    expect({ problems: await tab.accessibilityProblems(), isTooWide: await tab.isTooWide() }).toEqual({ problems: [], isTooWide: false });
  }
  await turn(id, "Is she allergic?");
  await tab.seesFlat("The next turn");
  await state(id, { allergies: 1 });
  await tab.has(".version.joined");
  // What was found, the turn that came of it and the state after it touch each other: one card.
  const edges = await tab.run<number[]>(`[...document.querySelectorAll(".joined")].map((one) =>
    Math.round(Math.abs(one.getBoundingClientRect().top - one.previousElementSibling.getBoundingClientRect().bottom)))`);
  expect(edges).toEqual([1, 1]);
  await tab.click("Edit", ".retrieval li:first-child");
  await tab.fill("Content", "She is allergic to nuts.");
  await tab.click("Save");
  await tab.has(".retrieval");
  await tab.sees("She is allergic to nuts.");
  await tab.click("Found");
  await tab.sees("1 entry, no more");
  await tab.click("She is allergic to nuts.");
  await tab.has(".memory.target");
  expect(tab.complaints).toEqual([]);
});

const BAKING = [
  "**Slowly**, see [the book](https://bread.example/):",
  "- mix",
  "- انتظر",
  "![map](https://bread.example/map.png) [run](javascript:alert(1)) [see](data:text/html,x) <b>bold</b>",
  "```",
  "180 C",
  "```",
].join("\n");

test("a session is read as it happened: tool calls nested, what turns took as chips and as sums, Markdown on request", async () => {
  const { id } = await cairn.createSession({ external_id: "thread-9" });
  const text = (content: string) => ({ type: "text", content });
  const log = (input: object, output: object, metadata: object) =>
    cairn.ok(cairn.post(`/v1/sessions/${id}/turns`, { input, output, metadata }));
  await log(text("How do I bake?"), text(BAKING), {
    model: "small",
    usage: { input_tokens: 400, output_tokens: 12 },
    latency_ms: 820,
    cost: 0.002,
  });
  await log({ type: "tool_call", content: "oven(180)" }, { type: "tool_result", content: "warm" }, { tokens: 88, ms: 80 });
  using tab = await signedInTab(cairn, `/sessions/${id}`);
  await tab.has(".turn.tool");
  await tab.seesFlat("In 2 turns: 500 tokens 900 ms cost 0.002");
  for (const chip of ["small", "412 tokens", "820 ms", "thread-9"]) await tab.seesFlat(chip);
  const names = () => tab.run<string[]>(`[...document.querySelectorAll(".spine h2")].map((name) => name.textContent)`);
  expect(await names()).toEqual(["State 0", "Turn 1", "Turn 2"]);
  await tab.click("Markdown");
  expect(
    await tab.run<string[]>(`[...document.querySelector(".markdown").querySelectorAll("b, li, pre, a")].map((one) => one.textContent)`),
  ).toEqual(["Slowly", "the book", "mix", "انتظر", "map", "180 C"]);
  // What is no mark stays as it was written, without a link or an image; what is from the right begins there.
  await tab.seesFlat("[run](javascript:alert(1)) [see](data:text/html,x) <b>bold</b>");
  expect(
    await tab.run<string[]>(
      `[...document.querySelectorAll(".markdown :is(a, img, li)")].map((one) => one.href ?? getComputedStyle(one).direction)`,
    ),
  ).toEqual(["https://bread.example/", "ltr", "rtl", "https://bread.example/map.png"]);
  expect(await tab.accessibilityProblems()).toEqual([]);
  await turn(id, "And then?");
  await tab.sees("And then?");
  expect(await names()).toEqual(["State 0", "Turn 1", "Turn 2", "Turn 3"]);
  expect(tab.complaints).toEqual([]);
});

test("rolling back says what will change, and a toast offers the way back", async () => {
  const id = await sessionWithStates(2);
  using tab = await signedInTab(cairn, `/sessions/${id}`);
  await tab.click("Roll back to here", "#version-0");
  await tab.seesFlat("step 2 → 0");
  await tab.fill("Reason", "It went wrong.");
  await tab.click("Roll back");
  await tab.has("#version-3");
  await tab.sees("It went wrong.");
  await tab.click("Undo");
  await tab.has("#version-4");
  expect((await cairn.get(`/v1/sessions/${id}`)).body).toMatchObject({ state: { step: 2 }, state_version: 4 });
});

test("turns that a rollback has hidden stand in the line of time, muted and with when, until another one shows them again", async () => {
  const id = await sessionWithStates(0);
  await turn(id, "Is this first?");
  await state(id, { step: 1 });
  await turn(id, "Is this later?");
  using tab = await signedInTab(cairn, `/sessions/${id}?order=desc`);
  const isMuted = `[...document.querySelectorAll(".turn")].map((one) => one.classList.contains("rolled-back")).join()`;
  for (const kind of ["All", "Turns"]) {
    await tab.click(kind);
    await tab.holds(`${isMuted} === "false,false"`);
    await cairn.ok(cairn.post(`/v1/sessions/${id}/rollback`, { version: 0, turns: "hide" }));
    await tab.holds(`${isMuted} === "true,false"`);
    await tab.seesFlat("rolled back");
    expect(await tab.accessibilityProblems()).toEqual([]);
    await cairn.ok(cairn.post(`/v1/sessions/${id}/rollback`, { version: 1, turns: "hide" }));
    await tab.holds(`${isMuted} === "false,false"`);
  }
  expect(tab.complaints).toEqual([]);
});

test("a rollback that somebody was faster than changes nothing, names the current version, and works when it is tried again", async () => {
  const id = await sessionWithStates(2);
  using tab = await signedInTab(cairn, `/sessions/${id}`);
  await tab.click("Roll back to here", "#version-1");
  await tab.seesFlat("step 2 → 1");
  await state(id, { step: 30 });
  await tab.click("Roll back");
  await tab.has("dialog [role=alert]");
  await tab.sees("version 3");
  expect((await cairn.get(`/v1/sessions/${id}`)).body).toMatchObject({ state: { step: 30 }, state_version: 3 });
  await tab.seesFlat("step 30 → 1");
  await tab.click("Roll back");
  await tab.has("#version-4");
});

test("an edited state is checked while one writes it, and what others have changed meanwhile is not overwritten", async () => {
  const id = await sessionWithStates(1);
  using tab = await signedInTab(cairn, `/sessions/${id}`);
  await tab.click("Edit state");
  await tab.fill("State", '{"step": ');
  await tab.has("dialog button.primary:disabled");
  await tab.has("dialog [aria-invalid=true]");
  await tab.fill("State", '{"step": 5}');
  await tab.fill("Reasoning", "By hand.");
  await state(id, { step: 2 });
  await tab.sees("Save as state 2");
  await tab.click("Save as state 2");
  await tab.has("dialog [role=alert]");
  await tab.sees("Save as state 3");
  await tab.click("Save as state 3");
  await tab.sees("By hand.");
  expect((await cairn.get(`/v1/sessions/${id}`)).body).toMatchObject({ state: { step: 5 }, state_version: 3 });
});

test("a fork opens, and says where it comes from", async () => {
  const id = await sessionWithStates(2);
  using tab = await signedInTab(cairn, `/sessions/${id}`);
  const noted = await cairn.addMemory(id, "The parcel is in Oslo.");
  await tab.click("Fork from here", "#version-1");
  await tab.sees("This one stays as it is.");
  await tab.click("With the memories of now");
  await tab.click("Fork", "dialog");
  await tab.sees("Forked from state 1");
  await tab.sees("at state 1");
  const path = await tab.run<string>("location.pathname");
  expect(path).not.toContain(id);
  const fork = path.slice(path.lastIndexOf("/") + 1);
  expect((await cairn.all(`/v1/memory?session_id=${fork}`)).map((memory) => memory.id)).toEqual([noted.id]);
  expect((await cairn.all(`/v1/sessions/${fork}/turns`)).length).toBe(0);
  await tab.back();
  await tab.sees("Forked at state 1");
});

/** What the page asked for of the timeline, in the order of the answers, but for what it asks every few seconds. */
const asked = (tab: Tab) =>
  tab.requests
    .filter(({ url }) => url.includes("/timeline?"))
    .map(({ url }) => Object.fromEntries(new URL(url).searchParams))
    .filter(({ kinds }) => kinds !== "retrieval,fork");
const ENTRIES = 5_000;

test("of five thousand entries only some are asked for, and in the document, however far one reads; a new one costs one request", async () => {
  const { id } = await cairn.createSession();
  const numbers = Array.from({ length: ENTRIES - 1 }, (_, index) => index + 1);
  await inTurns(numbers, 32, async (number) => void (await (number % 50 === 0 ? state(id, { number }) : turn(id, `Question ${number}.`))));
  using tab = await signedInTab(cairn, `/sessions/${id}`);
  await tab.has(".spine > li");
  await tab.sees("● live");
  expect(await entries(tab)).toBeLessThanOrEqual(100);
  expect(new Set(tab.requests.map(({ url }) => url).filter((url) => url.includes("/v1/"))).size).toBeLessThanOrEqual(10);

  // A thousand entries further down.
  await tab.holds(`(scrollTo(0, document.body.scrollHeight), document.querySelectorAll(".spine").length >= 20)`);
  await tab.holds(`document.querySelectorAll(".spine > [data-row]").length <= 600`);
  const pages = asked(tab);
  expect(pages.filter(({ limit }) => limit !== "50")).toEqual([]);
  expect(new Set(pages.map(({ starting_after }) => starting_after)).size).toBe(pages.length);
  expect(pages.length).toBeLessThanOrEqual(25);

  await tab.holds(`(scrollTo(0, 0), document.querySelector(".spine").children.length > 1 && scrollY === 0)`);
  await tab.run(`(window.added = 0, new MutationObserver((records) => {
    for (const { addedNodes } of records) for (const node of addedNodes) window.added += node.querySelectorAll?.("*").length ?? 0;
  }).observe(document.querySelector(".spine"), { childList: true, subtree: true }), true)`);
  await turn(id, "And now?");
  await tab.sees("And now?");
  expect(asked(tab).filter(({ order }) => order === "asc")).toEqual([expect.objectContaining({ limit: "100" })]);
  expect(await tab.run<number>("window.added")).toBeLessThan(50);

  await tab.fill("Turn to go to", "2500");
  await tab.press("Enter");
  await tab.holds(
    `document.activeElement.matches(".turn.target") && document.activeElement.querySelector("h2").textContent === "Turn 2,500"`,
  );
  await tab.choose("Go to a", "version");
  await tab.fill("State to go to", "99999");
  await tab.press("Enter");
  await tab.sees("There is no such state.");
  await tab.fill("State to go to", "40");
  await tab.press("Enter");
  await tab.holds(`document.activeElement.matches("#version-40.target")`);

  // The scale says when what is read was, and goes to any time without reading what is between.
  const scale = `document.querySelector("[aria-label='Time in the session']")`;
  const before = asked(tab).length;
  await tab.choose("Time in the session", await tab.run<string>(`${scale}.min`));
  await tab.sees("This starts at the linked entry.");
  await tab.holds(`document.querySelector(".spine h2")?.textContent === "State 0"`);
  expect(asked(tab).length - before).toBeLessThanOrEqual(2);
  await tab.click("From the newest");
  await tab.sees("And now?");
  await tab.holds(`(scrollTo(0, 600), scrollY > 0 && Number(${scale}.max) - Number(${scale}.value) < 60_000)`);

  const middle = (await cairn.ok(cairn.get(`/v1/sessions/${id}/turns?limit=100`))).data.at(-1);
  await tab.go(`${cairn.address}/dashboard/sessions/${id}#${middle.id}`);
  await tab.has(`#${middle.id}.target`);
  await tab.holds(`document.activeElement.id === "${middle.id}"`);
  expect(await entries(tab)).toBeLessThanOrEqual(100);
  await tab.click("From the newest");
  await tab.sees("And now?");

  // What comes while one reads further down is at the top, whether it came one by one or was more than that.
  await tab.holds(`(scrollTo(0, document.body.scrollHeight), document.querySelectorAll(".spine").length >= 12)`);
  await inTurns(Array.from({ length: 150 }), 32, async () => void (await turn(id, "Again and again.")));
  await turn(id, "The last one.");
  await tab.holds(`(scrollTo(0, 0), document.body.innerText.includes("The last one."))`);
});

test("the first entry of a kind appears where there was none", async () => {
  const { id } = await cairn.createSession();
  using tab = await signedInTab(cairn, `/sessions/${id}?kind=memory`);
  await tab.sees("Nothing here");
  await cairn.addMemory(id, "The first one.");
  await tab.sees("The first one.");
});

test("of many that come at once none is missing", async () => {
  const { id } = await cairn.createSession();
  using tab = await signedInTab(cairn, `/sessions/${id}?order=desc`);
  await tab.sees("● live");
  for (const last of [60, 120, 180, 400]) {
    const count = (await cairn.get(`/v1/sessions/${id}`)).body.turn_count;
    await inTurns(Array.from({ length: last - count }), 32, async () => void (await turn(id, "Again.")));
    await tab.sees(`Turn ${last}`);
    const shown = await tab.run<string[]>(`[...document.querySelectorAll(".spine > .turn h2")].map((name) => name.textContent)`);
    expect(shown).toEqual(shown.map((_, index) => `Turn ${last - index}`));
  }
});

test("a link to a version is scrolled to and marked, in either order", async () => {
  const id = await sessionWithStates(120);
  using tab = await signedInTab(cairn, `/sessions/${id}#version-3`);
  for (const order of ["desc", "asc"]) {
    await tab.go(`${cairn.address}/dashboard/sessions/${id}?order=${order}#version-3`);
    await tab.has("#version-3.target");
    await tab.holds(
      `(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.querySelector("#version-3").getBoundingClientRect())`,
    );
  }
});

test("what an agent adds appears, and only what is new is asked for", async () => {
  const id = await sessionWithStates(60);
  using tab = await signedInTab(cairn, `/sessions/${id}?order=desc`);
  await tab.has("#version-60");
  await turn(id, "Are you there?");
  await tab.sees("Are you there?");
  await tab.holds(`document.querySelector("#version-60") !== null && document.querySelector(".arrived") !== null`);
  const moves = `getComputedStyle(document.querySelector(".arrived")).animationName`;
  expect(await tab.run<string>(moves)).toBe("arrive");
  await tab.reduceMotion();
  await tab.holds(`${moves} === "none"`);
  expect(asked(tab).filter(({ starting_after }) => starting_after === undefined).length).toBe(1);
});

test("what is found, and a fork, appear without a reload, though neither changes the session", async () => {
  const id = await sessionWithStates(1);
  await cairn.addMemory(id, "She is allergic to peanuts.");
  using tab = await signedInTab(cairn, `/sessions/${id}`);
  await tab.has("#version-1");
  await tab.sees("● live");
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, { version: 1 }));
  await tab.seesFlat(`Forked at state 1 to ${fork.id}`);
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: true }));
  await cairn.ok(cairn.post(`/v1/sessions/${id}/context`, { query: "What may she not eat?" }));
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: false }));
  await tab.sees("What may she not eat?");
  expect(tab.complaints).toEqual([]);
});

test("a pause of more than five minutes is shown", async () => {
  await using server = await startServer();
  const { cairn } = server;
  const { id } = await cairn.createSession();
  await cairn.addTurn(id);
  cairn.clock.advance({ hours: 2, seconds: 1 });
  await cairn.addTurn(id);
  cairn.clock.advance({ seconds: 60 });
  await cairn.addTurn(id);
  using tab = await signedInTab({ address: `http://127.0.0.1:${server.port}`, key: cairn.key }, `/sessions/${id}`);
  await tab.sees("2 h later");
  expect(await tab.run<number>(`document.querySelectorAll(".gap").length`)).toBe(1);
});

test("a key that may only read sees no actions", async () => {
  const id = await sessionWithStates(1);
  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["read"] }));
  using tab = await signedInTab(cairn, `/sessions/${id}`, key);
  await tab.has("#version-1");
  await tab.sees("may read");
  for (const action of ["Roll back to here", "Fork from here", "Edit state", "API keys"]) await tab.seesNo(action);
  await tab.sees("Compare with 1");
});

test("two states are compared, equal ones are called so, and forks list each other", async () => {
  const { main, fork } = await tellStory(cairn);
  using tab = await signedInTab(cairn, `/compare?a=${main}:1&b=${main}:2`);
  await tab.sees("4 changes");
  await tab.seesFlat("↕ order.items[1]");
  await tab.click("Copy as JSON");
  await tab.sees("Copied");
  expect(JSON.parse(await tab.clipboard())).toMatchObject({ a: `${main}:1`, changes: { length: 4 } });
  await tab.click("Later state A");
  await tab.sees("The two states are the same.");
  await tab.holds(
    `[...document.querySelectorAll("[aria-label='Session B'] option")].some((option) => option.text === "${fork} (fork of state 2)")`,
  );
  await tab.choose("Session B", fork);
  await tab.sees("2 changes");
  await tab.seesFlat("+ parcel");
  expect(await tab.run<string>("location.search")).toBe(`?a=${main}%3A2&b=${fork}%3A1`);
  await tab.holds(
    `[...document.querySelectorAll("[aria-label='Session B'] option")].some((option) => option.text === "${main} (forked from)")`,
  );
  const sibling = await cairn.ok(cairn.post(`/v1/sessions/${main}/fork`, { version: 1 }));
  await tab.go(`${cairn.address}/dashboard/compare?a=${main}:1&b=${fork}:1`);
  await tab.holds(
    `[...document.querySelectorAll("[aria-label='Session B'] option")].some((option) => option.text === "${sibling.id} (other fork of its state 1)")`,
  );
  await tab.click("Only changes");
  await tab.has("[aria-label='State B']");
  expect(tab.complaints).toEqual([]);
});

test("metadata is changed, and a session is deleted with a reason", async () => {
  const { id } = await cairn.createSession({ metadata: { channel: "chat", old: 1 } });
  using tab = await signedInTab(cairn, `/sessions/${id}`);
  await tab.click("More actions");
  await tab.click("Metadata and expiry");
  await tab.fill("Metadata", '{"channel": "phone"}');
  await tab.fill("Expires in hours from now", "48");
  await tab.click("Save");
  await tab.sees("Session saved");
  // The page looks for what is new then; it must not ask while the session goes.
  await until("the timeline to be read again", () => asked(tab).some(({ starting_after }) => starting_after !== undefined));
  const { metadata, ttl_expires_at } = (await cairn.get(`/v1/sessions/${id}`)).body;
  expect(metadata).toEqual({ channel: "phone" });
  expect(Date.parse(ttl_expires_at)).toBeGreaterThan(Date.now() + 47 * 3_600_000);
  await tab.click("More actions");
  await tab.click("Delete", ":popover-open");
  await tab.fill("Reason", "Done.");
  await tab.click("Delete", "dialog");
  await tab.sees("Session deleted");
  expect(await tab.run<string>("location.pathname")).toBe("/dashboard/sessions");
  expect((await cairn.get(`/v1/sessions/${id}`)).status).toBe(404);
  expect(tab.complaints).toEqual([]);
});
