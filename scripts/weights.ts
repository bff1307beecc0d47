/**
 * Puts the weights of the built-in embedding into the executable, where they are used in place: mapped, or read by their offset.
 *
 * Bun embeds a file somewhere, at any byte, and tells its offset to nobody. So each file gets room for a shift, and a table of the same
 * size as the finished one goes in with it. Once the executable is made, `placeWeights` shifts the files to multiples of 64 bytes and
 * writes down where they are. That is before a signature, which covers them.
 *
 * @module
 */
import type { BunPlugin } from "bun";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { WEIGHTS_FILES, type WeightsFile } from "../src/embeddings/builtin/weights.ts";
import { Failure } from "./failure.ts";

const directory = join(dirname(import.meta.dir), "src/embeddings/builtin/weights");

const ALIGNMENT = 64;
const TABLE_BYTES = 256;
/** Stands in the executable until the table does; JSON as that is. */
const UNPLACED = Buffer.from(JSON.stringify(["weights that have no place yet"]).padEnd(TABLE_BYTES));
/** Beginning that no other JSON in an executable has. */
const TABLE_BEGIN = '[{"weightsAt":';
/** So much of a file is looked for before it is compared. */
const HEAD_BYTES = 256;

/** Position of a file of weights in an executable. */
interface Place {
  readonly weightsAt: number;
  readonly bytes: number;
}

/** @throws {Failure} when a file is not the one whose hash is known */
function readWeights({ name, sha256 }: WeightsFile): Buffer {
  const bytes = readFileSync(join(directory, name));
  const found = createHash("sha256").update(bytes).digest("hex");
  if (found !== sha256)
    throw new Failure(`src/embeddings/builtin/weights/${name} is another file: its SHA-256 is ${found}, not ${sha256}.`);
  return bytes;
}

/** Resolves `cairn-weights:NAME` to a file of weights with its room, and `cairn-weights:table` to where they are. */
export const weightsPlugin: BunPlugin = {
  name: "weights",
  setup(build) {
    build.onResolve({ filter: /^cairn-weights:/ }, ({ path }) => ({ path: path.slice("cairn-weights:".length), namespace: "weights" }));
    build.onLoad({ filter: /.*/, namespace: "weights" }, ({ path }) => {
      const file = WEIGHTS_FILES.find(({ name }) => name === path);
      return { loader: "file", contents: file === undefined ? UNPLACED : Buffer.concat([readWeights(file), Buffer.alloc(ALIGNMENT)]) };
    });
    build.onLoad({ filter: /embeddings[\\/]builtin[\\/]native\.ts$/ }, () => ({ loader: "js", contents: NATIVE }));
  },
};

/** Stands for `src/embeddings/builtin/native.ts`. The link of /proc still leads to this executable when another has taken its name. */
const NATIVE = `
  import { existsSync, readFileSync } from "node:fs";
  import loadAddon from "cairn-native:encoder";
  import table from "cairn-weights:table" with { type: "file" };
  ${WEIGHTS_FILES.map(({ name }, i) => `import file${i} from "cairn-weights:${name}" with { type: "file" };`).join("\n")}
  const OWN_FILE = "/proc/self/exe";
  export const loadEncoderAddon = loadAddon;
  export function findWeights() {
    const places = JSON.parse(readFileSync(table, "utf8"));
    const path = existsSync(OWN_FILE) ? OWN_FILE : process.execPath;
    return [${WEIGHTS_FILES.map((_, i) => `file${i}`).join(", ")}].map((_, i) => ({ path, offset: places[i].weightsAt, bytes: places[i].bytes }));
  }`;

/**
 * Shifts the weights in an executable to where they can be mapped, and writes their places down.
 *
 * @throws {Failure} when they are not in it, or twice
 */
export function placeWeights(executable: Buffer): void {
  const places = WEIGHTS_FILES.map((file) => shifted(executable, readWeights(file)));
  const table = only(executable, UNPLACED);
  Buffer.from(JSON.stringify(places).padEnd(TABLE_BYTES)).copy(executable, table);
}

function shifted(executable: Buffer, weights: Buffer): Place {
  const from = only(executable, weights.subarray(0, HEAD_BYTES));
  const end = from + weights.length;
  if (!executable.subarray(from, end).equals(weights)) throw new Failure("The executable holds weights that are not whole.");
  const offset = Math.ceil(from / ALIGNMENT) * ALIGNMENT;
  executable.copyWithin(offset, from, end);
  executable.fill(0, from, offset);
  return { weightsAt: offset, bytes: weights.length };
}

function only(executable: Buffer, wanted: Buffer): number {
  const at = executable.indexOf(wanted);
  if (at === -1 || executable.indexOf(wanted, at + 1) !== -1)
    throw new Failure(`The weights are in the executable ${at === -1 ? "nowhere" : "more than once"}.`);
  return at;
}

/** Returns what is wrong with the weights in a finished executable. */
export function weightsProblems(executable: Buffer): string[] {
  const at = executable.indexOf(TABLE_BEGIN);
  if (at === -1) return ["it has no table of the weights"];
  const places = JSON.parse(executable.toString("utf8", at, at + TABLE_BYTES)) as Place[];
  return WEIGHTS_FILES.flatMap(({ name, sha256 }, i) => {
    const { weightsAt: offset = 0, bytes = 0 } = places[i] ?? {};
    const found = createHash("sha256")
      .update(executable.subarray(offset, offset + bytes))
      .digest("hex");
    return found === sha256 && offset % ALIGNMENT === 0 ? [] : [`${name} is not at ${offset}`];
  });
}
