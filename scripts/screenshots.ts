/**
 * Makes the pictures of the dashboard that the README shows: the executable, a small story, and the browser of the tests.
 *
 * @module
 */
import { dirname, join } from "node:path";
import { signedInTab } from "../test/support/browser.ts";
import { startProcess, type CairnProcess } from "../test/support/process.ts";
import { tellMainStory, type MainStory } from "../test/support/story.ts";

const DIRECTORY = join(dirname(import.meta.dir), "src/docs/pictures");
const WIDTH = 1200;

interface Picture {
  name: string;
  path: (story: MainStory) => string;
  /** Text that is there once the screen has been read. */
  has: string;
  height: number;
}

const PICTURES: readonly Picture[] = [
  { name: "session", path: ({ main }) => `/sessions/${main}`, has: "#version-0", height: 900 },
  { name: "compare", path: ({ main, fork }) => `/compare?a=${main}:1&b=${fork}:1`, has: ".compared tr", height: 420 },
  { name: "search", path: () => "/memories?q=what%20may%20she%20not%20eat&threshold=0.6", has: ".matches li", height: 560 },
];

/** Context that an agent was given for a question, and its answer. */
async function askOnce(cairn: CairnProcess, session: string): Promise<void> {
  const text = (content: string) => ({ type: "text", content });
  await cairn.ok(cairn.post(`/v1/sessions/${session}/context`, { query: "what may she not eat", memory_limit: 2 }));
  const turn = {
    input: text("Could you put one of your satay boxes into the parcel?"),
    output: text("Better not: there are peanuts in it, and you are allergic to them."),
  };
  await cairn.ok(cairn.post(`/v1/sessions/${session}/turns`, turn));
}

await using cairn = await startProcess();
await cairn.ok(cairn.request("PATCH", "/v1/settings", { retrieval_log: true }));
const story = await tellMainStory(cairn);
await askOnce(cairn, story.main);
using tab = await signedInTab(cairn, "/sessions");
await tab.scheme("light");
for (const { name, path, has, height } of PICTURES) {
  await tab.resize(WIDTH, height);
  await tab.go(`${cairn.address}/dashboard${path(story)}`);
  await tab.has(has);
  await tab.picture(join(DIRECTORY, `${name}.webp`), "webp");
}
