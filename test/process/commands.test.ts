import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { buildBinary } from "../support/binary.ts";
import { failed, KEY, runCairn, scratchDirectory, startProcess, succeeded, until } from "../support/process.ts";
import { onLinux } from "../support/platform.ts";

const it = onLinux("/dev/full");

test("in an empty directory with an empty environment it serves, and prints an admin key at the first start only", async () => {
  using directory = scratchDirectory();
  const options = { dataDirectory: "data", directory: directory.path, environment: {}, hasKey: false };
  await using first = await startProcess(options);
  const [, key = ""] = await until("the key to be printed", () => /^Admin key, shown only this once: (\S+)$/m.exec(first.stdout));
  first.key = key;
  const session = await first.createSession({ initial_state: { step: 0 } });
  expect(await first.stop()).toBe(0);

  await using second = await startProcess(options);
  second.key = key;
  expect(await second.ok(second.get(`/v1/sessions/${session.id}`))).toEqual(session);
  expect(await second.stop()).toBe(0);
  expect(second.stdout).not.toContain("crn_");
  expect(readdirSync(directory.path)).toEqual(["data"]);
});

/** Serves on a terminal until what it prints matches, and gives the match. */
async function onTerminal<Result>(
  dataDirectory: string,
  sought: RegExp,
  work: (match: RegExpExecArray) => Promise<Result>,
): Promise<Result> {
  let shown = "";
  const data = (_: unknown, bytes: Uint8Array) => void (shown += Buffer.from(bytes).toString());
  const args = ["serve", "--port", "0", "--data-dir", dataDirectory];
  const server = Bun.spawn([await buildBinary(), ...args], { env: {}, terminal: { cols: 200, rows: 50, data } });
  try {
    return await work(await until(`${sought} on the terminal`, () => sought.exec(shown)));
  } finally {
    server.kill();
    await server.exited;
  }
}

const signInWith = async (address: string, key: string) =>
  (await fetch(`${address}/v1/sign_in`, { method: "POST", headers: { "X-API-Key": key, "Content-Type": "application/json" }, body: "{}" }))
    .status;

test("at the first start on a terminal it prints a link that signs in to the dashboard once; at later ones where that is", async () => {
  using directory = scratchDirectory();
  const link = /^Dashboard: (http:\/\/127\.0\.0\.1:\d+)\/dashboard\/\r\n.*: \1\/dashboard\/#key=(crn_[0-9A-Za-z]{24})\r\n/m;
  const statuses = await onTerminal(directory.at("data"), link, async ([, address = "", key = ""]) => [
    await signInWith(address, key),
    await signInWith(address, key),
  ]);
  expect(statuses).toEqual([201, 401]);
  const later = await onTerminal(directory.at("data"), /^Dashboard: [^]*info .*serving/m, ([text]) => Promise.resolve(text));
  expect(later).not.toContain("#key=");
});

test("cairn dashboard prints a link for the server beside it, which signs in once, and none for a server of other data", async () => {
  await using server = await startProcess();
  await using other = await startProcess();
  expect(server.stdout).toContain(`Dashboard: ${server.address}/dashboard/\n`);
  const { code, stdout, stderr } = await server.command("dashboard", "--url", server.address);
  expect([code, stderr]).toEqual([0, ""]);
  const [, address = "", key = ""] = /^(.*)\/dashboard\/#key=(crn_[0-9A-Za-z]{24})\n$/.exec(stdout) ?? [];
  expect(address).toBe(server.address);
  expect([await signInWith(address, key), await signInWith(address, key)]).toEqual([201, 401]);
  expect(await other.command("dashboard", "--url", server.address)).toEqual(
    failed(`cairn: The server at ${server.address} uses another data directory than ${other.dataDirectory}: say which with --data-dir.\n`),
  );
});

const VERSION_LINE = /^cairn \d+\.\d+\.\d+ (linux|darwin)-(x64|arm64)(-musl)?( \([0-9a-f]{12}(-modified)?\))?\n$/;

