/**
 * Makes the pictures of the dashboard that the README shows: the executable, a small story, and the browser of the tests.
 *
 * @module
 */
import { dirname, join } from "node:path";
import { signedInTab } from "../test/support/browser.ts";
import { startProcess, type CairnProcess } from "../test/support/process.ts";
import { tellMainStory, type MainStory } from "../test/support/story.ts";

const DIRECTORY = join(dirname(import.meta.dir), "test/dashboard/pictures");
const WIDTH = 1200;

interface Picture {
  name: string;
  path: (story: MainStory) => string;
  /** What is there once the screen has been read. */
  has: string;
  height: number;
}

const PICTURES: readonly Picture[] = [
  { name: "session", path: ({ main }) => `/sessions/${main}`, has: "#version-0", height: 860 },
  { name: "compare", path: ({ main, fork }) => `/compare?a=${main}:1&b=${fork}:1`, has: ".compared tr", height: 420 },
  { name: "search", path: () => "/memories?q=what%20may%20she%20not%20eat&threshold=0.6", has: ".matches li", height: 560 },
  { name: "overview", path: () => "/", has: ".rows li", height: 640 },
];

/** Agents at work, for the overview. */
async function fillIn(cairn: CairnProcess): Promise<void> {
  const text = (content: string) => ({ type: "text", content });
  for (const [agent, user, question, answer] of [
    ["travel-bot", "user-7", "Is there a night train to Vienna?", "Yes, at 21:40 from platform 5."],
    ["support-bot", "user-11", "The lamp flickers.", "Please try another bulb first; I will send one."],
    ["tutor", "user-3", "Why is the sky blue?", "Air scatters short waves more than long ones."],
  ] as const) {
    const { id } = (await cairn.createSession({ agent_id: agent, user_id: user })) as { id: string };
    await cairn.ok(cairn.post(`/v1/sessions/${id}/turns`, { input: text(question), output: text(answer) }));
  }
}

await using cairn = await startProcess();
await fillIn(cairn);
const story = await tellMainStory(cairn);
using tab = await signedInTab(cairn, "/sessions");
await tab.scheme("light");
for (const { name, path, has, height } of PICTURES) {
  await tab.resize(WIDTH, height);
  await tab.go(`${cairn.address}/dashboard${path(story)}`);
  await tab.has(has);
  await tab.picture(join(DIRECTORY, `${name}.webp`), "webp");
}
