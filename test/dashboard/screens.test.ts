/**
 * What holds for every screen of the dashboard, in a browser, on the executable: axe, both schemes, wide and narrow, hostile text,
 * the keyboard, where requests go, and a server that goes away.
 *
 * Pictures of all screens go where `CAIRN_TEST_PICTURES` says.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { endOf } from "../support/backups.ts";
import { NARROW, openTab, signedInTab, WIDE } from "../support/browser.ts";
import { inBrowser as test } from "../support/in-browser.ts";
import { scratchDirectory, startProcess, until, type CairnProcess } from "../support/process.ts";
import { startReceiver } from "../support/receiver.ts";
import { HOSTILE, tellStory, type Story } from "../support/story.ts";

const PICTURES = process.env["CAIRN_TEST_PICTURES"];
const QUESTION = encodeURIComponent("what may she not eat");

let cairn: CairnProcess;
let story: Story;
let webhookId: string;
let deliveryId: string;
let traceId: string;
/** The request of an application for access. */
let asked: string;
beforeAll(async () => {
  cairn = await startProcess();
  story = await tellStory(cairn);
  const { id } = await cairn.ok(
    cairn.post("/v1/webhooks", { url: "http://127.0.0.1:9/hook", events: ["turn.added"], description: HOSTILE }),
  );
  deliveryId = (await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`, {}))).id;
  webhookId = id;
  traceId = (await cairn.all("/v1/traces"))[0].id;
  const callback = "http://127.0.0.1:9/callback";
  const { client_id } = await cairn.ok(cairn.post("/register", { client_name: HOSTILE, redirect_uris: [callback] }));
  const pkce = { code_challenge: "c".repeat(43), code_challenge_method: "S256" };
  asked = new URLSearchParams({ client_id, redirect_uri: callback, response_type: "code", ...pkce }).toString();
  await endOf(cairn, (await cairn.ok(cairn.post("/v1/backups", {}))).id);
});
afterAll(() => cairn[Symbol.asyncDispose]());

/** A path below `/dashboard`, and what is there once it has been read. */
interface Screen {
  path: () => string;
  has: string;
}

const SCREENS: Record<string, Screen> = {
  overview: { path: () => "/", has: ".rows li" },
  sessions: { path: () => "/sessions", has: "tbody tr" },
  peek: { path: () => `/sessions?peek=${story.main}`, has: ".peeked li" },
  session: { path: () => `/sessions/${story.main}`, has: "#version-0" },
  hostile: { path: () => `/sessions/${story.hostile}`, has: "#version-0" },
  compare: { path: () => `/compare?a=${story.main}:2&b=${story.fork}:1`, has: ".compared tbody tr" },
  memories: { path: () => "/memories", has: ".cards li" },
  search: { path: () => `/memories?q=${QUESTION}&threshold=0.6`, has: ".matches li" },
  traces: { path: () => "/traces", has: ".rows li" },
  trace: { path: () => `/traces?id=${traceId}`, has: ".json" },
  keys: { path: () => "/keys", has: "tbody tr" },
  settings: { path: () => "/settings", has: ".setting" },
  users: { path: () => "/users", has: ".rows li" },
  user: { path: () => `/users/${encodeURIComponent(HOSTILE)}`, has: ".counts" },
  webhooks: { path: () => "/webhooks", has: ".cards li" },
  webhook: { path: () => `/webhooks/${webhookId}`, has: ".rows li" },
  delivery: { path: () => `/webhooks/${webhookId}?delivery=${deliveryId}`, has: ".opened .json" },
  find: { path: () => "/find?q=order", has: ".found-turn" },
  go: { path: () => "/go/nothing", has: "main p code" },
  backups: { path: () => "/backups", has: ".good" },
  authorize: { path: () => `/authorize#${asked}`, has: "main form" },
  "not-found": { path: () => "/nothing/here", has: "main p a" },
};

const SMALLEST_PX = 12;
/** Texts that are smaller. */
const SMALL_TEXTS = `[...document.querySelectorAll("#app *")].filter((one) =>
  one.checkVisibility() && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "") &&
  parseFloat(getComputedStyle(one).fontSize) < ${SMALLEST_PX}).map((one) => one.textContent)`;

test("every address of the dashboard is among the screens", async () => {
  const main = await Bun.file("src/dashboard/app/main.tsx").text();
  const routes = Array.from(main.matchAll(/<Route path="\/dashboard([^"]+)"/g), ([, path = ""]) => path);
  expect(routes.length).toBeGreaterThan(10);
  const paths = Object.values(SCREENS).map(({ path }) => path().replace(/[?#].*/, ""));
  const isShown = (route: string) => paths.some((path) => new RegExp(`^${route.replaceAll(/:\w+/g, "[^/]+")}$`).test(path));
  expect(routes.filter((route) => !isShown(route))).toEqual([]);
});

for (const width of [WIDE, NARROW]) {
  test(`axe finds nothing on any screen, light and dark, ${width} px wide; each has room, few requests and no markup of others`, async () => {
    using tab = await signedInTab(cairn, "/sessions");
    await tab.resize(width);
    for (const [name, { path, has }] of Object.entries(SCREENS)) {
      // Answers to the page before come no more once it is left.
      await tab.go("about:blank");
      tab.requests.length = 0;
      await tab.go(`${cairn.address}/dashboard${path()}`);
      await tab.has(has);
      // A comparison reads two sessions, and the names of their keys.
      const requestsMax = name === "compare" ? 11 : 10;
      expect([name, tab.requests.length <= requestsMax]).toEqual([name, true]);
      for (const scheme of ["light", "dark"] as const) {
        await tab.scheme(scheme);
        expect({ name, scheme, problems: await tab.accessibilityProblems(), isTooWide: await tab.isTooWide() }).toEqual({
          name,
          scheme,
          problems: [],
          isTooWide: false,
        });
        if (PICTURES !== undefined) await tab.picture(`${PICTURES}/${name}-${scheme}-${width}.png`);
      }
      expect([name, await tab.run<string[]>(SMALL_TEXTS)]).toEqual([name, []]);
      expect(await tab.run<number>("document.querySelectorAll('#app img, #app script, #app style, #app iframe').length")).toBe(0);
      expect(await tab.run<string>("document.title")).toEndWith("Cairn");
      // What is read again meanwhile is no request more.
      expect([name, new Set(tab.requests.map(({ url }) => url)).size <= requestsMax]).toEqual([name, true]);
      expect(tab.requests.filter(({ url }) => !url.startsWith(`${cairn.address}/`))).toEqual([]);
      const files = tab.requests.filter(({ url }) => /\/dashboard\/.*\.(js|css)$/.test(url));
      expect(files.filter(({ encoding }) => encoding !== "br")).toEqual([]);
    }
    expect(tab.complaints).toEqual([]);
  });
}

test("a line of a list that says little is still tall enough to be hit", async () => {
  // A key without a name, which is all that a trace without a session says beside its action.
  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["admin"] }));
  const answer = await fetch(`${cairn.address}/v1/webhooks`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ url: "http://127.0.0.1:9/hook", events: ["turn.added"] }),
  });
  expect(answer.status).toBe(201);
  using tab = await signedInTab(cairn, "");
  await tab.resize(NARROW);
  await tab.go(`${cairn.address}/dashboard/traces?action=webhook.created`);
  await tab.has(".rows li");
  expect(await tab.accessibilityProblems()).toEqual([]);
  expect(await tab.run<number>("Math.min(...[...document.querySelectorAll('.rows summary')].map((line) => line.offsetHeight))")).toBe(24);
});

