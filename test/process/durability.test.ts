import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { diskShim } from "../support/disk-shim.ts";
import { Chance, runCairn, scratchDirectory, startProcess, until } from "../support/process.ts";
import { onLinux } from "../support/platform.ts";

const it = onLinux("a shim of the calls of a process");

const WRITERS = 8;
const AT_RISK_MS = 1_000;

interface Written {
  version: number;
  at: number;
}

it("relaxed: after a power cut what was answered a second before is there, whole and without gaps, and a strict start takes it over", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.at("data");
  using shim = diskShim(directory.path);
  await using first = await startProcess({ dataDirectory });
  expect(await first.stop()).toBe(0);
  shim.simulateDisk(dataDirectory);
  const { environment } = shim;
  await using server = await startProcess({ dataDirectory, flags: ["--durability", "relaxed"], environment });
  expect(await server.ok(server.get("/health"))).toMatchObject({ status: "ready", durability: "relaxed" });
  expect(server.logged("relaxed durability: a crash or a power cut can lose what was answered in the last second")).toHaveLength(1);
  expect(await until("the line of the start", () => server.logged("serving")[0])).toMatchObject({ durability: "relaxed" });

  const written = new Map<string, Written[]>();
  for (let i = 0; i < WRITERS; i++) written.set((await server.createSession()).id, []);
  const end = { isNear: false };
  const writing = Array.from(written, async ([id, states]) => {
    while (!end.isNear) {
      const answer = await server.post(`/v1/sessions/${id}/state`, { state: { step: states.length + 1 } }).catch(() => undefined);
      if (answer?.status === 200) states.push({ version: answer.body.state_version, at: performance.now() });
    }
  });
  const atLeast = (count: number, since = 0) =>
    Array.from(written.values()).every((states) => states.filter(({ at }) => at >= since).length >= count);
  await until("states to be written", () => atLeast(20));
  const safe = performance.now();
  await until("more states than a second takes", () => performance.now() - safe > AT_RISK_MS && atLeast(1, safe + AT_RISK_MS));
  // A command that writes beside it, to the same disk.
  const command = ["keys", "create", "--name", "beside", "--data-dir", dataDirectory];
  const { code, stdout } = await runCairn(command, { environment });
  expect([code, stdout]).toEqual([0, expect.stringMatching(/crn_/)]);
  end.isNear = true;
  await server.kill();
  await Promise.all(writing);
  shim.cutPower(dataDirectory, new Chance(1));
  expect(existsSync(join(dataDirectory, "store", "relaxed"))).toBe(true);
  expect(await runCairn(["doctor", "--data-dir", dataDirectory])).toMatchObject({ code: 0 });

  await using strict = await startProcess({ dataDirectory });
  expect(await strict.ok(strict.get("/health"))).toMatchObject({ durability: "strict" });
  expect(existsSync(join(dataDirectory, "store", "relaxed"))).toBe(false);
  for (const [id, states] of written) {
    const session = await strict.ok(strict.get(`/v1/sessions/${id}`));
    expect(session.state).toEqual({ step: session.state_version });
    expect(session.state_version).toBeGreaterThanOrEqual(states.findLast(({ at }) => at < safe)?.version ?? Number.NaN);
    const versions = await strict.all(`/v1/sessions/${id}/versions`);
    expect(versions.map(({ version }) => version)).toEqual(
      Array.from({ length: session.state_version + 1 }, (_, i) => session.state_version - i),
    );
  }
  const memory = await strict.addMemory([...written.keys()][0]!, "The parcel is blue.");
  expect((await strict.ok(strict.post("/v1/memory/search", { query: "The parcel is blue." }))).data[0]).toMatchObject({ id: memory.id });
  expect(await strict.stop()).toBe(0);
  expect(await runCairn(["doctor", "--data-dir", dataDirectory])).toMatchObject({ code: 0 });
});

test("a data directory goes from strict to relaxed and back as often as one likes, and keeps everything", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.at("data");
  const sessions: string[] = [];
  for (const durability of ["strict", "relaxed", "relaxed", "strict", "relaxed", "strict"]) {
    await using server = await startProcess({ dataDirectory, flags: ["--durability", durability] });
    const listed = await server.all("/v1/sessions");
    expect(listed.map(({ id }) => id)).toEqual(sessions.toReversed());
    sessions.push((await server.ok(server.post("/v1/sessions", { agent_id: durability }))).id);
    expect(await server.stop()).toBe(0);
    expect(existsSync(join(dataDirectory, "store", "relaxed"))).toBe(durability === "relaxed");
  }
});
