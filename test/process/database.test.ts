/**
 * Servers that share a database, as they are run: what they say at the start and at the end.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { hasPostgres, Postgres } from "../support/postgres.ts";
import { KEY, runCairn, scratchDirectory, startProcess, until } from "../support/process.ts";

const SHOWN = /^postgres:\/\/cairn@127\.0\.0\.1:\d+\/test_\d+$/;
const SECRETS = ["p%40ss", "p@ss"];
const secretsIn = (text: string) => SECRETS.filter((secret) => text.includes(secret));

if (hasPostgres()) {
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

      expect(await first.stop()).toBe(0);
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
    }, 60_000);

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