/** What a command prints that ends with code 0, by its arguments. */
const PRINTED: Record<string, RegExp> = {
  "--help": /^cairn \d+\.\d+\.\d+: .*\n[^]*cairn serve[^]*\nFlags of cairn serve, .*\n[^]*--data-dir DIR +CAIRN_DATA_DIR/,
  "srve --help": /^cairn \d+\.\d+\.\d+: .*\n[^]*cairn serve/,
  "keys create --help":
    /^cairn keys create \[flags\]\n {2}make an API key and print it, once\n\nFlags:\n {2}--name TEXT [^]*--expires TIME [^]*\n\nExample: cairn keys create .*\n\n$/,
  "help restore": /^cairn restore FILE \[--force\]\n[^]*\nExample: cairn restore .*\n\n$/,
  "keys -h": /^cairn keys create[^]*\ncairn keys list[^]*\ncairn keys roll ID[^]*\ncairn keys revoke ID/,
  version: VERSION_LINE,
};

/** What is said of a command that makes no sense, code 2. */
const MISUSED: Record<string, RegExp> = {
  "": /a command is needed/,
  srve: /there is no command srve/,
  "keys make": /cairn keys needs one of create, list, roll, revoke/,
  "keys create --scopes reed": /--scopes must be one or more of read, write, admin; got reed/,
  "serve --prot 1": /.*--prot.*/,
  "serve --port 65536": /--port must be .* got 65536\./,
  "serve --durability none": /--durability must be one of strict, relaxed; got "none"\./,
  "keys create --expires soon": /--expires must be a duration.* got soon/,
  "keys create --expires 2020-01-01": /--expires must be .* got 2020-01-01/,
  "keys create --expires 2020-01-01T00:00:00Z": /--expires must be in the future.*/,
  "keys create --expires 999999999d": /--expires must be a duration.*/,
  "keys create --rate-limit 600": /--rate-limit must be .* got 600/,
  "keys create --rate-limit 0/5": /--rate-limit must be .* got 0\/5/,
  "keys create --rate-limit 6/5 --tier pro": /--rate-limit is for keys of the tier enterprise; got pro/,
  [`keys create --name ${"x".repeat(257)}`]: /--name must be at most 256 characters; got 257/,
  "keys create --user ada --scopes admin": /--user is for keys without the scope admin.*/,
  [`keys create --agent ${"x".repeat(257)}`]: /--agent must be at most 256 characters; got 257/,
  "keys roll": /cairn keys roll needs the id of a key .*/,
  "keys roll key_0VQk3aB4x1Zq --overlap 8d": /--overlap must be a time .*8d/,
  "keys revoke": /cairn keys revoke needs the id of a key .*/,
  "backup --data-dir none": /cairn backup needs the name of a file/,
  "restore -": /cairn restore needs the name of a file/,
  "export a b": /cairn export takes one file/,
  "doctor a": /cairn doctor takes no file/,
  "doctor --repair": /.*--repair.*/,
  "dashboard --port 0": /with port 0 the server took any free port: say where it is with --url/,
  "dashboard --url nowhere": /--url must be an address such as .* got nowhere/,
  "version --url http://127.0.0.1": /--url needs --check/,
  "version --check --url ftp://there": /--url must be an address such as https:\/\/cairn\.example\.com\/releases; got ftp:\/\/there/,
  "health --port 0": /with port 0 the server took any free port: say where it is with --url/,
  "health --url 127.0.0.1:8700": /--url must be an address such as http:\/\/127\.0\.0\.1:8700; got 127\.0\.0\.1:8700/,
  "health --url file:///etc/passwd": /--url must be an address such as http:\/\/127\.0\.0\.1:8700; got file:\/\/\/etc\/passwd/,
  mcp: /there is no home directory \(HOME\) for the data: say where to keep it with --data-dir/,
  "mcp --data-dir data --tools some": /--tools must be one of all, memory; got some/,
  [`mcp --data-dir data --user ${"x".repeat(257)}`]: /--user must be at most 256 characters; got 257/,
  "mcp --url http://127.0.0.1:8700": /--url needs CAIRN_API_KEY: a key of that server/,
  "mcp --url http://127.0.0.1:8700 --data-dir data": /--url and --data-dir exclude each other/,
  "mcp file": /.*file.*/,
};

