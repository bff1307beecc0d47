/**
 * Requests that nobody would write (`support/odd-requests.ts`), to every endpoint.
 *
 * Whatever comes, the answer is one of those that the OpenAPI document has, as every answer of every test, and a refusal has
 * changed nothing. When it fails, the seed and path that fast-check prints bring the request back.
 *
 * @module
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { endpointsOf } from "../src/server/app.ts";
import { auditSegments, indexedTurns, meta, pendingTurns, retrievals, TABLES, traces, vectors } from "../src/storage/tables.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { requestTo, World, type Sent } from "./support/odd-requests.ts";
import { until } from "./support/process.ts";
import { longRounds } from "./support/rounds.ts";

const SECONDS = longRounds(10, 300);

/** The one warning that a request may bring about: it did what an operator may do. */
const ALLOWED_PRIVATE = "webhooks may now lead into private networks";

/** Rows of every table, with those that the log of retrievals is about to write and those of a backup that is under way. */
async function countsOf(cairn: Cairn): Promise<Record<string, number>> {
  await cairn.service.retrievals.settled();
  await until("the end of a backup", async () => (await cairn.list("/v1/backups")).every(({ status }) => status !== "running"));
  return cairn.countsByName([...TABLES, vectors]);
}

/** A search may be a GET. It is logged, and the first ones in turns index those that they are about. A head or a proof signs traces. */
const OF_SEARCHES = [retrievals, indexedTurns, pendingTurns, meta, auditSegments].map(({ name }) => name);
const unlogged = (counts: Record<string, number>) =>
  Object.fromEntries(Object.entries(counts).filter(([table]) => !OF_SEARCHES.some((name) => table.startsWith(name))));

test(
  "whatever is sent, the answer is one that was promised, and a refusal has changed nothing",
  async () => {
    await using cairn = await startCairn({ environment: { retrieval_log: true } });
    const world = new World(cairn);
    await world.fill();
    const endpoints = endpointsOf(cairn.service);
    const known = endpoints.map((endpoint) => ({
      ...endpoint,
      pattern: new RegExp(`^${endpoint.path.replaceAll(/\{\w+\}/g, "[^/]+")}/?$`),
    }));
    const outcomes = { accepted: 0, refused: 0 };
    const check = async (sent: Sent): Promise<void> => {
      const before = await countsOf(cairn);
      const answer = await world.send(sent);
      const after = await countsOf(cairn);
      if (answer.status >= 400) {
        outcomes.refused += 1;
        expect(answer.status).toBeLessThan(500);
        const { message = "" } = answer.body?.error ?? {};
        expect(message).not.toMatch(/\bat [\w.<]+ \(|\/src\/|\.ts:|node_modules|\bundefined\b/);
        expect(after).toEqual(before);
        return;
      }
      outcomes.accepted += 1;
      // Not always the one that was meant: `..` is a segment, and a method may have become another.
      const { pathname } = new URL(`http://localhost${sent.path}`);
      const endpoint = known.find(({ method, pattern }) => method === sent.method && pattern.test(pathname));
      const left = after[traces.name]! - before[traces.name]!;
      // Who has taken a backup away is traced, too.
      if (sent.method === "GET" && /^\/v1\/backups\/[^/]+\/file\/?$/.test(pathname)) expect(left).toBe(1);
      else if (sent.method === "GET" || sent.method === "HEAD" || answer.headers.has("idempotency-replayed"))
        expect(unlogged(after)).toEqual(unlogged(before));
      else if (endpoint !== undefined) {
        // A PATCH may change nothing, and documents leave no trace; not all that an admin key does is a change.
        const mayLeaveNone = sent.method === "PATCH" || /^\/v1\/documents\/batch\/?$/.test(pathname);
        // A webhook that is changed and disabled at once leaves two.
        // A memory without a session may have one made, or prolonged.
        const mayLeaveMore = sent.method === "POST" && /^\/v1\/memories\/?$/.test(pathname);
        // A turn or memory that is there already leaves none; a step, and many at once, one for each.
        const mayBeMany = sent.method === "POST" && /\/(turns|memory)(\/batch|\/forget)?\/?$/.test(pathname);
        const mayLeave = mayBeMany
          ? Array.from({ length: 101 }, (_, i) => i)
          : mayLeaveMore
            ? [1, 2]
            : endpoint.scope === "admin"
              ? [0, 1, 2]
              : mayLeaveNone
                ? [0, 1]
                : [1];
        expect(endpoint.scope === "read" ? [0] : mayLeave).toContain(left);
      }
      // Else nothing more could be stored.
      if (sent.method === "PATCH" && pathname.startsWith("/v1/settings"))
        await cairn.ok(cairn.patch("/v1/settings", { max_store_bytes: null }));
      if (sent.method === "DELETE") await world.fill();
    };
    let last: Promise<void> | undefined;
    const property = fc.asyncProperty(fc.oneof(...endpoints.map(requestTo)), (sent) => (last = check(sent)));
    await fc.assert(property, { numRuns: longRounds(5_000, 1_000_000), plugins: [fc.interruptAfterTimeLimit(SECONDS * 1_000)] });
    // The limit of time leaves one under way, which needs the store.
    await last;
    expect(outcomes.accepted).toBeGreaterThan(0);
    expect(outcomes.refused).toBeGreaterThan(0);
    expect(cairn.logged.filter((line) => /"level":"(warn|error)"/.test(line) && !line.includes(ALLOWED_PRIVATE))).toEqual([]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  },
  SECONDS * 5_000,
);
