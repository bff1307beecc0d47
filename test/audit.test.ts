/**
 * Traces form chains of hashes: what is changed, removed, moved or added without the API is found and named, and what retention and
 * erasures take is proved.
 *
 * @module
 */
import { expect, spyOn, test } from "bun:test";
import { createHash, createPublicKey, verify } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import type { AuditReport, VerifyOptions } from "../src/audit/verify.ts";
import { DAY_MS } from "../src/lib/duration.ts";
import { parseHeads, verifyExport, verifyStore } from "../src/operations/audit.ts";
import { exportLines } from "../src/operations/export.ts";
import { stored } from "../src/operations/records.ts";
import { auditChains, auditRemovals, auditSegments, traces } from "../src/storage/tables.ts";
import { MAX_KEY } from "../src/storage/keys.ts";
import { AuditChain } from "../src/storage/audit/chain.ts";
import { Store } from "../src/storage/lmdb/store.ts";
import { importLines } from "../src/operations/import.ts";
import { startCairn } from "./support/cairn.ts";
import { Chance, scratchDirectory } from "./support/process.ts";
import { longRounds } from "./support/rounds.ts";
import { pick } from "./support/seeds.ts";
import { isOnPostgres, onEmbedded, SERVERS } from "./support/stores.ts";

type Cairn = Awaited<ReturnType<typeof startCairn>>;

const ALL: VerifyOptions = { publicKeys: [], heads: [], isSettled: true };

async function verified(cairn: Cairn, options: Partial<VerifyOptions> = {}): Promise<AuditReport> {
  for (const { store } of cairn.services) await store.signTraces();
  return verifyStore(cairn.service.store, { ...ALL, ...options });
}

const textsOf = ({ findings }: AuditReport) => findings.map(({ text, trace }) => `${trace ?? ""} ${text}`.trim());

/** A session with some states: two traces more than states. */
async function sessionWithStates(cairn: Cairn, states: number, userId = "ada"): Promise<string> {
  const { id } = await cairn.createSession({ user_id: userId });
  for (let step = 0; step < states; step++) await cairn.ok(cairn.post(`/v1/sessions/${id}/state`, { state: { step } }));
  return id;
}

async function countOf(cairn: Cairn): Promise<number> {
  return cairn.service.store.count(traces);
}

const linked = ({ signed, unsigned, uncovered }: AuditReport) => ({ signed, unsigned, uncovered });

test("every trace is linked and signed, by each server, also after a restart", async () => {
  await using cairn = await startCairn();
  for (let i = 0; i < 3; i++) await sessionWithStates(cairn, 4, `user ${i}`);
  const before = await verified(cairn);
  expect(textsOf(before)).toEqual([]);
  expect(linked(before)).toEqual({ signed: await countOf(cairn), unsigned: 0, uncovered: 0 });
  await cairn.restart();
  await sessionWithStates(cairn, 2);
  const after = await verified(cairn);
  expect(textsOf(after)).toEqual([]);
  expect(linked(after)).toEqual({ signed: await countOf(cairn), unsigned: 0, uncovered: 0 });
  expect(after.chains).toBeGreaterThan(before.chains);
  expect(after.keys).toHaveLength(SERVERS);
  if (!isOnPostgres) expect(statSync(join(cairn.directory, "audit.key")).mode & 0o777).toBe(0o600);
});

test("changes at once are in chains without a gap", async () => {
  await using cairn = await startCairn();
  const ids = await Promise.all(Array.from({ length: 12 }, (_, i) => sessionWithStates(cairn, 1, `user ${i}`)));
  const change = (id: string, i: number) => cairn.ok(cairn.post(`/v1/sessions/${id}/state`, { state: { i } }, { server: i % SERVERS }));
  for (let round = 0; round < 3; round++) await Promise.all(ids.map((id, i) => change(id, i + round)));
  const report = await verified(cairn);
  expect(textsOf(report)).toEqual([]);
  expect(report.signed).toBe(await countOf(cairn));
});