const NO_STORE = /There is no store in none\. Say where it is with --data-dir\./;
/** What is said of a command that cannot be done, code 1. */
const IMPOSSIBLE: Record<string, RegExp> = {
  "keys list": /There is no store in \.\/data\. .*--data-dir.*/,
  "keys roll key_000000000000": /There is no store in \.\/data\..*/,
  "keys revoke key_000000000000": /There is no store in \.\/data\..*/,
  ...Object.fromEntries(
    ["backup x", "export", "doctor", "doctor --fix", "rebuild-index"].map((text) => [`${text} --data-dir none`, NO_STORE]),
  ),
  "dashboard --port 1": /There is no store in \.\/data\. .*--data-dir.*/,
  "dashboard --url http://127.0.0.1:1":
    /No server answers at http:\/\/127\.0\.0\.1:1: .*\. Start it with cairn serve, or say where it is with --url\./,
  "restore none --data-dir new": /.*none.*/,
  "restore . --data-dir new": /\. is not a file but a directory\./,
  "restore /dev/null --data-dir new": /\/dev\/null is not a file but a device\./,
  "import none --data-dir new": /.*none.*/,
  "import --data-dir new": /There is nothing to import\./,
};

const COMMANDS = [
  { commands: PRINTED, code: 0 },
  { commands: MISUSED, code: 2 },
  { commands: IMPOSSIBLE, code: 1 },
].flatMap(({ commands, code }) => Object.entries(commands).map(([text, says]) => ({ text, says, code, end: endOf(text, code) })));

/** A command that makes no sense names the help on it, where there is such a command. */
function endOf(text: string, code: number): string {
  const [word = ""] = text.split(" ");
  if (code !== 2) return "\n";
  return `\nTry: cairn ${word === "" || word === "srve" ? "" : `${word} `}--help\n`;
}

for (const { text, says, code, end } of COMMANDS) {
  test(`cairn ${text.slice(0, 60)} ends with code ${code} and makes no store`, async () => {
    using directory = scratchDirectory();
    const args = text.split(" ").filter((word) => word !== "");
    const said = expect.stringMatching(code === 0 ? says : new RegExp(`^cairn: ${says.source}${end}$`));
    const ended = await runCairn(args, { directory: directory.path });
    expect(ended).toEqual({ code, stdout: code === 0 ? said : "", stderr: code === 0 ? "" : said });
    expect(readdirSync(directory.path, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith("data.mdb"))).toEqual([]);
  });
}

for (const { name, log } of [
  { name: "that takes nothing, as on a full disk,", log: "/dev/full" },
  { name: "whose reader has left", log: ">(:)" },
]) {
  it(`a log ${name} keeps no server from serving, nor from stopping with code 0`, async () => {
    const through = ["bash", "-c", `exec "$0" "$@" 2> ${log}`];
    // Of this it warns, so that there is a line before the first request.
    await using server = await startProcess({ flags: ["--durability", "relaxed"], through });
    for (let i = 0; i < 3; i++) await server.createSession();
    expect(await server.stop()).toBe(0);
  });
}

