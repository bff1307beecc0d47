/**
 * The overview of the dashboard and the way from an id to its record, in a browser, on the executable.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { signedInTab } from "../support/browser.ts";
import { startProcess } from "../support/process.ts";
import { tellStory } from "../support/story.ts";

test("without any record it shows a first conversation, which works as it stands and appears", async () => {
  await using cairn = await startProcess();
  using tab = await signedInTab(cairn);
  await tab.sees("Nothing is stored yet");
  await tab.click("Copy");
  await tab.sees("Copied");
  const commands = (await tab.clipboard()).replace("crn_…", cairn.key);
  expect(commands).toContain(cairn.address);
  const shell = Bun.spawn(["bash", "-eu", "-c", commands], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  expect([await shell.exited, await new Response(shell.stderr).text()]).toEqual([0, ""]);
  await tab.sees("memory.created");
  await tab.seesNo("Nothing is stored yet");
});

test("it says how much there is and what needs somebody, and what happens appears", async () => {
  await using cairn = await startProcess();
  const { main } = await tellStory(cairn);
  using tab = await signedInTab(cairn);
  await tab.seesFlat("sessions 3 turns 5");
  await tab.seesFlat("memories 4");
  await tab.sees("live");
  await tab.click("Last day");
  expect(await tab.run<string>("location.search")).toBe("?span=24h");
  await cairn.ok(cairn.post(`/v1/sessions/${main}/state`, { state: { step: "done" } }));
  await tab.holds(`document.querySelector(".rows .arrived")?.innerText.includes("state.updated")`);
  expect(tab.complaints).toEqual([]);
});

test("an id leads to its record", async () => {
  await using cairn = await startProcess();
  const { main } = await tellStory(cairn);
  const [memory] = await cairn.all(`/v1/memory?session_id=${main}`);
  const [trace] = await cairn.all(`/v1/traces?session_id=${main}`);
  using tab = await signedInTab(cairn, `/go/${memory.id}`);
  await tab.has(`#${memory.id}.target`);
  await tab.go(`${cairn.address}/dashboard/go/${main}`);
  await tab.has("#version-0");
  await tab.go(`${cairn.address}/dashboard/go/${trace.id}`);
  await tab.sees(trace.metadata.request_id);
  await tab.go(`${cairn.address}/dashboard/go/mem_000000000000`);
  await tab.has("[role=alert]");
  await tab.go(`${cairn.address}/dashboard/go/nothing`);
  await tab.sees("this one does not");
});
