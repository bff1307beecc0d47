import { expect, test } from "bun:test";
import { readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Chance, scratchDirectory, startProcess, until, vectorsMade, type CairnProcess } from "../support/process.ts";

const MEMORIES = 2_500;
const ASKED = 40;

const PEOPLE = ["Anna", "Boris", "Chen", "Dalia", "Emeka", "Freya", "Goran", "Hana"];
const THINGS = ["bicycle", "passport", "telescope", "umbrella", "violin", "kettle", "ladder", "compass", "blanket"];
const PLACES = ["attic", "cellar", "garage", "harbour", "library", "orchard", "kitchen", "chapel"];

/** Ways in which the snapshot of the index can be found after a crash. */
const DAMAGES: { name: string; isRebuilding: boolean; damage: (vectors: string, file: string) => void }[] = [
  { name: "is as it was written", isRebuilding: false, damage: () => undefined },
  { name: "is not there", isRebuilding: true, damage: (vectors) => rmSync(vectors, { recursive: true }) },
  { name: "has no file", isRebuilding: true, damage: (_, file) => rmSync(file) },
  { name: "is cut short", isRebuilding: true, damage: (_, file) => truncateSync(file, 100_000) },
  {
    name: "has 64 bytes changed in its middle",
    isRebuilding: true,
    damage: (_, file) => {
      const bytes = readFileSync(file);
      bytes.fill(0xff, bytes.length / 2, bytes.length / 2 + 64);
      writeFileSync(file, bytes);
    },
  },
  {
    name: "has a manifest of zeros",
    isRebuilding: true,
    damage: (vectors) => writeFileSync(join(vectors, "manifest.json"), Buffer.alloc(200)),
  },
];

test("after a kill -9 every memory is found at once, whatever has become of the snapshot of the index", async () => {
  using directory = scratchDirectory();
  const chance = new Chance(7);
  const contents = Array.from(
    { length: MEMORIES },
    (_, number) => `${chance.pick(PEOPLE)} left ${chance.pick(THINGS)} number ${number + 1000} in the ${chance.pick(PLACES)}.`,
  );
  const ids: string[] = [];
  const vectors = directory.at("vectors");
  {
    await using server = await startProcess({ dataDirectory: directory.path });
    const { id } = await server.createSession();
    for (let from = 0; from < MEMORIES; from += 100) {
      const made = contents.slice(from, from + 100).map((content) => server.addMemory(id, content));
      ids.push(...(await Promise.all(made)).map((memory) => memory.id as string));
    }
    await vectorsMade(server);
    // An orderly end writes the snapshot; the next one ends in the middle of its life.
    expect(await server.stop()).toBe(0);
    await using crashed = await startProcess({ dataDirectory: directory.path });
    const late = await crashed.addMemory(id, "Zoltan left a samovar on the ferry.");
    await crashed.kill();
    contents.push(late.content);
    ids.push(late.id);
  }
  const asked = [MEMORIES, ...Array.from({ length: ASKED }, () => chance.below(MEMORIES))];
  const found = async (server: CairnProcess) => {
    const answers = asked.map((index) => server.ok(server.post("/v1/memory/search", { query: contents[index], limit: 1 })));
    return (await Promise.all(answers)).map(({ data: [first] }) => ({ id: first?.id, score: first?.score }));
  };
  const expected = asked.map((index) => ({ id: ids[index], score: 1 }));

  const whole = readdirSync(vectors).map((name) => ({ path: join(vectors, name), bytes: readFileSync(join(vectors, name)) }));
  const graph = whole.find(({ path }) => path.endsWith(".hnsw"))!.path;
  for (const { name, damage, isRebuilding } of DAMAGES) {
    // Each way starts from the whole snapshot: the crash before may have come while a new one was being written.
    rmSync(vectors, { recursive: true, force: true });
    for (const { path, bytes } of whole) await Bun.write(path, bytes);
    damage(vectors, graph);
    await using server = await startProcess({ dataDirectory: directory.path });
    const answers = await found(server);
    const ready = await until("the index to say how it was loaded", () => server.logged("vector index ready")[0]);
    expect({ name, answers, isRebuilding: "rebuilding" in ready }).toEqual({ name, answers: expected, isRebuilding });
    await server.kill();
  }
});