test("segments of 256 are signed with their last trace, and retention leaves proof of each that it removed, not of its content", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  await Promise.all(Array.from({ length: 300 }, (_, step) => cairn.ok(cairn.post(`/v1/sessions/${id}/state`, { state: { step } }))));
  const full = await cairn.read((reader) =>
    reader.rows(auditSegments, { from: "", to: MAX_KEY }).filter(({ row }) => row.count % 256 === 0),
  );
  if (SERVERS === 1 && !isOnPostgres) expect(full).toHaveLength(1);
  expect(textsOf(await verified(cairn))).toEqual([]);
  const count = await countOf(cairn);
  cairn.clock.advance({ ms: 400 * DAY_MS });
  await cairn.runTask("trace retention");
  await sessionWithStates(cairn, 1);
  const report = await verified(cairn);
  expect(textsOf(report)).toEqual([]);
  expect(report.expired).toBe(count - ((await countOf(cairn)) - report.signed));
  const [segment] = await cairn.read((reader) => reader.rows(auditRemovals, { from: "", to: MAX_KEY }));
  expect(JSON.stringify(segment)).not.toContain("ada");
  // Keys and hashes of a segment of which nothing is left go, too.
  const rows = await cairn.read((reader) => reader.rows(auditRemovals, { from: "", to: MAX_KEY }));
  if (!isOnPostgres) expect(rows.map(({ row }) => row.all?.expired)).toContain(256);
  const [first] = rows;
  await cairn.overwrite(auditRemovals, [{ key: first!.key, text: auditRemovals.encode({ ...first!.row, signature: "A".repeat(86) }) }]);
  expect(textsOf(await verified(cairn)).join("\n")).toContain("is not signed as it is");
});

test("an erasure leaves proof of what it changed, and the salt goes with the content", async () => {
  await using cairn = await startCairn();
  await sessionWithStates(cairn, 3, "erin");
  await sessionWithStates(cairn, 2);
  const salts = async () =>
    (await cairn.read((reader) => reader.rows(traces, { from: "", to: MAX_KEY }))).flatMap(({ row }) =>
      row.userId === "erin" ? (row.link?.split(".")[2] ?? []) : [],
    );
  const before = await salts();
  await cairn.ok(cairn.delete("/v1/users/erin"));
  await cairn.runTask("user erasure");
  const after = await salts();
  for (const salt of before) expect(after).not.toContain(salt);
  const report = await verified(cairn);
  expect(textsOf(report)).toEqual([]);
  expect(report.erased).toBe(before.length);
  expect(linked(report)).toEqual({ signed: await countOf(cairn), unsigned: 0, uncovered: 0 });
});