test("hostile text stays text, and no script can make it more", async () => {
  using tab = await signedInTab(cairn, `/sessions/${story.hostile}`);
  await tab.has("#version-0");
  for (const summary of ["Snapshots", "Metadata"]) await tab.click(summary);
  // What a click opens comes a moment later.
  await tab.holds(`document.body.innerText.split(${JSON.stringify(HOSTILE.slice(0, 20))}).length - 1 > 8`);
  const refused = await tab.run<string>(
    `(() => { try { document.body.innerHTML = "<b>x</b>"; return "done"; } catch (error) { return error.name; } })()`,
  );
  expect(refused).toBe("TypeError");
});

test("the keyboard alone goes from signing in to a rollback", async () => {
  const { id } = await cairn.createSession({ agent_id: "keyboard", initial_state: { step: 0 } });
  await cairn.ok(cairn.post(`/v1/sessions/${id}/state`, { state: { step: 1 } }));
  using tab = await openTab();
  await tab.go(`${cairn.address}/dashboard/traces`);
  await tab.holds(`document.activeElement.name === "key"`);
  await tab.type(cairn.key);
  await tab.press("Enter");
  await tab.has(".rows li");
  await tab.press("?");
  await tab.has("dialog[open]");
  await tab.press("Escape");
  await tab.holds(`document.querySelector("dialog") === null`);
  await tab.press("g", "s");
  await tab.has("tbody tr");
  await tab.press("j", "Enter");
  await tab.has("dialog .peeked li");
  await tab.press("Enter");
  await tab.has("#version-0");
  expect(await tab.run<string>("location.pathname")).toBe(`/dashboard/sessions/${id}`);
  await tab.press("j");
  expect(await tab.run<string>("document.activeElement.id")).toBe("version-0");
  while ((await tab.focused()) !== "Roll back to here") await tab.press("Tab");
  await tab.press("Enter");
  await tab.seesFlat("step 1 → 0");
  expect(await tab.focused()).toBe("Reason");
  await tab.type("By keyboard.");
  await tab.press("Enter");
  await tab.sees("Rolled back to state 0");
  await tab.has("#version-2");
  expect((await cairn.get(`/v1/sessions/${id}`)).body).toMatchObject({ state: { step: 0 }, state_version: 2 });
});

