/**
 * Backups: the table of URLs.
 *
 * @module
 */
import { endpointGroup, type Endpoint } from "../http/endpoint.ts";
import { Cursor, ListOf, Nothing } from "../http/types.ts";
import { LIMITS } from "../lib/limits.ts";
import type { BackupOperations } from "./backups.ts";
import type { ScheduledBackups } from "./scheduled-backups.ts";
import { Backup, BackupFile, BackupTicket, RUNNING_EXAMPLE } from "./schema.ts";

const description = `Backups that the server makes of its own store, while it is used. Each is one file in \`backups\` of the data directory, as \`cairn backup\`
writes it: with all records and all secrets, in clear. \`cairn restore\` makes it a store again; over HTTP nothing is restored.`;
const backups = endpointGroup({ name: "Backups", description }, "admin");
const path = "/v1/backups/{backup_id}";

export interface BackupDeps {
  readonly backups: BackupOperations;
  /** None on a database. */
  readonly scheduledBackups: ScheduledBackups | undefined;
}

export function backupEndpoints(deps: BackupDeps): Endpoint[] {
  return [
    backups.post("/v1/backups", {
      summary: "Create a backup",
      description:
        "Starts a backup and answers at once; poll `status` until it is `ready` or `failed`. A process of its own makes the file, and reads every page of the store before and after. " +
        `Only one runs at a time: a second request is 409 \`already_exists\`. At most ${LIMITS.backupsMax} are kept, and the disk needs space for the backup and for what the store may ` +
        "grow by. If the server stops, a running backup is cancelled and removed.",
      status: 201,
      body: Nothing,
      response: Backup,
      example: RUNNING_EXAMPLE,
      errors: ["already_exists"],
      run: ({ caller }) => deps.backups.start(caller),
    }),
    backups.list("/v1/backups", {
      summary: "List backups",
      description: "Including the one that is running, or the last one that failed.",
      cursor: Cursor("bkp"),
      response: ListOf(Backup, "A page of backups."),
      run: ({ page }) => deps.backups.list(page),
    }),
    backups.get(path, {
      summary: "Get a backup",
      response: Backup,
      run: ({ params }) => deps.backups.get(params.backup_id),
    }),
    backups.delete(path, {
      summary: "Delete a backup",
      description: "A running backup is cancelled. A download that has begun continues.",
      deletes: Backup,
      run: ({ params, query, caller }) => deps.backups.delete(caller, params.backup_id, query.reason),
    }),
    backups.post(`${path}/ticket`, {
      summary: "Create a ticket for a backup",
      description: `Returns a URL that a browser can follow without headers: valid for one download within ${LIMITS.ticketSeconds} s, and only while the key that made it is valid.`,
      status: 201,
      body: Nothing,
      response: BackupTicket,
      run: ({ params, caller }) => deps.backups.issueTicket(caller, params.backup_id),
    }),
    backups.send(`${path}/file`, {
      summary: "Download a backup",
      description:
        "With a key, or with a ticket instead of one. A connection that ends early leaves the file incomplete, which `cairn restore` notices. Leaves the trace `backup.downloaded`.",
      media: "application/octet-stream",
      takesTicket: true,
      response: BackupFile,
      errors: ["invalid_request"],
      send: async ({ params, caller }) => {
        const { name, pieces } = await deps.backups.open(caller, params.backup_id);
        return { body: pieces, headers: { "Content-Disposition": `attachment; filename="${name}"` } };
      },
    }),
  ];
}
