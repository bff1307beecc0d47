/**
 * Texts of a server's certificate, which are no records: no backup and no export has them.
 *
 * @module
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flush } from "../lib/files.ts";

/** `account`: the key of the account; `certificate`: with its key; `attempts`: how the last ones ended. */
export type CertificateText = "account" | "certificate" | "attempts";

export interface CertificateStore {
  read(name: CertificateText): Promise<string | undefined>;
  /** Resolves once it is durable. */
  write(name: CertificateText, text: string): Promise<void>;
  /** Answers to challenges for every server of the store; undefined where there is one. */
  readonly answers: SharedAnswers | undefined;
}

export interface SharedAnswers {
  put(token: string, answer: string): Promise<void>;
  /** All of them, by token. */
  all(): Promise<ReadonlyMap<string, string>>;
  clear(): Promise<void>;
}

/** Files of a server that has its store alone, for its owner's eyes. */
export class CertificateFiles implements CertificateStore {
  readonly answers = undefined;
  readonly #directory: string;

  constructor(dataDirectory: string) {
    this.#directory = join(dataDirectory, "tls");
  }

  async read(name: CertificateText): Promise<string | undefined> {
    const file = Bun.file(this.#pathOf(name));
    return (await file.exists()) ? file.text() : undefined;
  }

  async write(name: CertificateText, text: string): Promise<void> {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    const fresh = `${this.#pathOf(name)}.new`;
    // Its mode is given when it is made.
    rmSync(fresh, { force: true });
    writeFileSync(fresh, text, { mode: 0o600, flag: "wx", flush: true });
    renameSync(fresh, this.#pathOf(name));
    await flush(this.#directory);
  }

  #pathOf(name: CertificateText): string {
    return join(this.#directory, `${name}.json`);
  }
}
