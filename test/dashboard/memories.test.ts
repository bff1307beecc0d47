/**
 * Memories and the search playground of the dashboard, in a browser, on the executable.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { signedInTab, type Tab } from "../support/browser.ts";
import { BROWSER, inBrowser as test } from "../support/in-browser.ts";
import { CURL, needs } from "../support/platform.ts";
import { startProcess, type CairnProcess } from "../support/process.ts";
import { tellStory, type Story } from "../support/story.ts";

let cairn: CairnProcess;
let story: Story;
beforeAll(async () => {
  cairn = await startProcess();
  story = await tellStory(cairn);
});
afterAll(() => cairn[Symbol.asyncDispose]());

const QUESTION = "what may she not eat";
const summary = (tab: Tab) => tab.run<string>(`document.querySelector(".threshold [role=status]").textContent`);
const passing = (tab: Tab) => tab.run<number>(`document.querySelectorAll(".matches:not(.below) > li").length`);

/** Moves the slider as its keys do. */
const moveTo = (tab: Tab, value: number) =>
  tab.run(`(() => {
    const slider = document.querySelector("[type=range]");
    slider.value = ${value};
    for (const type of ["input", "change"]) slider.dispatchEvent(new Event(type, { bubbles: true }));
    return true;
  })()`);

test("a search says which memories pass, what the best has, and why; moving the threshold asks nothing", async () => {
  using tab = await signedInTab(cairn, "/memories");
  await tab.fill("Search memories", QUESTION);
  await tab.press("Enter");
  await tab.sees("1 of 4 passes; the best has 0.9");
  await tab.sees("eat = eat 100 %");
  const searches = () => tab.requests.filter(({ url }) => url.includes("/memory/search")).length;
  const asked = searches();
  await moveTo(tab, 1);
  await tab.sees("0 of 4 pass; the best has 0.9");
  await tab.sees("1 passes at 0.50");
  await moveTo(tab, 0);
  await tab.sees("4 of 4 pass");
  expect([await passing(tab), searches()]).toEqual([4, asked]);
  expect(await tab.run<string>("location.search")).toBe("?q=what+may+she+not+eat&threshold=0");
});

