/**
 * Texts of the certificate that servers of a database share, as rows; answers to challenges among them.
 *
 * ```
 * cairn.certificates (name, text)      account, certificate, attempts, answer.TOKEN
 * ```
 * @module
 */
import type { CertificateStore, CertificateText, SharedAnswers } from "../certificate-store.ts";
import type { Database } from "./connection/database.ts";

/** Statement that makes the table. */
export const CERTIFICATES_DEFINITION =
  'create table if not exists cairn.certificates (name text collate "C" primary key, text text not null)';

const ANSWER = "answer.";

export class CertificateRows implements CertificateStore {
  readonly answers: SharedAnswers;
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
    this.answers = {
      put: (token, answer) => this.#put(`${ANSWER}${token}`, answer),
      all: async () => {
        const text = "select name, text from cairn.certificates where starts_with(name, $1)";
        const rows = await database.query({ text, values: [ANSWER] });
        return new Map(rows.map(({ name, text: answer }) => [String(name).slice(ANSWER.length), String(answer)]));
      },
      clear: async () => {
        await database.query({ text: "delete from cairn.certificates where starts_with(name, $1)", values: [ANSWER] });
      },
    };
  }

  async read(name: CertificateText): Promise<string | undefined> {
    const [row] = await this.#database.query({ text: "select text from cairn.certificates where name = $1", values: [name] });
    return row === undefined ? undefined : String(row["text"]);
  }

  write(name: CertificateText, text: string): Promise<void> {
    return this.#put(name, text);
  }

  async #put(name: string, text: string): Promise<void> {
    const put = "insert into cairn.certificates (name, text) values ($1, $2) on conflict (name) do update set text = excluded.text";
    await this.#database.query({ text: put, values: [name, text] });
  }
}
