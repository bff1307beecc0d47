/**
 * File of results: a line that says what is measured, then a line of JSON for each question. A run that was killed continues behind
 * the last whole line.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { open, truncate, type FileHandle } from "node:fs/promises";
import { messageOf } from "../../lib/errors.ts";
import { OperationError } from "../../operations/report.ts";
import type { Answer } from "./trial.ts";

/** Decides all figures, with the questions. */
export interface Header {
  readonly benchmark: "recall";
  readonly cairn: string;
  readonly format: string;
  /** Names and sizes of the files. */
  readonly files: readonly string[];
  readonly stored_as: string;
  readonly limit: number;
  /** Part of the names of its users. */
  readonly run: string;
}

const COMPARED = ["benchmark", "cairn", "format", "files", "stored_as", "limit"] as const;

export class Results implements AsyncDisposable {
  readonly run: string;
  /** Answers of before, in the order of the file. */
  readonly #before: readonly Answer[];
  readonly #file: FileHandle | undefined;

  private constructor(run: string, before: readonly Answer[], file: FileHandle | undefined) {
    this.run = run;
    this.#before = before;
    this.#file = file;
  }

  /**
   * Opens a file to go on with, or a new one.
   *
   * @param path - undefined to keep no lines
   * @throws {OperationError} for a file of another run, or of something else
   */
  static async open(path: string | undefined, header: Header, { force }: { force: boolean }): Promise<Results> {
    if (path === undefined) return new Results(header.run, [], undefined);
    const old = !force && existsSync(path) ? await linesOf(path) : undefined;
    if (old !== undefined && old.length > 0) {
      const before = headerOf(path, old[0]!);
      const other = COMPARED.find((name) => JSON.stringify(before[name]) !== JSON.stringify(header[name]));
      if (other !== undefined)
        throw new OperationError(
          `${path} has the results of another run: ${other} is ${JSON.stringify(before[other])} there, and ${JSON.stringify(header[other])} now. ` +
            "Name another file, or replace it with --force.",
        );
      return new Results(before.run, old.slice(1).map(answerOf(path)), await open(path, "a", 0o600));
    }
    const file = await open(path, "w", 0o600);
    await file.write(`${JSON.stringify(header)}\n`);
    return new Results(header.run, [], file);
  }

  get before(): readonly Answer[] {
    return this.#before;
  }

  async add(answer: Answer): Promise<void> {
    await this.#file?.write(`${JSON.stringify(answer)}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close();
  }
}

/** Whole lines of a file, which then ends with them: what follows was cut off when its writer was killed. */
async function linesOf(path: string): Promise<string[]> {
  const bytes = await Bun.file(path).bytes();
  const end = bytes.lastIndexOf(0x0a) + 1;
  if (end < bytes.length) await truncate(path, end);
  return new TextDecoder()
    .decode(bytes.subarray(0, end))
    .split("\n")
    .filter((line) => line !== "");
}

function headerOf(path: string, line: string): Header {
  try {
    const header = JSON.parse(line) as Partial<Header> | null;
    if (header?.benchmark === "recall" && typeof header.run === "string") return header as Header;
  } catch {
    // Not JSON: not one of these.
  }
  throw new OperationError(`${path} is not a file of results of cairn bench recall. Name another one, or replace it with --force.`);
}

const answerOf = (path: string) => (line: string, i: number) => {
  try {
    return JSON.parse(line) as Answer;
  } catch (error) {
    throw new OperationError(`${path}, line ${i + 2}: ${messageOf(error)}.`, { cause: error });
  }
};