needs(BROWSER, CURL)("the request that is copied gives the same answer", async () => {
  using tab = await signedInTab(cairn, `/memories?q=${encodeURIComponent(`${QUESTION}, she's asked`)}&threshold=0.2&user_id=user-42`);
  await tab.has(".matches > li");
  const shown = await tab.run<string[]>(`[...document.querySelectorAll(".matches:not(.below) .text")].map((text) => text.textContent)`);
  await tab.click("Copy as request");
  await tab.sees("Copied");
  const command = await tab.clipboard();
  const shell = Bun.spawn(["bash", "-c", command], { env: { ...process.env, KEY: cairn.key }, stdout: "pipe", stderr: "pipe" });
  const { data } = (await new Response(shell.stdout).json()) as { data: { content: string }[] };
  expect(data.map(({ content }) => content)).toEqual(shown);
  expect(await summary(tab)).toStartWith(`${shown.length} of 3 pass`);
});

test("what a search finds is put right where it is found", async () => {
  const { id } = await cairn.addMemory(story.fork, "The warehouse is closed on Monday.");
  await cairn.ok(cairn.request("PATCH", `/v1/memory/${id}`, { metadata: { kept: true } }));
  using tab = await signedInTab(cairn, `/memories?q=${encodeURIComponent("when is the warehouse closed")}&session_id=${story.fork}`);
  await tab.sees("1 of 1 passes");
  await tab.click("Edit");
  await tab.fill("Content", "The warehouse is closed on Sunday.");
  await tab.click("Save");
  await tab.sees("closed on Sunday.");
  expect((await cairn.get(`/v1/memory/${id}`)).body).toMatchObject({
    content: "The warehouse is closed on Sunday.",
    metadata: { kept: true },
  });
  await tab.click("Delete");
  await tab.click("Delete", "dialog");
  await tab.sees("No memory that search can find passes the filters.");
  expect((await cairn.get(`/v1/memory/${id}`)).status).toBe(404);
  expect(tab.complaints).toEqual([]);
});

test("a memory is added, changed and deleted with a reason", async () => {
  using tab = await signedInTab(cairn, `/memories?session_id=${story.fork}`);
  await tab.sees("No memory matches");
  await tab.click("Add a memory");
  await tab.fill("Content", "The third bulb is sent on its own.");
  await tab.fill("Tags", "parcel, bulb");
  await tab.fill("Metadata", "[]");
  await tab.sees("This has to be a JSON object");
  await tab.fill("Metadata", '{"from": "dashboard"}');
  await tab.click("Add");
  await tab.sees("1 memory, no more");
  await tab.sees("#parcel");
  await tab.click("Edit");
  await tab.fill("Content", "The third bulb was sent on its own.");
  await tab.fill("Metadata", "{}");
  await tab.click("Save");
  await tab.sees("The third bulb was sent");
  const [memory] = await cairn.all(`/v1/memory?session_id=${story.fork}`);
  expect(memory).toMatchObject({ content: "The third bulb was sent on its own.", tags: ["parcel", "bulb"], metadata: {} });
  await tab.click("Delete");
  await tab.fill("Reason", "No longer true.");
  await tab.click("Delete");
  await tab.sees("No memory matches");
  const [trace] = await cairn.all("/v1/traces?action=memory.deleted");
  expect(trace.details).toMatchObject({ memory_id: memory.id, reason: "No longer true." });
  expect(tab.complaints).toEqual([]);
});

test("a change whose answer was lost is made once, however often it is sent", async () => {
  using tab = await signedInTab(cairn, "/memories?user_id=once");
  await tab.click("Add a memory");
  await tab.fill("User", "once");
  await tab.fill("Content", "The line was cut.");
  await tab.run(`(window.fetch = ((fetch) => (request, ...rest) => {
    if (request.method !== "POST") return fetch(request, ...rest);
    window.fetch = fetch;
    return fetch(request, ...rest).then(() => Promise.reject(new TypeError("cut")));
  })(fetch), true)`);
  await tab.click("Add");
  await tab.has("dialog .problem");
  await tab.click("Add");
  await tab.sees("1 memory, no more");
  const added = await cairn.all("/v1/memory?user_id=once");
  expect(added.map(({ content }: any) => content)).toEqual(["The line was cut."]);
  await cairn.ok(cairn.post("/v1/memory/forget", { filter: { user_id: "once" }, dry_run: false }));
});

test("a memory says whether it holds, and its history leads from what it said before to what took its place", async () => {
  const add = (content: string, more: object) => cairn.ok(cairn.post("/v1/memory", { user_id: "mover", content, ...more }));
  const old = await add("Lives in Lion.", { pinned: true });
  await cairn.ok(cairn.request("PATCH", `/v1/memory/${old.id}`, { content: "Lives in Lyon.", reason: "A slip of the pen." }));
  const next = await add("Lives in Nice.", { supersedes: [old.id], expires_at: "2100-01-01T00:00:00.000Z" });
  await add("Lives in Paris.", { valid_from: "2099-01-01T00:00:00.000Z" });
  using tab = await signedInTab(cairn, "/memories?user_id=mover&status=all");
  await tab.sees(`superseded by ${next.id}`);
  const facts = await tab.run<string[]>(`[...document.querySelectorAll(".cards > li")].map((item) =>
    [...item.querySelectorAll(".kind")].map(({ textContent }) => textContent).join(" "))`);
  expect(facts).toEqual(["general future", "general", "general pinned past"]);
  await tab.sees(`supersedes ${old.id}`);

  await tab.click("History", ".cards > li:last-child");
  await tab.sees("Lives in Lion.");
  await tab.sees("A slip of the pen.");
  await tab.click(next.id, "dialog");
  await tab.sees("Supersedes");
  await tab.click(old.id, "dialog");
  await tab.sees("Superseded by");
  expect(await tab.accessibilityProblems()).toEqual([]);
  expect(tab.complaints).toEqual([]);
  // Other tests count what there is.
  await cairn.ok(cairn.post("/v1/memory/forget", { filter: { user_id: "mover" }, dry_run: false }));
});

test("a search that finds nothing says what came nearest and at which threshold, and why a memory is missing; one is superseded", async () => {
  const add = (content: string, more: object) => cairn.ok(cairn.post("/v1/memory", { user_id: "eater", content, ...more }));
  const old = await add("Lives in Lyon.", { tags: ["home"] });
  const other = await add("Eats satay.", { type: "fact" });
  using tab = await signedInTab(cairn, "/memories?q=zebra&user_id=eater&type=general&threshold=0.9");
  await tab.sees("An agent finds nothing with this threshold.");
  await tab.click("Why is a memory not found?");
  const why = async (id: string) => {
    await tab.fill("Memory that is missing", id);
    await tab.click("Why");
  };
  await why(old.id);
  await tab.seesFlat("below the threshold of 0.90");
  await why(other.id);
  await tab.sees("The search is for the type general; it has fact.");
  expect(await tab.accessibilityProblems()).toEqual([]);
  await tab.run(`([...document.querySelectorAll(".trouble button")].at(0).click(), true)`);
  await tab.seesFlat("1 of 1 passes");
  await tab.click("Supersede");
  await tab.fill("What holds now", "Lives in Nice.");
  await tab.fill("Reason", "She moved.");
  await tab.click("Supersede");
  await tab.sees("Superseded");
  await tab.sees("Lives in Nice.");
  const [next] = await cairn.all("/v1/memory?user_id=eater&type=general");
  expect(next).toMatchObject({ content: "Lives in Nice.", tags: ["home"], supersedes: [old.id] });
  await why(old.id);
  await tab.sees("It is past: superseded, the search is for current ones.");
  expect(tab.complaints).toEqual([]);
  await cairn.ok(cairn.post("/v1/memory/forget", { filter: { user_id: "eater" }, dry_run: false }));
});

test("why a memory is missing is said of those, too, that a fork has from its parent", async () => {
  const { id: parent } = await cairn.createSession();
  const memory = await cairn.addMemory(parent, "Lives in Lyon.");
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${parent}/fork`, { memories: "session" }));
  const later = await cairn.addMemory(parent, "Lives in Nice.");
  using tab = await signedInTab(cairn, `/memories?q=zebra&session_id=${fork.id}&threshold=0.9`);
  await tab.click("Why is a memory not found?");
  for (const [id, reason] of [
    [memory.id, "below the threshold of 0.90"],
    [later.id, `The search is for the session ${fork.id}; it has ${parent}.`],
  ] as const) {
    await tab.fill("Memory that is missing", id);
    await tab.click("Why");
    await tab.seesFlat(reason);
  }
  expect(tab.complaints).toEqual([]);
  for (const id of [parent, fork.id]) await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
});

test("a search takes a filter as the API does, and says at the field what is wrong with it", async () => {
  using tab = await signedInTab(cairn, `/memories?q=${encodeURIComponent(QUESTION)}`);
  await tab.fill("Filter", '{"type": "fa');
  await tab.has("[name=filter][aria-invalid=true]");
  await tab.fill("Filter", '{"tags": {"$contains": "health"}}');
  await tab.press("Enter");
  await tab.sees("1 of 1 passes");
  await tab.fill("Filter", '{"importance": {"$near": 1}}');
  await tab.press("Enter");
  await tab.has(".fault");
  expect(await tab.run<string>(`document.querySelector(".fault").textContent`)).toContain("$near");
  expect(await tab.run<number>("innerWidth - document.documentElement.scrollWidth")).toBe(0);
});

test("what a search of a user found is rated where it stands, and taken back by the same click", async () => {
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: true }));
  const { id } = await cairn.ok(cairn.post("/v1/memory", { user_id: "rated", content: "The gate code is on the fridge." }));
  using tab = await signedInTab(cairn, `/memories?q=${encodeURIComponent("where is the gate code")}&user_id=rated`);
  await tab.click("Useful", ".matches");
  await tab.has(`.rating [aria-pressed="true"]`);
  const feedback = async () => (await cairn.all("/v1/retrievals?user_id=rated"))[0].feedback;
  expect(await feedback()).toMatchObject({ useful: [id], not_useful: [] });
  await tab.click("Not useful", ".matches");
  await tab.has(`.rating button:last-child[aria-pressed="true"]`);
  expect(await feedback()).toMatchObject({ useful: [], not_useful: [id] });
  await tab.click("Not useful", ".matches");
  await tab.holds(`document.querySelector('.rating [aria-pressed="true"]') === null`);
  expect(await feedback()).toMatchObject({ useful: [], not_useful: [] });
  expect(await tab.accessibilityProblems()).toEqual([]);
  expect(tab.complaints).toEqual([]);
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: false }));
  await cairn.ok(cairn.delete(`/v1/memory/${id}`));
});

test("memories that pass the filters are counted first, and exactly those are forgotten", async () => {
  const add = (content: string, more: object) => cairn.ok(cairn.post("/v1/memory", { user_id: "leaver", content, ...more }));
  const kept = await add("The contract is signed.", { type: "fact" });
  for (let i = 0; i < 12; i++) await add(`Asked about the weather, ${i}.`, { type: "event", metadata: { day: i } });
  using tab = await signedInTab(cairn, "/memories");
  await tab.sees("Add a memory");
  expect(await tab.run<boolean>(`document.body.innerText.includes("Forget")`)).toBe(false);
  await tab.fill("User", "leaver");
  await tab.press("Enter");
  await tab.fill("Filter", '{"type": "event", "metadata.day": {"$gte": 1}}');
  await tab.press("Enter");
  await tab.sees("11 memories, no more");
  await tab.click("Forget …");
  await tab.seesFlat("11 memories. Nothing is deleted yet.");
  await tab.seesFlat("and 1 other");
  expect(await tab.accessibilityProblems()).toEqual([]);
  const late = await add("Asked about the weather, late.", { type: "event", metadata: { day: 5 } });
  const [changed] = await cairn.all('/v1/memory?user_id=leaver&type=event&limit=2&filter={"metadata.day":11}');
  await cairn.ok(cairn.request("PATCH", `/v1/memory/${changed.id}`, { content: "Asked about the sea." }));
  await tab.fill("Reason", "The user left.");
  await tab.click("Forget 11 memories");
  await tab.sees("Nothing was deleted.");
  await tab.click("Count again");
  await tab.seesFlat("12 memories. Nothing is deleted yet.");
  await tab.click("Forget 12 memories");
  await tab.sees("12 memories forgotten");
  const left = await cairn.all("/v1/memory?user_id=leaver");
  expect(left.map(({ content }: any) => content)).toEqual(["Asked about the weather, 0.", "The contract is signed."]);
  const traces = await cairn.all(`/v1/traces?action=memory.deleted&user_id=leaver`);
  expect(traces.find(({ details }: any) => details.memory_id === late.id)?.details.reason).toBe("The user left.");
  expect(tab.complaints.filter((one) => !one.includes("409"))).toEqual([]);
  await cairn.ok(cairn.post("/v1/memory/forget", { filter: { user_id: kept.user_id }, dry_run: false }));
});

test("what the server refuses stands at the field", async () => {
  using tab = await signedInTab(cairn, "/memories");
  await tab.click("Add a memory");
  await tab.fill("Session", "sess_nothing");
  await tab.fill("Content", "x");
  await tab.fill("Type", "t".repeat(200));
  await tab.click("Add");
  await tab.has("[name=type][aria-invalid=true]");
});

test("a text of a language that is written from the right begins at the right, next to others that do not", async () => {
  await using own = await startProcess();
  const { id } = await own.createSession();
  await own.addMemory(id, "آنا لديها حساسية من الفول السوداني");
  await own.addMemory(id, "Anna is allergic to peanuts");
  using tab = await signedInTab(own, "/memories");
  await tab.sees("Anna is allergic to peanuts");
  const sides = await tab.run<string[]>(`[...document.querySelectorAll(".text")].map((text) => {
    const line = document.createRange();
    line.selectNodeContents(text);
    const [words, box] = [line.getBoundingClientRect(), text.getBoundingClientRect()];
    return words.left - box.left > box.right - words.right ? "right" : "left";
  })`);
  expect(sides).toEqual(["left", "right"]);
});