test("single keys do nothing in a field, and nowhere when they are switched off", async () => {
  using tab = await signedInTab(cairn, "/memories");
  await tab.has(".cards li");
  await tab.press("/");
  expect(await tab.focused()).toBe("Search everything");
  await tab.type("gs");
  await tab.press("g", "s");
  expect(await tab.run<string>("location.pathname")).toBe("/dashboard/memories");
  await tab.click("Keyboard help");
  await tab.click("Use these keys");
  await tab.press("Escape");
  await tab.holds(`document.querySelector("dialog") === null`);
  await tab.press("g", "t");
  await tab.press("/");
  expect(await tab.run<string>("location.pathname")).toBe("/dashboard/memories");
});

test("a server that goes away is said to be away, and what was read stays; when it is back that is read again", async () => {
  const scratch = scratchDirectory();
  const first = await startProcess({ dataDirectory: scratch.path });
  const { id } = await first.createSession({ initial_state: { step: 0 } });
  using tab = await signedInTab(first, `/sessions/${id}`);
  await tab.has("#version-0");
  await first.kill();
  await tab.sees("cannot be reached");
  await tab.has("#version-0");
  const port = new URL(first.address).port;
  await using again = await startProcess({ dataDirectory: scratch.path, flags: ["--port", port] });
  expect(again.address).toBe(first.address);
  await tab.seesNo("cannot be reached");
  scratch[Symbol.dispose]();
});

/** Elements that stick out of the window, by what they say: a person on a phone cannot reach them. */
const OUTSIDE = `[...document.querySelectorAll("main :is(button, a, .tag, .strong, td)")]
  .filter((one) => one.checkVisibility() && one.getBoundingClientRect().width > 0)
  .filter((one) => { const { left, right } = one.getBoundingClientRect(); return left < 0 || right > innerWidth; })
  .map((one) => one.textContent.trim())`;

test("on a phone names and tags are whole, and every action of keys, backups and sessions is on the screen", async () => {
  const long = "customer-success-assistant-for-the-northern-region-and-its-partners";
  const { id: keyId } = await cairn.ok(cairn.post("/v1/api_keys", { name: long }));
  const { id } = await cairn.createSession({ agent_id: long, user_id: long });
  await cairn.ok(cairn.post("/v1/memory", { session_id: id, content: "Prefers tea.", tags: [long], embed: false }));
  using tab = await signedInTab(cairn, "/keys");
  await tab.resize(390, 844);
  const seen: Record<string, string> = {
    "/keys": long,
    "/backups": "Download",
    "/sessions": long,
    "/memories": `#${long}`,
    "/users": long,
    [`/sessions/${id}`]: long,
  };
  for (const [path, text] of Object.entries(seen)) {
    await tab.go(`${cairn.address}/dashboard${path}`);
    await tab.sees(text);
    expect([path, await tab.run<string[]>(OUTSIDE)]).toEqual([path, []]);
  }
  await tab.go(`${cairn.address}/dashboard/keys`);
  await tab.click(`Actions for ${long}`);
  await tab.click("Revoke");
  await tab.click("Revoke", "dialog");
  await tab.sees("Key revoked");
  expect((await cairn.get(`/v1/api_keys/${keyId}`)).status).toBe(404);
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
  expect(tab.complaints).toEqual([]);
});

