/**
 * Servers that share a database, as they are run: what they say at the start and at the end.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { buildBinary } from "../support/binary.ts";
import { SMALL_EXPORTS } from "../support/import-sources.ts";
import { GENERATIONS } from "../support/mcp.ts";
import { isHere } from "../support/platform.ts";
import { Postgres, POSTGRES } from "../support/postgres.ts";
import { failed, KEY, runCairn, scratchDirectory, startProcess, succeeded, until, type CairnProcess } from "../support/process.ts";
import { startReceiver } from "../support/receiver.ts";
import { RoundRobin } from "../support/round-robin.ts";

const SHOWN = /^postgres:\/\/cairn@127\.0\.0\.1:\d+\/test_\d+$/;
const SECRETS = ["p%40ss", "p@ss"];
const secretsIn = (text: string) => SECRETS.filter((secret) => text.includes(secret));

if (isHere(POSTGRES, "cairn serve on a database")) {
  describe("cairn serve on a database", () => {
    let postgres: Postgres;
    let url: string;
    beforeAll(async () => {
      postgres = await Postgres.start();
      url = await postgres.migrated();
    });
    afterAll(() => postgres.stop());

    const leases = async () => {
      await using sql = new SQL(url);
      const { held, all } = (
        await sql`select count(*) filter (where until > ${Date.now()}::int8) as held, count(*) as all from cairn.leases`
      )[0];
      return { held: Number(held), all: Number(all) };
    };

    test("two servers have the same records and keys; the second goes on with what the first did alone once that has ended", async () => {
      const environment = { CAIRN_STORE: url };
      await using first = await startProcess({ environment });
      await until("the first to hold every lease", async () => {
        const { held, all } = await leases();
        return all > 0 && held === all;
      });
      await using second = await startProcess({ environment });
      const { id } = await first.createSession();
      expect(await second.ok(second.get(`/v1/sessions/${id}`))).toMatchObject({ id });
      const { key, id: keyId } = await second.ok(second.post("/v1/api_keys", { name: "of both", scopes: ["read"] }));
      const statusAtFirst = async () => (await fetch(`${first.address}/v1/sessions/${id}`, { headers: { "X-API-Key": key } })).status;
      expect(await statusAtFirst()).toBe(200);
      await second.ok(second.delete(`/v1/api_keys/${keyId}`));
      expect(await statusAtFirst()).toBe(401);

      const stopped = first.stop();
      // A proxy finds out, and whoever asks it meanwhile is answered.
      await until("the first to say that it stops", async () => (await fetch(`${first.address}/health/ready`)).status === 503);
      expect((await fetch(`${first.address}/v1/none`)).status).toBe(401);
      expect(await stopped).toBe(0);
      await until("the second to hold every lease", async () => {
        const { held, all } = await leases();
        return held === all;
      });
      expect(await second.stop()).toBe(0);
      expect((await leases()).held).toBe(0);

      for (const { stdout, stderr } of [first, second]) {
        expect(secretsIn(stdout + stderr)).toEqual([]);
        expect(stderr).not.toContain(KEY);
      }
      expect(first.logged("serving")).toMatchObject([{ store: expect.stringMatching(SHOWN) }]);
    }, 600_000);

    /** Runs a command in an empty directory, in which it has to leave nothing. */
    const command = async (at: string, args: readonly string[]) => {
      using scratch = scratchDirectory();
      const ended = await runCairn([...args, "--store", at], { directory: scratch.path });
      expect({ args, left: readdirSync(scratch.path), secrets: secretsIn(ended.stdout + ended.stderr) }).toEqual({
        args,
        left: [],
        secrets: [],
      });
      return ended;
    };

    test("an import of each source is in the database once, at its own times", async () => {
      using work = scratchDirectory();
      const environment = { CAIRN_STORE: await postgres.migrated(), HOME: work.path };
      for (const { from, name, content, first, again } of SMALL_EXPORTS) {
        await Bun.write(work.at(name), content);
        const run = () => runCairn(["import", "--from", from, "--user", "ada", work.at(name)], { environment });
        expect(await run()).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`^Imported ${first}[,;]`)) });
        expect(await run()).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`^Imported ${again}; `)) });
      }
      await using cairn = await startProcess({ environment });
      const [session] = await cairn.all("/v1/sessions?external_id=chatgpt:c");
      expect(await cairn.all(`/v1/sessions/${session.id}/turns`)).toMatchObject([
        { input: { content: "Which database?" }, output: { content: "PostgreSQL." }, occurred_at: "2025-03-01T10:00:00.000Z" },
      ]);
    }, 600_000);

    test("a first key may come before the first start; keys are listed, rolled and revoked beside a server", async () => {
      const fresh = await postgres.database();
      const place = `postgres://cairn@${new URL(fresh).host}${new URL(fresh).pathname}`;
      expect(await command(fresh, ["keys", "list"])).toEqual(
        failed("cairn: There is no store in the database. Say where it is with --store.\n"),
      );
      const made = await command(fresh, ["keys", "create", "--scopes", "admin,read,write", "--name", "first"]);
      expect(made).toEqual({
        code: 0,
        stdout: expect.stringMatching(/^crn_\w{24}\n$/),
        stderr: expect.stringMatching(
          new RegExp(`^There was no store in ${place}: a new one is made\\.\nkey_\\w{12} has the scopes admin and read and write\\. .*\n$`),
        ),
      });
      await using server = await startProcess({ environment: { CAIRN_STORE: fresh }, hasKey: false });
      server.key = made.stdout.trim();
      const { id } = await server.createSession();
      expect(await server.ok(server.get(`/v1/sessions/${id}`))).toMatchObject({ id });
      const second = await command(fresh, ["keys", "create", "--name", "second"]);
      const [secondId = ""] = second.stderr.split(" ");
      const listed = (await command(fresh, ["keys", "list"])).stdout.trim().split("\n");
      expect(listed.map((line) => line.split(/ {2,}/).at(-1))).toEqual(["NAME", "second", "first"]);
      const rolled = await command(fresh, ["keys", "roll", secondId, "--overlap", "0"]);
      server.key = rolled.stdout.trim();
      expect((await server.get("/v1/sessions")).status).toBe(200);
      const [successor = ""] = rolled.stderr.split(" ");
      expect(await command(fresh, ["keys", "revoke", successor])).toEqual(succeeded(`Revoked ${successor}\n`));
      expect((await server.get("/v1/sessions")).status).toBe(401);
    });

    test("what was exported from a directory is imported into a database, examined there, served, and exported as the same lines", async () => {
      using scratch = scratchDirectory();
      const { at } = scratch;
      await using server = await startProcess({ dataDirectory: at("data") });
      const session = await server.createSession({ user_id: "ada" });
      await server.addMemory(session.id, "The parcel is blue.");
      expect(await server.stop()).toBe(0);
      expect(await runCairn(["export", at("lines"), "--with-secrets", "--data-dir", at("data")])).toMatchObject({ code: 0 });

      const target = await postgres.database();
      const place = `postgres://cairn@${new URL(target).host}${new URL(target).pathname}`;
      expect(await command(target, ["import", at("lines")])).toEqual(succeeded(new RegExp(`^Imported \\d+ records to ${place}\n$`)));
      expect(await command(target, ["import", at("lines")])).toEqual(failed(/^cairn: There are records in the database already \(/));
      expect(await command(target, ["doctor"])).toEqual(succeeded(/^Nothing is wrong: \d+ rows\.\n$/));
      expect(await command(target, ["export", at("again"), "--with-secrets"])).toMatchObject({ code: 0, stderr: `Wrote ${at("again")}\n` });
      expect(readFileSync(at("again"), "utf8")).toBe(readFileSync(at("lines"), "utf8"));
      await using node = await startProcess({ environment: { CAIRN_STORE: target }, hasKey: false });
      node.key = KEY;
      expect(await node.ok(node.post("/v1/memory/search", { query: "What colour is the parcel?", threshold: 0 }))).toMatchObject({
        data: [{ content: "The parcel is blue." }],
      });

      await using sql = new SQL(target);
      await sql`update cairn.sessions set by_user = null`;
      expect(await command(target, ["doctor"])).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(
          /sessions\.byUser: not what the row says[^]*\nRun cairn doctor --fix to repair what can be repaired\.\n$/,
        ),
      });
      expect(await command(target, ["doctor", "--fix"])).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("All problems fixed."),
      });
      expect(await node.all("/v1/sessions?user_id=ada")).toMatchObject([{ id: session.id }]);
      // A key of the dashboard is made in the database, and shown to the server.
      expect(await command(target, ["dashboard", "--url", node.address])).toEqual(
        succeeded(new RegExp(`^${node.address}/dashboard/#key=crn_`)),
      );
      // The server of a data directory is found and proves itself as one without a database does.
      const beside = (place: string) => runCairn(["dashboard", "--store", place, "--data-dir", node.dataDirectory]);
      expect(await beside(target)).toEqual(succeeded(new RegExp(`^${node.address}/dashboard/#key=crn_`)));
      const other = await postgres.migrated();
      expect(await beside(other)).toEqual(
        failed(/^cairn: The server at .* uses another database than postgres:\/\/cairn@\S+: say which with --store\.\n$/),
      );
      expect(await command(other, ["dashboard", "--url", node.address])).toEqual(
        failed(/^cairn: The server at .* uses another database than postgres:\/\/cairn@\S+: say which with --store\.\n$/),
      );
    });

    test("commands of files say what does the same for a database", async () => {
      const says = async (...args: string[]) => (await command(url, args)).stderr;
      expect(await says("backup", "file")).toMatch(
        /^cairn: A database is backed up with PostgreSQL's own tools\. pg_dump .*pg_basebackup /,
      );
      expect(await says("restore", import.meta.path)).toMatch(/^cairn: A database is restored with PostgreSQL's own tools, .*pg_restore /);
      expect(await says("rebuild-index")).toContain("of a database each server keeps what it searches by itself");
      expect(await says("export", "--salvage")).toContain("Of a database write an export without it.");
      expect(await says("keys", "list", "--data-dir", "elsewhere")).toBe("");
      const ambiguous = await runCairn(["export", "--data-dir", "elsewhere"], { environment: { CAIRN_STORE: url } });
      expect(ambiguous).toMatchObject({ code: 2, stderr: expect.stringContaining("--data-dir and CAIRN_STORE name two stores") });
    });

    test("cairn mcp works on the database, and joins no server whose records are elsewhere", async () => {
      using scratch = scratchDirectory();
      const start = async (...args: string[]) =>
        GENERATIONS["2026-07-28"]!({ command: await buildBinary(), args: ["mcp", "--data-dir", scratch.path, ...args], env: {} });
      await using mcp = await start("--store", url, "--user", "ada");
      expect(await mcp.use("update_state", { changes: { step: 1 } })).toMatchObject({ version: 1 });
      await using sql = new SQL(url);
      expect(await sql`select key from cairn.sessions where row like '%"ada"%'`).toHaveLength(1);
      await using elsewhere = await start("--user", "ada");
      expect(await elsewhere.refusal("update_state", { changes: { step: 2 } })).toContain(" keeps its records in postgres://cairn@");
      expect(existsSync(scratch.at("store"))).toBe(false);
    });

    test("of three servers behind a balancer one is killed with every lease: each change is made once, and its events come in order", async () => {
      const environment = { CAIRN_STORE: await postgres.migrated() };
      await using holder = await startProcess({ environment });
      const heldBy = async ({ address }: CairnProcess) => {
        const metrics = await (await fetch(`${address}/metrics`)).text();
        const states = Array.from(metrics.matchAll(/^cairn_lease_held\{.*\} (\d)$/gm), ([, state]) => Number(state));
        return states.length > 0 && states.every((state) => state === 1);
      };
      await until("the first to hold every lease", () => heldBy(holder));
      await using second = await startProcess({ environment });
      await using third = await startProcess({ environment });
      await using balancer = new RoundRobin([holder, second, third].map(({ address }) => address));
      await using receiver = startReceiver();

      const request = async (method: string, path: string, body?: unknown) => {
        const headers = { "X-API-Key": KEY, "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() };
        return until(`an answer to ${method} ${path}`, async () => {
          const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
          const answer = await fetch(`${balancer.address}${path}`, init);
          if (answer.status === 502) return undefined;
          const text = await answer.text();
          if (answer.status > 299) throw new Error(`answered ${answer.status} ${text}`);
          return JSON.parse(text);
        });
      };
      await request("POST", "/v1/webhooks", { url: receiver.url, events: ["turn.added"] });
      const { id } = await request("POST", "/v1/sessions", { agent_id: "agent" });
      const turn = (i: number) => ({ input: { type: "text", content: `turn ${i}` }, output: { type: "text", content: "" } });
      const numbers = Array.from({ length: 40 }, (_, i) => i);
      const added = numbers.map(async (i) => {
        if (i === 20) await holder.kill();
        return request("POST", `/v1/sessions/${id}/turns`, turn(i));
      });
      await Promise.all(added);
      const { data } = await request("GET", `/v1/sessions/${id}/turns?limit=100`);
      const contents = data.map(({ input }: any) => input.content).toSorted();
      expect(contents).toEqual(numbers.map((i) => `turn ${i}`).toSorted());

      // The lease of a server that was killed ends after 14 s, and another one looks each second.
      await until("all events at the receiver", () => new Set(receiver.events.map((event) => event.id)).size >= 40, 60);
      const given = receiver.events.map((event) => event.data.turn_number as number);
      const firsts = given.filter((number, i) => given.indexOf(number) === i);
      expect(firsts).toEqual(firsts.toSorted((a, b) => a - b));
      expect(firsts.length).toBe(40);
    }, 120_000);

    test("one that cannot be reached ends the start with 1 and says where it is, never the password", async () => {
      using scratch = scratchDirectory();
      const away = new URL(url);
      away.port = "1";
      const ended = await runCairn(["serve", "--port", "0", "--store", away.href, "--data-dir", scratch.path]);
      expect(ended).toEqual({
        code: 1,
        stdout: "",
        stderr: "cairn: No database answers at 127.0.0.1:1: is it running, and may this machine reach it?\n",
      });
    });
  });
}
