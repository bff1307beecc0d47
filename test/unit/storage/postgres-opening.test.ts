/**
 * Which databases are opened, and what is said of one that is not.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, type Clock } from "../../../src/lib/clock.ts";
import { createLog } from "../../../src/lib/log.ts";
import { openService } from "../../../src/server/service.ts";
import type { Durability } from "../../../src/storage/durability.ts";
import { shownDatabase } from "../../../src/storage/postgres/connection/database-url.ts";
import { Database } from "../../../src/storage/postgres/connection/database.ts";
import { openDatabase } from "../../../src/storage/postgres/connection/open-database.ts";
import { StoreError } from "../../../src/storage/store-error.ts";
import { isHere } from "../../support/platform.ts";
import { Postgres, POSTGRES } from "../../support/postgres.ts";

/** It goes on as any other does, so that what waits for a moment is not waiting for ever. */
const YEARS_BEHIND: Clock = {
  now: () => systemClock.now() - 26 * 365 * 86_400_000,
  elapsed: () => systemClock.elapsed(),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
  timer: (ms, onTime) => systemClock.timer(ms, onTime),
};
const CERTIFICATE = join(import.meta.dir, "../../support/tls/certificate.pem");

test("what is shown of a URL has no password and no parameters", () => {
  expect(shownDatabase("postgres://cairn:p%40ss@db.example.com/records?sslmode=require&options=secret")).toBe(
    "postgres://cairn@db.example.com:5432/records",
  );
});