test("a key made beside a running server works at once, is listed without its secret, and is refused once revoked", async () => {
  await using server = await startProcess();
  const keys = (...args: string[]) => server.command("keys", ...args);

  const made = await keys("create", "--name", "helper", "--scopes", "read", "--tier", "pro");
  expect(made).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^crn_[0-9A-Za-z]{24}\n$/),
    stderr: expect.stringMatching(/^key_\w{12} has the scopes read\. The key is shown only this once\.\n$/),
  });
  server.key = made.stdout.trim();
  const { status, headers } = await server.get("/v1/sessions");
  expect({ status, limit: headers.get("x-ratelimit-limit") }).toEqual({ status: 200, limit: "1000" });
  expect((await server.post("/v1/sessions", { agent_id: "agent" })).body.error.code).toBe("permission_denied");

  const listed = await keys("list");
  const [head = "", ...lines] = listed.stdout.trimEnd().split("\n");
  const columns = ["ID", "KIND", "KEY", "SCOPES", "USER", "AGENT", "TIER", "A MINUTE/BURST", "CREATED", "LAST USED", "ENDS", "NAME"];
  expect(head.split(/ {2,}/)).toEqual(columns);
  const time = expect.stringMatching(/^\d{4}-.*Z$/);
  const [id = "", anyId] = [made.stderr.split(" ")[0], expect.stringMatching(/^key_\w{12}$/)];
  const shown = (key: string) => `${key.slice(0, 8)}…`;
  expect(lines.map((line) => line.split(/ {2,}/))).toEqual([
    [id, "key", shown(server.key), "read", "any", "any", "pro", "1000/2000", time, "never", "never", "helper"],
    [anyId, "key", shown(KEY), "admin", "any", "any", "enterprise", "60000/120000", time, "never", "never", "from the environment"],
  ]);
  // Each column begins where its head does.
  for (const name of columns) expect(lines.map((line) => line[head.indexOf(name) - 1] ?? " ")).toEqual([" ", " "]);
  expect(listed.stdout).not.toContain(server.key);
  server.key = KEY;
  // A running server saves uses once a minute.
  const unused = (await server.all("/v1/api_keys")).map((key) => ({ ...key, last_used_at: null }));
  expect(JSON.parse((await keys("list", "--json")).stdout)).toEqual(unused);
  server.key = made.stdout.trim();

  expect(await keys("revoke", id)).toEqual(succeeded(`Revoked ${id}\n`));
  expect((await server.get("/v1/sessions")).status).toBe(401);
  for (const gone of [id, "key_000000000000"])
    expect(await keys("revoke", gone)).toMatchObject({ code: 1, stderr: `cairn: There is no API key ${gone}.\n` });

  server.key = KEY;
  const details = { key_id: id, name: "helper" };
  expect(await server.all("/v1/traces")).toMatchObject([
    { action: "api_key.revoked", actor: "system", session_id: null, details },
    { action: "api_key.created", actor: "system", session_id: null, details },
    { action: "api_key.created", actor: "system", details: { name: "from the environment" } },
  ]);
});

test("a key made with an end and limits of its own has them, is listed with them, and is refused after its end", async () => {
  await using server = await startProcess();
  const keys = (...args: string[]) => server.command("keys", ...args);
  server.key = (
    await keys("create", "--expires", "90d", "--rate-limit", "600/1200", "--name", "limited", "--user", "ada", "--agent", "bot")
  ).stdout.trim();
  const { status, headers } = await server.get("/v1/sessions");
  expect([status, headers.get("x-ratelimit-limit")]).toEqual([200, "600"]);
  const listed = (await keys("list")).stdout.split("\n").find((line) => line.endsWith("limited"));
  const [, ends = ""] = /  ada +bot +enterprise +600\/1200 .* (\S+)  limited$/.exec(listed ?? "") ?? [];
  expect(Math.abs(Date.parse(ends) - Date.now() - 90 * 86_400_000)).toBeLessThan(3_600_000);

  server.key = (await keys("create", "--expires", "300ms")).stdout.trim();
  await until("the key to end", async () => (await server.get("/v1/sessions")).status === 401);
});

test("the name of a key forges no line of the list and reaches no terminal as a command", async () => {
  using directory = scratchDirectory();
  const keys = (...args: string[]) => runCairn(["keys", ...args, "--data-dir", directory.path]);
  const name = "helper\n\u001b[2Kkey_000000000000  \u202eadmin\u0085 👩‍💻 Zoë";
  expect(await keys("create", "--name", name)).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^crn_\w{24}\n$/),
    stderr: expect.stringMatching(/^There was no store in .*: a new one is made\.\nkey_\w{12} has the scopes read and write\. .*\n$/),
  });
  const { stdout } = await keys("list");
  expect(stdout.split("\n")).toHaveLength(3);
  expect(stdout).toEndWith("  helper\\u000a\\u001b[2Kkey_000000000000  \\u202eadmin\\u0085 👩‍💻 Zoë\n");
});

