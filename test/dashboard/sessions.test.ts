/**
 * The lists of sessions and traces of the dashboard, in a browser, on the executable.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { signedInTab, type Tab } from "../support/browser.ts";
import { inBrowser as test } from "../support/in-browser.ts";
import { startProcess, type CairnProcess } from "../support/process.ts";
import { startReceiver } from "../support/receiver.ts";
import { tellMainStory, type MainStory } from "../support/story.ts";

let cairn: CairnProcess;
let story: MainStory;
beforeAll(async () => {
  cairn = await startProcess();
  story = await tellMainStory(cairn);
});
afterAll(() => cairn[Symbol.asyncDispose]());

const shown = (tab: Tab) => tab.run<string[]>(`[...document.querySelectorAll("tbody code")].map((id) => id.textContent)`);

test("sessions are filtered by agent, user and what they were forked from, and the address says how", async () => {
  using tab = await signedInTab(cairn, `/compare?a=${story.main}:1&b=${story.main}:2`);
  await tab.holds(`[...document.querySelectorAll("option")].some((option) => option.text.includes("fork of state"))`);
  await tab.click("Sessions");
  await tab.sees("2 sessions, no more");
  await tab.fill("Forks of", story.main);
  await tab.sees("1 session, no more");
  expect(await shown(tab)).toEqual([story.fork]);
  expect(await tab.run<string>("location.search")).toBe(`?forked_from=${story.main}`);
  await tab.holds(`(document.querySelector("[name=user_id]").focus(), document.querySelector("option[value=user-42]") !== null)`);
  await tab.fill("User", "nobody");
  await tab.sees("No session matches");
  await tab.click("Clear");
  await tab.sees("2 sessions, no more");
});

test("a session is listed by what was said first in it, with its name or id, and marks for a fork and a rollback", async () => {
  const named = await cairn.createSession({ agent_id: "namer", external_id: "thread-7" });
  await cairn.ok(
    cairn.post(`/v1/sessions/${named.id}/turns`, {
      input: { type: "text", content: "Can I bring my dog?" },
      output: { type: "text", content: "Yes, a small one." },
    }),
  );
  using tab = await signedInTab(cairn, "/sessions");
  await tab.seesFlat("Hi, where is my order A-17?");
  const stories = await tab.run<string[]>(
    `[...document.querySelectorAll(".story .title")].map((one) => one.innerText.replace(/\\s+/g, " "))`,
  );
  expect(stories).toEqual([
    "Can I bring my dog? thread-7",
    `Fork without turns of its own ${story.fork} fork`,
    `Hi, where is my order A-17? ${story.main} rolled back`,
  ]);
  await tab.fill("External id", "thread-7");
  await tab.sees("1 session, no more");
  await tab.click("Clear");
  await tab.click("24 h");
  await tab.sees("3 sessions, no more");
  expect(await tab.run<string>("location.search")).toBe("?since=24h");
  expect(tab.requests.some(({ url }) => url.includes("created_after="))).toBe(true);
  await tab.fill("Search what was said", "small dog");
  await tab.press("Enter");
  await tab.sees("1 turn, no more");
  await tab.click("Can I bring my dog?");
  await tab.has(".turn.target");
  await cairn.ok(cairn.delete(`/v1/sessions/${named.id}`));
  expect(tab.complaints).toEqual([]);
});

test("sessions are sorted by any column, either way, and the address says how; on a phone too", async () => {
  const quiet = await cairn.createSession({ agent_id: "another-bot" });
  using tab = await signedInTab(cairn, "/sessions");
  await tab.sees("3 sessions, no more");
  const ids = [story.main, story.fork, quiet.id];
  const inOrder = (...places: number[]) =>
    tab.holds(
      `[...document.querySelectorAll("tbody code")].map((id) => id.textContent).join() === "${places.map((place) => ids[place]).join()}"`,
    );
  await inOrder(2, 1, 0);
  await tab.click("Turns");
  await inOrder(0, 2, 1);
  await tab.has("th[aria-sort=descending]");
  expect(await tab.run<string>("location.search")).toBe("?sort=-turns");
  await tab.click("Turns");
  await tab.holds(`document.querySelector("tbody tr:last-child code").textContent === "${story.main}"`);
  await tab.click("Agent", "thead");
  await inOrder(2, 1, 0);
  await tab.resize(390, 844);
  await tab.click("Agent", "thead");
  await inOrder(1, 0, 2);
  expect([await tab.accessibilityProblems(), await tab.isTooWide()]).toEqual([[], false]);
  await tab.click("Newest first");
  await inOrder(2, 1, 0);
  await cairn.ok(cairn.delete(`/v1/sessions/${quiet.id}`));
  expect(tab.complaints).toEqual([]);
});

test("one search finds names, users, and words in turns and memories, and the slash goes to it from any screen", async () => {
  const { id } = await cairn.createSession({ agent_id: "finder", user_id: "peanut-fan", external_id: "peanut" });
  using tab = await signedInTab(cairn, "/traces");
  await tab.has(".rows li");
  await tab.press("/");
  await tab.type("peanut");
  await tab.press("Enter");
  await tab.sees("allergic to peanuts");
  for (const text of ["Nothing said yet", "peanut-fan", "No turn has all of these words."]) await tab.seesFlat(text);
  await tab.fill("Search all", "bulb please");
  await tab.press("Enter");
  await tab.seesFlat("No session has this external id.");
  await tab.seesFlat("One more bulb please");
  await tab.click("All turns with these words");
  await tab.sees("1 turn, no more");
  await tab.fill("Search everything", story.main);
  await tab.press("Enter");
  await tab.has("#version-0");
  expect(tab.complaints).toEqual([]);
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
});

test("what is being written into a filter stays when the list comes", async () => {
  using tab = await signedInTab(cairn, "/memories");
  await tab.has(".cards li");
  await tab.run(
    `(window.held = [], window.fetch = ((fetch) => (...asked) => new Promise((answer) => held.push(() => answer(fetch(...asked)))))(fetch), true)`,
  );
  await tab.click("Sessions");
  await tab.holds(`document.querySelector("[name=user_id]") !== null && held.length > 0 && document.title.startsWith("Sessions")`);
  await tab.run(`(document.querySelector("[name=user_id]").focus(), true)`);
  await tab.type("user-4");
  await tab.run("(held.forEach((answer) => answer()), true)");
  await tab.has("tbody tr");
  expect(await tab.run<string>(`document.querySelector("[name=user_id]").value`)).toBe("user-4");
});

test("the traces that a filter leaves are saved as CSV, and no others", async () => {
  using tab = await signedInTab(cairn, `/traces?session_id=${story.main}&action=turn.added`);
  await tab.has(".rows li");
  await tab.run(
    `(URL.createObjectURL = ((make) => (file) => (file.text().then((text) => (window.saved = text)), make.call(URL, file)))(URL.createObjectURL), true)`,
  );
  await tab.click("Save as CSV");
  await tab.sees("Saved 4 traces");
  await tab.holds("window.saved !== undefined");
  const [head, ...rows] = (await tab.run<string>("window.saved")).trim().split(/\r?\n/);
  expect(head).toBe("id,timestamp,action,actor,session_id,user_id,details");
  expect(rows.map((row) => row.split(",").slice(2, 6))).toEqual(
    rows.map(() => ["turn.added", cairn.key.slice(0, 8), story.main, "user-42"]),
  );
  expect(rows.length).toBe(4);
  expect(tab.complaints).toEqual([]);
});

test("Enter looks into a session without leaving the list: state and what was last; once more opens it", async () => {
  using tab = await signedInTab(cairn, "/sessions?agent_id=support-bot");
  await tab.has("tbody tr");
  await tab.press("j", "j", "Enter");
  await tab.seesFlat("Turn 4 Did it work? → The parcel is on its way");
  await tab.sees("She is allergic to peanuts");
  await tab.sees('"step": "order_found"');
  expect(await tab.run<string>("location.search")).toBe(`?agent_id=support-bot&peek=${story.main}`);
  await tab.press("Escape");
  await tab.holds(`document.querySelector("dialog") === null && location.search === "?agent_id=support-bot"`);
  expect(await tab.focused()).toContain(story.main);
  await tab.press("Enter");
  await tab.has("dialog .peeked");
  expect(await tab.accessibilityProblems()).toEqual([]);
  await tab.press("Enter");
  await tab.has("#version-3");
  await tab.back();
  await tab.has("dialog .peeked");
  expect(tab.complaints).toEqual([]);
});

test("few clicks lead to why an answer was wrong, to its correction, a rollback, a comparison, a failing webhook and an erasure", async () => {
  const { id } = await cairn.createSession({ user_id: "clicked", initial_state: { step: 0 } });
  await cairn.ok(cairn.post("/v1/memory", { session_id: id, content: "She lives in Lyon." }));
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: true }));
  await cairn.ok(cairn.post(`/v1/sessions/${id}/context`, { query: "Where does she live?" }));
  await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: null }));
  const text = (content: string) => ({ type: "text", content });
  const answer = { input: text("Where do I live?"), output: text("In Lyon."), reasoning: "A memory says so." };
  await cairn.ok(cairn.post(`/v1/sessions/${id}/turns`, answer));
  await cairn.ok(cairn.post(`/v1/sessions/${id}/state`, { state: { step: 1 } }));
  await using receiver = startReceiver(() => new Response("no", { status: 500 }));
  using tab = await signedInTab(cairn);
  let clicks = 0;
  const click = (name: string, within?: string) => {
    clicks++;
    return tab.click(name, within);
  };
  const spent: Record<string, number> = {};
  const isDone = (what: string) => {
    spent[what] = clicks;
    clicks = 0;
  };

  await click("Sessions");
  await click("Where do I live?");
  for (const why of ["A memory says so.", "She lives in Lyon.", "Where does she live?"]) await tab.seesFlat(why);
  isDone("why wrong");
  await click("Edit", ".found");
  await tab.fill("Content", "She lives in Nice.");
  await click("Save");
  await tab.sees("She lives in Nice.");
  isDone("correct");
  await click("Roll back to here", "#version-0");
  await click("Roll back");
  await tab.sees("Rolled back to state 0");
  isDone("roll back");
  await click("Compare");
  await tab.has(".compared tbody tr");
  isDone("compare");

  await tab.go(`${cairn.address}/dashboard/webhooks`);
  await click("Create a webhook");
  await tab.fill("URL", receiver.url);
  await click("memory.created");
  await click("Create");
  await click("I saved it");
  await cairn.ok(cairn.post("/v1/memory", { session_id: id, content: "prefers tea", embed: false }));
  await click(receiver.url);
  await tab.seesFlat("memory.created ✗ failing 500");
  isDone("failing webhook");

  await tab.go(`${cairn.address}/dashboard/users`);
  await click("clicked");
  await click("Erase");
  await tab.fill("Type the id of the user", "clicked");
  await click("Erase", "dialog");
  await tab.sees("Everything is removed.");
  isDone("erase");
  expect(spent).toEqual({ "why wrong": 2, correct: 2, "roll back": 2, compare: 1, "failing webhook": 5, erase: 3 });
  expect(tab.complaints).toEqual([]);
});