test("a click on a row opens it; one on a button in it, or to mark a text, does not", async () => {
  using tab = await signedInTab(cairn, `/sessions?user_id=user-42`);
  const clickOn = (selector: string) =>
    tab.run(`(document.querySelector(${JSON.stringify(selector)}).dispatchEvent(new MouseEvent("click", { bubbles: true })), true)`);
  await tab.has("tbody tr");
  await tab.run(`(getSelection().selectAllChildren(document.querySelector("tbody td:nth-child(2)")), true)`);
  await clickOn("tbody td:nth-child(4)");
  expect(await tab.run<string>("location.pathname")).toBe("/dashboard/sessions");
  await tab.run("(getSelection().removeAllRanges(), true)");
  await clickOn("tbody td:nth-child(4)");
  await tab.holds(`location.pathname.startsWith("/dashboard/sessions/sess_")`);
  await tab.go(`${cairn.address}/dashboard/traces`);
  await tab.has(".rows li");
  await clickOn(".rows > li");
  await tab.has(".rows > li:first-child details[open]");
  await clickOn(".rows > li:first-child .opened");
  expect(await tab.run<boolean>(`document.querySelector(".rows > li:first-child details").open`)).toBe(true);
  expect(tab.complaints).toEqual([]);
});

test("a list says that filters match exactly and when they apply, and that nothing matches them", async () => {
  using tab = await signedInTab(cairn, "/sessions?user_id=nobody");
  await tab.sees("No session matches these filters.");
  await tab.seesNo("POST /v1/sessions");
  await tab.sees("Texts have to match exactly. They apply on Enter, or when you leave the field.");
});

test("users are listed by name with counts, by their newest session, and found by how their names begin", async () => {
  await cairn.createSession({ agent_id: "bot", user_id: "zoe" });
  using tab = await signedInTab(cairn, "/users");
  const names = () => tab.run<string[]>(`[...document.querySelectorAll(".rows .strong")].map((one) => one.textContent)`);
  await tab.sees("zoe");
  expect(await names()).toEqual((await cairn.all("/v1/users")).map(({ id }) => id));
  await tab.seesFlat("zoe 1 session, 0 memories · last session");
  await tab.click("By newest session");
  await tab.holds(`document.querySelector(".rows .strong")?.textContent === "zoe"`);
  expect(await names()).toEqual((await cairn.all("/v1/users?order=last_seen")).map(({ id }) => id));
  await tab.seesNo("Name begins with");
  await tab.click("By name");
  await tab.fill("Name begins with", "use");
  await tab.sees("1 user, no more");
  expect(await names()).toEqual(["user-42"]);
  await tab.fill("Name begins with", "Use");
  await tab.sees("No name begins so; upper and lower case differ.");
  await tab.click("Agents");
  await tab.sees("support-bot");
  expect(tab.complaints).toEqual([]);
});

test("a user of whom there is nothing cannot be erased", async () => {
  using tab = await signedInTab(cairn, "/users/nobody");
  await tab.sees('There is no user "nobody".');
  await tab.seesNo("Erase");
  await tab.go(`${cairn.address}/dashboard/users/user-42`);
  await tab.sees("Erase");
});

test("the docs are a click away, with the icon of the dashboard", async () => {
  using tab = await signedInTab(cairn, "/sessions");
  await tab.click("API docs");
  await tab.has("link[rel=icon][href^='/docs/']");
  const icon = await tab.run<string>(`fetch(document.querySelector("link[rel=icon]").href).then((answer) => answer.text())`);
  expect(icon).toBe(await Bun.file("src/dashboard/app/icon.svg").text());
});

test("times in what the server says are shown as all others", async () => {
  const { id } = await cairn.ok(cairn.post("/v1/webhooks", { url: "http://127.0.0.1:9/hook", events: ["session.created"] }));
  await using receiver = startReceiver(() => new Response(null, { status: 410 }));
  await cairn.ok(cairn.request("PATCH", `/v1/webhooks/${id}`, { url: receiver.url }));
  await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`, {}));
  await until("the webhook to be off", async () => (await cairn.get(`/v1/webhooks/${id}`)).body.enabled === false);
  using tab = await signedInTab(cairn, `/webhooks/${id}`);
  await tab.holds(`/The receiver answered 410 Gone at [0-9]+ [A-Z][a-z]+ [0-9]{4}, /.test(document.body.innerText)`);
  await cairn.ok(cairn.delete(`/v1/webhooks/${id}`));
});