test("a trace that is changed, removed, moved or added without the API is named", async () => {
  await using cairn = await startCairn();
  await sessionWithStates(cairn, 6);
  expect(textsOf(await verified(cairn))).toEqual([]);
  const rows = await cairn.read((reader) => reader.rows(stored(traces), { from: "s", to: "s~" }));
  const [one, other] = [rows[1]!, rows[3]!];
  const name = (key: string) => `trace_${key.slice(1)}`;
  const is = async (text: string, trace: string) =>
    expect(textsOf(await verified(cairn))).toContainEqual(expect.stringMatching(new RegExp(`^${trace} ${text}`)));
  const put = (key: string, text: string | undefined) =>
    cairn.service.store.commit("00", (tx) => (text === undefined ? tx.remove(stored(traces), key) : tx.put(stored(traces), key, text)));

  await put(one.key, one.row.replace('"step"', '"stop"'));
  await is("was changed", name(one.key));
  await put(one.key, undefined);
  await is("is missing", name(one.key));
  const free = one.key.slice(0, -1) + (one.key.endsWith("0") ? "1" : "0");
  await put(free, one.row);
  await is("was moved", name(free));
  await put(free, undefined);
  await put(one.key, one.row);
  expect(textsOf(await verified(cairn))).toEqual([]);
  await put(free, one.row.replace(/"link":"[^"]*",/, ""));
  await is("was added: it is in no chain", name(free));
  await put(free, other.row);
  await is("was added: another trace has its place", name(free));
  await put(free, undefined);
  await put(
    one.key,
    one.row.replace(/\.(.)(.{42})"/, (_, first: string, rest: string) => `.${first === "A" ? "B" : "A"}${rest}"`),
  );
  await is("was changed: it does not follow", name(one.key));
  await put(one.key, one.row);

  // What has been signed cannot be changed either.
  const [segment] = await cairn.read((reader) => reader.rows(auditSegments, { from: "", to: MAX_KEY }));
  await cairn.overwrite(auditSegments, [{ key: segment!.key, text: auditSegments.encode({ ...segment!.row, at: segment!.row.at + 1 }) }]);
  expect(textsOf(await verifyStore(cairn.service.store, ALL)).join("\n")).toContain("The signature of the chain");
  await cairn.overwrite(auditSegments, [{ key: segment!.key, text: auditSegments.encode(segment!.row) }]);
  const [chain] = await cairn.read((reader) => reader.rows(auditChains, { from: "", to: MAX_KEY }));
  await cairn.overwrite(auditChains, [{ key: chain!.key, text: auditChains.encode({ ...chain!.row, after: "zzzzzzzzzzzz" }) }]);
  expect((await verifyStore(cairn.service.store, ALL)).count).toBeGreaterThan(0);
});

test("a head that was kept elsewhere shows that traces were cut off, and a key that is not trusted is named", async () => {
  await using cairn = await startCairn();
  await sessionWithStates(cairn, 4);
  const head = await cairn.ok(cairn.get("/v1/audit/head"));
  const heads = parseHeads("head.json", JSON.stringify(head));
  expect(textsOf(await verified(cairn, { heads }))).toEqual([]);
  const longer = heads.map((one) => ({ ...one, count: one.count + 1 }));
  expect((await verified(cairn, { heads: longer })).count).toBeGreaterThan(0);
  const otherwise = heads.map((one) => ({ ...one, digest: "A".repeat(43) }));
  expect(textsOf(await verified(cairn, { heads: otherwise })).join("\n")).toContain("had another digest");
  expect(textsOf(await verified(cairn, { publicKeys: ["A".repeat(43)] })).join("\n")).toContain("a key that is not trusted");
  expect(() => parseHeads("head.json", "{}")).toThrow("is not what GET /v1/audit/head answers");
});

test("a proof leads from a trace to a signed head, for whoever may see the trace", async () => {
  await using cairn = await startCairn();
  const id = await sessionWithStates(cairn, 3);
  const [trace] = await cairn.traces(id, "state.updated");
  const proof = await until200(() => cairn.get(`/v1/audit/proof?trace=${trace.id}`));
  const sha256 = (data: string | Buffer) => createHash("sha256").update(data).digest();
  const leaf = sha256(`${proof.salt}\n${proof.key}\n${proof.row}`).toString("base64url");
  expect(proof.leaves[proof.place % 256]).toBe(leaf);
  let digest = Buffer.from(proof.before, "base64url");
  for (const one of proof.leaves) digest = sha256(Buffer.concat([digest, Buffer.from(one, "base64url")]));
  expect(digest.toString("base64url")).toBe(proof.head.digest);
  expect(proof.head.signed_text).toContain(`\n${proof.head.chain}\n${proof.head.count}\n${proof.head.digest}\n`);
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: proof.head.public_key }, format: "jwk" });
  expect(verify(null, Buffer.from(proof.head.signed_text), key, Buffer.from(proof.head.signature, "base64url"))).toBe(true);
  expect(JSON.parse(proof.row).body.state_diff).toEqual(trace.details.state_diff);
  expect(proof.erasure).toBeNull();
  const bound = await cairn.newKey({ scopes: ["read"], owner: { userId: "someone else" } });
  expect((await cairn.get(`/v1/audit/proof?trace=${trace.id}`, { key: bound })).status).toBe(404);
  expect((await cairn.get("/v1/audit/head", { key: bound })).status).toBe(403);
  expect((await cairn.get("/v1/audit/proof?trace=mem_1")).body.error.code).toBe("trace_not_found");

  await cairn.ok(cairn.delete("/v1/users/ada"));
  await cairn.runTask("user erasure");
  const since = await until200(() => cairn.get(`/v1/audit/proof?trace=${trace.id}`));
  expect(since.leaves[since.place % 256]).toBe(leaf);
  expect(since.erasure.signed_text).toContain(leaf);
  expect(since.erasure.signed_text).toContain(sha256(`${since.salt}\n${since.key}\n${since.row}`).toString("base64url"));
});

/** Another server may not have signed it yet. */
async function until200(ask: () => Promise<any>): Promise<any> {
  for (let i = 0; ; i++) {
    const { status, body } = await ask();
    if (status === 200) return body;
    if (i === 50) throw new Error(JSON.stringify(body));
  }
}

async function* exported(cairn: Cairn): AsyncGenerator<Uint8Array> {
  for await (const line of exportLines(cairn.service.store, { secrets: false })) yield Buffer.from(`${line}\n`);
}

test("an export carries the chains, and is verified like the store", async () => {
  await using cairn = await startCairn();
  await sessionWithStates(cairn, 3);
  await sessionWithStates(cairn, 2, "erin");
  await cairn.ok(cairn.delete("/v1/users/erin"));
  await cairn.runTask("user erasure");
  const ofStore = await verified(cairn);
  expect(await verifyExport(exported(cairn), ALL)).toEqual(ofStore);
  expect(textsOf(ofStore)).toEqual([]);
  async function* changed() {
    for await (const bytes of exported(cairn)) {
      const line = Buffer.from(bytes).toString();
      yield Buffer.from(line.startsWith('{"table":"traces"') ? line.replace('"step":', '"stop":') : line);
    }
  }
  expect(textsOf(await verifyExport(changed(), ALL)).join("\n")).toContain("was changed");
});

const TAMPERED = [traces, auditSegments, auditChains, auditRemovals];
const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

onEmbedded("its file is written to")("random tamperings of a stopped store are each found", async () => {
  await using cairn = await startCairn();
  for (let i = 0; i < 4; i++) await sessionWithStates(cairn, 8, `user ${i}`);
  await cairn.ok(cairn.delete("/v1/users/user%201"));
  await cairn.runTask("user erasure");
  await cairn.restart();
  await sessionWithStates(cairn, 3);
  await cairn.close();
  const store = await Store.open(cairn.directory, cairn.clock, { cachesRows: false });
  try {
    expect(textsOf(await verifyStore(store, ALL))).toEqual([]);
    const rows = store.read((reader) =>
      TAMPERED.map((table) => ({ table: stored(table), rows: reader.rows(stored(table), { from: "", to: MAX_KEY }) })),
    );
    for (let seed = 1; seed <= longRounds(25, 1_000); seed++) {
      const chance = new Chance(seed);
      const { table, rows: all } = pick(chance, rows);
      const [one, other] = [pick(chance, all), pick(chance, all)];
      const at = chance.below(one.row.length);
      const letter = pick(
        chance,
        Array.from(LETTERS).filter((digit) => digit !== one.row[at]),
      );
      const free =
        one.key.slice(0, -1) +
        pick(
          chance,
          Array.from(LETTERS).filter((digit) => digit !== one.key.at(-1)),
        );
      const kinds: Record<string, [key: string, row: string | undefined][]> = {
        changed: [[one.key, one.row.slice(0, at) + letter + one.row.slice(at + 1)]],
        removed: [[one.key, undefined]],
        moved: [
          [one.key, undefined],
          [free, one.row],
        ],
        swapped:
          one.row === other.row
            ? [[one.key, undefined]]
            : [
                [one.key, other.row],
                [other.key, one.row],
              ],
        added: [[free, one.row]],
        addedUnlinked: [[free, one.row.replace(/"link":"[^"]*",/, "")]],
      };
      const kind = pick(chance, Object.keys(kinds));
      const before = kinds[kind]!.map(([key]) => [key, all.find((row) => row.key === key)?.row] as const);
      const put = (changes: readonly (readonly [string, string | undefined])[]) =>
        store.commit("00", (tx) => {
          for (const [key, row] of changes)
            if (row === undefined) tx.remove(table, key);
            else tx.put(table, key, row);
        });
      await put(kinds[kind]!);
      const { count } = await verifyStore(store, ALL);
      if (count === 0)
        throw new Error(
          `seed ${seed}: a row of ${table.name} was ${kind}, and nothing is found: ${JSON.stringify([one.key, at, letter, free])}`,
        );
      await put(before);
    }
    expect(textsOf(await verifyStore(store, ALL))).toEqual([]);
  } finally {
    await store.close();
  }
});

test("what a process could not sign before it was killed is signed by the next start", async () => {
  await using cairn = await startCairn();
  await sessionWithStates(cairn, 3);
  for (const { store } of cairn.services) await store.signTraces();
  for (const { store } of cairn.services) store.signTraces = () => Promise.resolve();
  await sessionWithStates(cairn, 5);
  const count = await countOf(cairn);
  // A stop that signs nothing is what a kill leaves.
  if (!isOnPostgres) cairn.embedded.close = noSignature(cairn.embedded);
  await cairn.restart();
  const report = await verified(cairn);
  expect(textsOf(report)).toEqual([]);
  expect(report.signed).toBe(count);
});

function noSignature(store: Store): () => Promise<void> {
  const close = store.close.bind(store);
  return async () => {
    const sign = spyOn(AuditChain.prototype, "sign").mockImplementation(() => {
      throw new Error("killed");
    });
    await close();
    sign.mockRestore();
  };
}

onEmbedded("an export is alike")("a store of before, and an imported one, begin a chain that says so", async () => {
  await using cairn = await startCairn();
  await sessionWithStates(cairn, 3);
  const rows = await cairn.read((reader) => reader.rows(stored(traces), { from: "", to: MAX_KEY }));
  await cairn.embedded.commit("00", (tx) => {
    for (const { key, row } of rows) tx.put(stored(traces), key, row.replace(/"link":"[^"]*",/, ""));
    for (const table of [auditChains, auditSegments].map(stored))
      for (const key of tx.keys(table, { from: "", to: MAX_KEY })) tx.remove(table, key);
    for (const key of tx.keys(auditChains.index.open, { from: "", to: MAX_KEY })) tx.remove(stored(auditChains.index.open), key);
  });
  cairn.embedded.signTraces = () => Promise.resolve();
  cairn.embedded.close = noSignature(cairn.embedded);
  await cairn.restart();
  await sessionWithStates(cairn, 1);
  const report = await verified(cairn);
  expect(textsOf(report)).toEqual([]);
  expect(report.uncovered).toBe(rows.length);

  using scratch = scratchDirectory();
  await importLines(exported(cairn), scratch.at("copy"), cairn.clock);
  await using copy = await startCairn({ directory: scratch.at("copy") });
  const imported = await verified(copy);
  expect(textsOf(imported)).toEqual([]);
  expect(imported.signed).toBeGreaterThanOrEqual(report.signed);
});
