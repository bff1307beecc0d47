import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownMounts } from "../support/platform.ts";
import { failed, runCairn, scratchDirectory, startProcess, until } from "../support/process.ts";

test("a second server on a directory ends with a message and the first goes on; after a kill -9 of the first the next one starts", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.path;
  await using first = await startProcess({ dataDirectory });
  const session = await first.createSession();
  expect(await runCairn(["serve", "--port", "0", "--data-dir", dataDirectory])).toEqual(
    failed(
      `cairn: Another Cairn is using ${dataDirectory}: a server, a cairn mcp, or a command that changes all of it, such as restore, import or doctor --fix. Stop it or let it end first, or give this one a --data-dir of its own.\n`,
    ),
  );
  expect(await first.ok(first.post(`/v1/sessions/${session.id}/state`, { state: { step: 1 } }))).toMatchObject({ state_version: 1 });
  await first.kill();

  await using second = await startProcess({ dataDirectory });
  expect(await second.ok(second.get(`/v1/sessions/${session.id}`))).toMatchObject({ state: { step: 1 }, state_version: 1 });
});

test("an address that cannot be listened on ends the start with a message that names it; the key comes with the first start that can be asked", async () => {
  using directory = scratchDirectory();
  await using first = await startProcess({ dataDirectory: directory.at("first") });
  const port = new URL(first.address).port;
  const dataDirectory = directory.at("second");
  const serve = (...flags: string[]) => runCairn(["serve", "--data-dir", dataDirectory, ...flags]);
  expect(await serve("--port", port)).toEqual(failed(`cairn: Cannot listen on 127.0.0.1, port ${port}: something else listens there.\n`));
  expect(await serve("--port", "0", "--host", "192.0.2.1")).toMatchObject(
    failed(expect.stringContaining("cairn: Cannot listen on 192.0.2.1, port 0: ")),
  );
  await using second = await startProcess({ dataDirectory, environment: {}, hasKey: false });
  await until("the key to be printed", () => /^Admin key, shown only this once: crn_\S+$/m.test(second.stdout));
});

test("a start names the variables that nothing reads, and not what is in them", async () => {
  await using server = await startProcess({ environment: { CAIRN_API_KEYS: "crn_secret", CAIRN_REGION: "eu" } });
  const lines = await until("the warning", () => {
    const found = server.logged("environment variables that Cairn does not know are ignored");
    return found.length > 0 ? found : undefined;
  });
  expect(lines).toMatchObject([{ level: "warn", variables: "CAIRN_API_KEYS" }]);
  expect(JSON.stringify(lines)).not.toContain("crn_secret");
});

test("only its owner can read what Cairn keeps, whatever the umask: directories are 0700, files 0600, native parts 0500", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.at("data");
  mkdirSync(dataDirectory, { mode: 0o755 });
  chmodSync(dataDirectory, 0o755);
  await using server = await startProcess({ dataDirectory, through: ["sh", "-c", 'umask 000; exec "$0" "$@"'] });
  const session = await server.createSession();
  // More than are compared one by one, so that there is an index to write.
  const contents = Array.from({ length: 120 }, (_, number) => `Parcel ${number} waits at counter ${number * 7}.`);
  await Promise.all(contents.map((content) => server.addMemory(session.id, content)));
  await until("the index to have every vector", async () =>
    (await server.get("/metrics")).text.includes(`cairn_vectors{state="indexed"} ${contents.length}`),
  );
  expect(await server.stop()).toBe(0);

  const modes = readdirSync(dataDirectory, { recursive: true, withFileTypes: true }).map((entry) => {
    const kind = entry.isDirectory() ? "directory" : entry.name.endsWith(".node") ? "native part" : "file";
    return { name: entry.name, kind, mode: (statSync(join(entry.parentPath, entry.name)).mode & 0o777).toString(8) };
  });
  expect((statSync(dataDirectory).mode & 0o777).toString(8)).toBe("700");
  expect(modes.filter(({ kind, mode }) => mode !== { directory: "700", file: "600", "native part": "500" }[kind])).toEqual([]);
  expect(modes.map(({ name }) => name)).toEqual(expect.arrayContaining(["data.mdb", "lock.mdb", "serve.lock", "manifest.json"]));
});

test("a directory that holds other files and no store is refused by every command that would make one, and stays as it is", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.at("srv");
  const export_ = directory.at("export");
  writeFileSync(export_, '{"cairn_export":1,"cairn":"0.1.0","schema":1}\n{"end":0}\n');
  for (const name of ["www", "ftp", "backups", "vectors"]) mkdirSync(join(dataDirectory, name), { recursive: true });
  chmodSync(dataDirectory, 0o1777);
  const before = statSync(dataDirectory);
  for (const command of [
    ["serve", "--port", "0"],
    ["keys", "create"],
    ["import", export_],
    ["restore", export_],
  ]) {
    expect({ command, ...(await runCairn([...command, "--data-dir", dataDirectory])) }).toEqual({
      command,
      ...failed(
        /^cairn: The data directory .*\/srv contains other files and no Cairn store: (".*", ){2}".*" and 1 more\. Name an empty directory, .*--data-dir\.\n$/,
      ),
    });
  }
  const after = statSync(dataDirectory);
  expect([after.mode, after.mtimeMs, readdirSync(dataDirectory).toSorted()]).toEqual([
    before.mode,
    before.mtimeMs,
    ["backups", "ftp", "vectors", "www"],
  ]);
});

test("an empty volume becomes a data directory, and is closed to others once it holds a store", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.at("volume");
  for (const name of ["lost+found", ".Spotlight-V100"]) mkdirSync(join(dataDirectory, name), { recursive: true });
  chmodSync(dataDirectory, 0o755);
  const export_ = directory.at("export");
  writeFileSync(export_, "no export");
  const command = (...args: string[]) => runCairn([...args, "--data-dir", dataDirectory]);
  const mode = () => (statSync(dataDirectory).mode & 0o777).toString(8);
  expect([(await command("import", export_)).code, mode()]).toEqual([1, "755"]);
  expect([(await command("keys", "create")).code, mode()]).toEqual([0, "700"]);
});

test("a data directory that cannot be written ends the start with one line that names it", async () => {
  using directory = scratchDirectory();
  const command = ownMounts("a data directory that cannot be written");
  // Where mounting is not allowed: nobody can make a directory in a file.
  const dataDirectory = command === undefined ? "/dev/null/data" : directory.at("data");
  if (command !== undefined) {
    await using server = await startProcess({ dataDirectory });
    expect(await server.stop()).toBe(0);
  }
  const mount = `mount --bind -o ro "${dataDirectory}" "${dataDirectory}" && exec "$0" "$@"`;
  const through = command === undefined ? [] : [...command, "sh", "-c", mount];
  const refused = await runCairn(["serve", "--port", "0", "--data-dir", dataDirectory], { through });
  expect(refused).toEqual(failed(/^cairn: [^\n]*\n$/));
  expect(refused.stderr).toContain(dataDirectory);
});