test("a key rolled beside a running server is printed alone, and the old one works until its overlap is over; the list says when each was used", async () => {
  await using server = await startProcess();
  const keys = (...args: string[]) => server.command("keys", ...args);
  const columnsOf = (listed: string, id: string) =>
    listed
      .split("\n")
      .find((line) => line.startsWith(id))
      ?.split(/ {2,}/)
      .slice(9);
  const statusWith = async (key: string) => {
    server.key = key;
    return (await server.get("/v1/sessions")).status;
  };
  const old = await server.ok(server.post("/v1/api_keys", { name: "agent" }));
  const first = await keys("roll", old.id, "--overlap", "2h");
  expect(first).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^crn_[0-9A-Za-z]{24}\n$/),
    stderr: expect.stringMatching(
      new RegExp(`^key_\\w{12} replaces ${old.id}, which ends \\d{4}-.*Z\\. The key is shown only this once\\.\n$`),
    ),
  });
  const [successor = ""] = first.stderr.split(" ");
  const newer = first.stdout.trim();
  expect([await statusWith(old.key), await statusWith(newer)]).toEqual([200, 200]);

  const second = await keys("roll", successor, "--overlap", "0");
  expect([second.code, await statusWith(newer), await statusWith(second.stdout.trim())]).toEqual([0, 401, 200]);
  expect(await keys("roll", old.id)).toEqual(failed(`cairn: API key ${old.id} has been rolled already; ${successor} came in its place.\n`));
  expect(await keys("roll", successor)).toMatchObject({ code: 1, stderr: `cairn: API key ${successor} has ended. Make a new one.\n` });

  expect(await server.stop()).toBe(0);
  const time = expect.stringMatching(/^\d{4}-.*Z$/);
  const listed = (await keys("list")).stdout;
  expect([old.id, successor].map((id) => columnsOf(listed, id))).toEqual([
    [time, time, "agent"],
    [time, time, "agent"],
  ]);
});

test("the docs and the OpenAPI document come out of the executable and name no other host", async () => {
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: directory.path, directory: directory.path });
  const docs = await server.get("/docs");
  expect({ status: docs.status, type: docs.headers.get("content-type")?.split(";")[0] }).toEqual({ status: 200, type: "text/html" });
  const assets = Array.from(docs.text.matchAll(/(?:src|href)="([^"#]+)"/g), (match) => match[1] as string);
  expect(assets.filter((asset) => /^(https?:)?\/\//.test(asset))).toEqual([]);
  for (const asset of assets.filter((path) => !path.startsWith("data:"))) {
    expect((await server.get(new URL(asset, "http://localhost/docs").pathname)).status).toBe(200);
  }
  const { status, body } = await server.get("/openapi.json");
  expect({ status, openapi: body.openapi, paths: Object.keys(body.paths).includes("/v1/sessions/{session_id}/context") }).toEqual({
    status: 200,
    openapi: expect.stringMatching(/^3\./),
    paths: true,
  });
});

it("an answer that cannot be written ends every command with code 1 and the reason; a reader who leaves early does not", async () => {
  using directory = scratchDirectory();
  const data = ["--data-dir", directory.at("data")];
  const { stdout: key } = await runCairn(["keys", "create", ...data]);
  const [{ id }] = JSON.parse((await runCairn(["keys", "list", "--json", ...data])).stdout);
  await runCairn(["backup", directory.at("backup"), ...data]);
  await runCairn(["export", directory.at("export"), ...data]);
  expect(key).toStartWith("crn_");
  const commands = [
    ["version"],
    ["--help"],
    ["keys", "create", ...data],
    ["keys", "list", ...data],
    ["keys", "roll", id, ...data],
    ["keys", "revoke", id, ...data],
    ["doctor", ...data],
    ["doctor", "--fix", ...data],
    ["rebuild-index", ...data],
    ["backup", directory.at("another"), ...data],
    ["restore", directory.at("backup"), "--data-dir", directory.at("restored")],
    ["import", directory.at("export"), "--data-dir", directory.at("imported")],
    ["export", ...data],
  ];
  for (const args of commands) {
    const ended = await runCairn(args, { through: ["sh", "-c", 'exec "$0" "$@" >/dev/full'] });
    expect({ args, ...ended }).toEqual({ args, ...failed(/^(.*\n)?cairn: Standard output cannot be written: the disk is full\..*\n$/) });
  }
  const lost = (await runCairn(["keys", "list", ...data])).stdout.split("\n").filter((line) => line.includes("enterprise"));
  expect(lost).toHaveLength(2);
  const piped = '(sleep 0.3; exec "$0" keys list "$@") | true; echo ${PIPESTATUS[0]}';
  const { stdout } = Bun.spawnSync(["bash", "-c", piped, await buildBinary(), ...data]);
  expect(stdout.toString()).toBe("0\n");
});
