/**
 * Files of a benchmark, read one haystack after another: LongMemEval's largest has more bytes than the memory of most machines.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { messageOf } from "../../../lib/errors.ts";
import { OperationError } from "../../../operations/report.ts";
import { filesOf } from "../../import/files.ts";
import { recordsOf } from "../../import/records.ts";
import type { Haystack } from "../haystack.ts";
import { beam, CHAT, QUESTIONS } from "./beam.ts";
import { locomo, realTalk } from "./locomo.ts";
import { longMemEval } from "./longmemeval.ts";
import { OtherForm, Part } from "./part.ts";
import { plain } from "./plain.ts";

interface Format {
  /** Members by which a record is known, unless the format is named. */
  readonly marks: readonly string[];
  readonly read: (record: Part, file: string, number: number) => Haystack;
}

const FORMATS: Readonly<Record<string, Format>> = {
  longmemeval: { marks: ["haystack_sessions", "question"], read: longMemEval },
  locomo: { marks: ["conversation", "qa"], read: locomo },
  realtalk: { marks: ["name", "session_1", "qa"], read: realTalk },
  plain: { marks: ["queries"], read: (corpus, _, number) => plain(corpus, number) },
};
const BEAM = "beam";
export const FORMAT_NAMES: readonly string[] = [...Object.keys(FORMATS), BEAM];
const KNOWN = Object.entries(FORMATS).map(([name, { marks }]) => `${name} (${marks.join(", ")})`);

export interface Source {
  readonly paths: readonly string[];
  /** One of `FORMAT_NAMES`. */
  readonly format: string;
}

/**
 * Says in which format files are.
 *
 * @throws {OperationError} where there is no record, or the first is of no format that is known
 */
export async function sourceOf(paths: readonly string[], named: string | undefined): Promise<Source> {
  if (named !== undefined) return { paths, format: named };
  for await (const _ of chatsIn(paths)) return { paths, format: BEAM };
  for await (const read of recordsIn(paths)) {
    if ("reason" in read) throw new OperationError(`${read.place}: ${read.reason}.`);
    const found = Object.keys(FORMATS).find((name) => FORMATS[name]!.marks.every((mark) => Object.hasOwn(read.record, mark)));
    if (found !== undefined) return { paths, format: found };
    const members = Object.keys(read.record).slice(0, 5).join(", ");
    throw new OperationError(
      `${read.place} has none of the forms that are known: it has ${members || "no members"}. Known by their members are ${KNOWN.join("; ")}; ` +
        `and beam, a directory with ${CHAT} and ${QUESTIONS}. --format NAME says what of one of them does not fit.`,
    );
  }
  throw new OperationError(`There is no record in ${paths.join(", ")}.`);
}

/** @throws {OperationError} with the file, the record and the path within it of the first place that does not fit */
export async function* haystacksOf({ paths, format }: Source): AsyncGenerator<Haystack> {
  if (format === BEAM) yield* beamHaystacks(paths);
  else yield* recordHaystacks(paths, FORMATS[format]!);
}

async function* recordHaystacks(paths: readonly string[], { read: readRecord }: Format): AsyncGenerator<Haystack> {
  let number = 0;
  for await (const read of recordsIn(paths)) {
    if ("reason" in read) throw new OperationError(`${read.place}: ${read.reason}.`);
    number += 1;
    yield placed(read.place, () => readRecord(new Part(read.record), read.name.replace(/\.json$/i, ""), number));
  }
}

const recordsIn = (paths: readonly string[]) => recordsOf(paths, (name) => /\.json$/i.test(name), ["corpora"]);

async function* beamHaystacks(paths: readonly string[]): AsyncGenerator<Haystack> {
  let isAny = false;
  for await (const file of chatsIn(paths)) {
    isAny = true;
    const directory = dirname(file);
    const questionsFile = join(directory, QUESTIONS);
    if (!existsSync(questionsFile)) throw new OperationError(`${file} has no questions: there is no ${questionsFile}.`);
    const questions = await jsonOf(questionsFile);
    // The questions are looked through first, since each place is named with its file.
    placed(questionsFile, () => beam(directory, new Part([]), questions));
    const chat = await jsonOf(file);
    yield placed(file, () => beam(basename(directory), chat, questions));
  }
  if (!isAny) throw new OperationError(`There is no ${CHAT} in ${paths.join(", ")}.`);
}

/** Files with a chat, but for the parts that a chat of 10M tokens was made of. */
async function* chatsIn(paths: readonly string[]): AsyncGenerator<string> {
  for await (const file of filesOf(paths, (name) => name === CHAT))
    if (basename(file) === CHAT && !/^plan-\d+$/.test(basename(dirname(file)))) yield file;
}

async function jsonOf(file: string): Promise<Part> {
  try {
    return new Part(JSON.parse(await Bun.file(file).text()));
  } catch (error) {
    throw new OperationError(`${file} is not JSON: ${messageOf(error)}.`, { cause: error });
  }
}

function placed(place: string, read: () => Haystack): Haystack {
  try {
    return read();
  } catch (error) {
    if (error instanceof OtherForm) throw new OperationError(`${place}: ${error.message}.`, { cause: error });
    throw error;
  }
}
