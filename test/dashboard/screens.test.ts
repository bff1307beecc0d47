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
import { scratchDirectory, startProcess, type CairnProcess } from "../support/process.ts";
import { HOSTILE, tellStory, type Story } from "../support/story.ts";

const PICTURES = process.env["CAIRN_TEST_PICTURES"];
const QUESTION = encodeURIComponent("what may she not eat");

let cairn: CairnProcess;
let story: Story;
let webhookId: string;
let deliveryId: string;
let traceId: string;
beforeAll(async () => {
  cairn = await startProcess();
  story = await tellStory(cairn);
  const { id } = await cairn.ok(
    cairn.post("/v1/webhooks", { url: "http://127.0.0.1:9/hook", events: ["turn.added"], description: HOSTILE }),
  );
  deliveryId = (await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`, {}))).id;
  webhookId = id;
  traceId = (await cairn.all("/v1/traces"))[0].id;
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
  go: { path: () => "/go/nothing", has: "main p code" },
  backups: { path: () => "/backups", has: ".good" },
  "not-found": { path: () => "/nothing/here", has: "main p a" },
};

test("every address of the dashboard is among the screens", async () => {
  const main = await Bun.file("src/dashboard/app/main.tsx").text();
  const routes = Array.from(main.matchAll(/<Route path="\/dashboard([^"]+)"/g), ([, path = ""]) => path);
  expect(routes.length).toBeGreaterThan(10);
  const paths = Object.values(SCREENS).map(({ path }) => path().replace(/\?.*/, ""));
  const isShown = (route: string) => paths.some((path) => new RegExp(`^${route.replaceAll(/:\w+/g, "[^/]+")}$`).test(path));
  expect(routes.filter((route) => !isShown(route))).toEqual([]);
});

for (const scheme of ["light", "dark"] as const) {
  for (const width of [WIDE, NARROW]) {
    test(`axe finds nothing on any screen, ${scheme} and ${width} px wide; each has room, few requests and no markup of others`, async () => {
      using tab = await signedInTab(cairn, "/sessions");
      await tab.scheme(scheme);
      await tab.resize(width);
      for (const [name, { path, has }] of Object.entries(SCREENS)) {
        tab.requests.length = 0;
        await tab.go(`${cairn.address}/dashboard${path()}`);
        await tab.has(has);
        expect([name, tab.requests.length <= 10]).toEqual([name, true]);
        expect({ name, problems: await tab.accessibilityProblems(), isTooWide: await tab.isTooWide() }).toEqual({
          name,
          problems: [],
          isTooWide: false,
        });
        expect(await tab.run<number>("document.querySelectorAll('#app img, #app script, #app style, #app iframe').length")).toBe(0);
        expect(await tab.run<string>("document.title")).toEndWith("Cairn");
        // What is read again meanwhile is no request more.
        expect([name, new Set(tab.requests.map(({ url }) => url)).size <= 10]).toEqual([name, true]);
        expect(tab.requests.filter(({ url }) => !url.startsWith(`${cairn.address}/`))).toEqual([]);
        const files = tab.requests.filter(({ url }) => /\/dashboard\/.*\.(js|css)$/.test(url));
        expect(files.filter(({ encoding }) => encoding !== "br")).toEqual([]);
        if (PICTURES !== undefined) await tab.picture(`${PICTURES}/${name}-${scheme}-${width}.png`);
      }
      expect(tab.complaints).toEqual([]);
    });
  }
}

test("hostile text stays text, and no script can make it more", async () => {
  using tab = await signedInTab(cairn, `/sessions/${story.hostile}`);
  await tab.has("#version-0");
  for (const summary of ["Reasoning", "Snapshots", "Metadata"]) await tab.click(summary);
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
  await tab.press("j", "j");
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
  expect(await tab.focused()).toBe("Search memories");
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
  await tab.sees("Cairn cannot be reached");
  await tab.has("#version-0");
  const port = new URL(first.address).port;
  await using again = await startProcess({ dataDirectory: scratch.path, flags: ["--port", port] });
  expect(again.address).toBe(first.address);
  await tab.seesNo("Cairn cannot be reached");
  scratch[Symbol.dispose]();
});
