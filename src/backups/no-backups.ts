/**
 * The backups of a server whose records are in a database: there are none, since the database has its own.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import type { JsonText } from "../lib/json.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { noBackup, type BackupOperations } from "./backups.ts";

export class NoBackups implements BackupOperations {
  start(): Promise<never> {
    return Promise.reject(
      new ApiError(
        "invalid_request",
        "The records of this server are in PostgreSQL, which has backups of its own: use pg_dump, or its point-in-time recovery.",
      ),
    );
  }

  list({ limit }: Page): Promise<JsonText> {
    return Promise.resolve(pageOf([], limit));
  }

  get(id: string): Promise<never> {
    return Promise.reject(noBackup(id));
  }

  delete(_caller: unknown, id: string): Promise<never> {
    return this.get(id);
  }

  issueTicket(_caller: unknown, id: string): Promise<never> {
    return this.get(id);
  }

  open(_caller: unknown, id: string): Promise<never> {
    return this.get(id);
  }
}