if (isHere(POSTGRES, "opening a database")) {
  describe("a database", () => {
    let postgres: Postgres;
    let url: string;
    beforeAll(async () => {
      postgres = await Postgres.start({ tls: true });
      url = await postgres.database();
    });
    afterAll(() => postgres.stop());

    const changed = (change: (url: URL) => void) => {
      const other = new URL(url);
      change(other);
      return other.href;
    };
    const withMode = (mode: string, more: Record<string, string> = {}) =>
      changed(({ searchParams }) => {
        searchParams.set("sslmode", mode);
        for (const [name, value] of Object.entries(more)) searchParams.set(name, value);
      });
    const open = async (at: string, durability?: Durability) => {
      const { store, clock } = await openDatabase(at, YEARS_BEHIND, { durability });
      await store.close();
      return clock;
    };
    test("has as many connections as its URL says, or twelve", async () => {
      const counting = { text: "select count(*)::int as n from pg_stat_activity where application_name = 'cairn'", values: [] };
      for (const size of [undefined, 4, 20]) {
        const at = changed(({ searchParams }) => size !== undefined && searchParams.set("pool_max_conns", String(size)));
        const database = new Database(at, systemClock);
        const most = size ?? 12;
        let found = 0;
        while (found < most) {
          const counts = await Promise.all(Array.from({ length: 2 * most }, () => database.query(counting)));
          found = Number(counts.at(-1)?.[0]?.["n"]);
        }
        await database.close();
        expect(found).toBe(most);
      }
    });

    const problemOf = async (at: string): Promise<string> => {
      const { host } = new URL(at);
      const problem = await open(at).then(
        () => "none",
        (error: unknown) => (error instanceof StoreError ? error.message : `no StoreError: ${String(error)}`),
      );
      expect(problem).not.toContain("p%40ss");
      expect(problem).not.toContain("p@ss");
      return problem.replace(host, "HOST");
    };
    const query = async (at: string, text: string) => {
      await using sql = new SQL(at);
      return (await sql.unsafe(text)) as unknown[];
    };

    test("is opened, and its time is that of the store, wherever the clock of this machine stands", async () => {
      const clock = await open(url);
      expect(Math.abs(clock.now() - Date.now())).toBeLessThan(60_000);
      expect(Math.abs(clock.offsetMs)).toBeGreaterThan(86_400_000);
    });

    test("is named by its host where nothing answers, it refuses the user, or there is none of that name", async () => {
      const unreachable = "No database answers at HOST: is it running, and may this machine reach it?";
      expect(await problemOf(changed((at) => (at.port = "1")))).toBe(unreachable);
      expect(await problemOf(changed((at) => (at.hostname = "nowhere.invalid")))).toBe(unreachable);
      expect(await problemOf(changed((at) => (at.password = "p@ss")))).toBe(
        'The database at HOST cannot be opened: password authentication failed for user "cairn".',
      );
      expect(await problemOf(changed((at) => (at.pathname = "/records")))).toBe(
        'The database at HOST cannot be opened: database "records" does not exist.',
      );
      expect(await problemOf(withMode("disable", { sslrootcert: "/nowhere" }))).toContain("The database at HOST cannot be opened: ");
    });

    test("is asked over TLS as sslmode says: with verify-full only where an authority that it trusts has signed its certificate", async () => {
      const usesTls = async (at: string) => (await query(at, "select ssl from pg_stat_ssl where pid = pg_backend_pid()"))[0];
      expect(await usesTls(withMode("disable"))).toEqual({ ssl: false });
      for (const mode of ["prefer", "require"]) expect([mode, await usesTls(withMode(mode))]).toEqual([mode, { ssl: true }]);
      for (const mode of ["verify-ca", "verify-full"])
        expect(await problemOf(withMode(mode))).toBe(
          `The certificate of the database at HOST does not do for sslmode=${mode}: self signed certificate. sslrootcert=FILE names the authority that signs it.`,
        );
      await open(withMode("verify-full", { sslrootcert: CERTIFICATE }));
      await open(withMode("require"));
    });

    test("that takes no changes is refused, one that isolates transactions otherwise, and one that may lose changes unless that is wanted", async () => {
      const readOnly = withMode("disable", { options: "-c default_transaction_read_only=on" });
      expect(await problemOf(readOnly)).toBe(
        "The database takes no changes: default_transaction_read_only is on, for it or for this user.",
      );
      const isolated = withMode("disable", { options: "-c default_transaction_isolation=serializable" });
      expect(await problemOf(isolated)).toBe(
        "The database begins transactions as serializable: its default_transaction_isolation has to be read committed, for it and for this user.",
      );
      const losing = withMode("disable", { options: "-c synchronous_commit=off" });
      expect(await problemOf(losing)).toBe(
        "The database acknowledges what a crash can lose: its synchronous_commit is off and has to be on, unless Cairn is started with --durability relaxed.",
      );
      await open(losing, "relaxed");
    });
  });

  test("a start warns of a database without a synchronous standby, unless it may lose changes; a standby is refused, with what to name instead", async () => {
    // A primary commits nothing any more once its standby is gone: no other test may have this one.
    const primary = await Postgres.start();
    const url = await primary.database();
    const warningsOf = async (durability: Durability): Promise<number> => {
      const directory = mkdtempSync(join(tmpdir(), "cairn-test-"));
      const lines: string[] = [];
      const log = createLog({ level: "warn", pretty: false, now: () => 0, write: (line) => void lines.push(line) });
      const service = await openService(directory, systemClock, log, { database: url, durability, environment: {} });
      await service.close();
      rmSync(directory, { recursive: true });
      return lines.filter((line) => line.includes("the database names no synchronous standby")).length;
    };
    expect([await warningsOf("strict"), await warningsOf("relaxed")]).toEqual([1, 0]);
    const standby = await primary.standby();
    try {
      expect(await warningsOf("strict")).toBe(0);
      const refused = openDatabase(standby.same(url), YEARS_BEHIND);
      await expect(refused).rejects.toThrow(new StoreError("The database is a standby, which takes no changes. Name its primary."));
    } finally {
      standby.stop();
      primary.stop();
    }
  });

  test("a server that speaks no TLS is refused where sslmode asks for it, and is asked without where it is only preferred", async () => {
    const postgres = await Postgres.start();
    try {
      const url = new URL(await postgres.database());
      url.searchParams.set("sslmode", "require");
      const refused = openDatabase(url.href, YEARS_BEHIND);
      await expect(refused).rejects.toThrow(new StoreError(`The database at ${url.host} speaks no TLS, which sslmode=require asks for.`));
      url.searchParams.delete("sslmode");
      const { store } = await openDatabase(url.href, YEARS_BEHIND);
      await store.close();
    } finally {
      postgres.stop();
    }
  });
}
