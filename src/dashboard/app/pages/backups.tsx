/**
 * Backups: the whole store in one file, made here, downloaded, and restored by a command.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { api, type Backup, type Stats } from "../api.ts";
import { CopyButton, Id } from "../parts/copy.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Form, ReasonField } from "../parts/form.tsx";
import { Listed } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { Cell, Table } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";
import { toast } from "../parts/toast.tsx";
import { changed, usePages, useQuery } from "../query.ts";

/** One that is being made is looked at as often. */
const READ_AGAIN_MS = 2_000;
const COLUMNS = ["Created", "Id", "State", "Size", { name: "Actions", kind: "hidden" }] as const;
const RESTORE = "cairn restore FILE --force --data-dir DIR";

export default function Backups() {
  const { query } = useLocation();
  const deleting = useSignal<Backup | null>(null);
  const pages = usePages(["backups"], (after, signal) => api.backups({ starting_after: after }, signal), {
    refetchInterval: READ_AGAIN_MS,
  });
  return (
    <Page
      title="Backups"
      actions={
        <button class="primary" onClick={() => void make()}>
          Make a backup
        </button>
      }
    >
      <HowToRestore />
      <Schedule />
      <Listed
        pages={pages}
        noun="backups"
        dependsOn={[query["id"]]}
        empty={
          <p>
            There is none yet. One is made by the button above, or with <code>POST /v1/backups</code>.
          </p>
        }
        element="tbody"
        frame={(rows) => (
          <Table columns={COLUMNS} stacked>
            {rows}
          </Table>
        )}
      >
        {(backups) =>
          backups.map((backup) => (
            <Row key={backup.id} backup={backup} isNamed={backup.id === query["id"]} onDelete={() => (deleting.value = backup)} />
          ))
        }
      </Listed>
      {deleting.value !== null && <DeleteBackup backup={deleting.value} onClose={() => (deleting.value = null)} />}
    </Page>
  );
}

function HowToRestore() {
  return (
    <div class="stack restore">
      <p>A backup holds everything at one moment, secrets too. To restore it, stop the server and run:</p>
      <p class="row">
        <code>{RESTORE}</code>
        <CopyButton label="Copy command" text={RESTORE} />
      </p>
    </div>
  );
}

const SCHEDULE_MS = 10_000;

/** Standing of the schedule; a late or failing one in the colours of trouble. */
function Schedule() {
  const { data } = useQuery({ queryKey: ["stats"], refetchInterval: SCHEDULE_MS, queryFn: ({ signal }) => api.stats({}, signal) });
  const status = data?.backups ?? null;
  return status === null ? null : <ScheduleLine {...status} />;
}

function CopiesLine({ url, newest_at, error }: NonNullable<NonNullable<Stats["backups"]>["copies"]>) {
  return (
    <>
      Copies: <code>{url}</code>, the newest of {newest_at === null ? "none yet" : <Time at={newest_at} />}.{" "}
      {error !== null && <span class="bad">✗ The last copy failed: {error}</span>}
    </>
  );
}

function ScheduleLine({ schedule, newest_at, next_at, error, overdue, copies }: NonNullable<Stats["backups"]>) {
  return (
    <p class={overdue ? "note trouble" : undefined}>
      {schedule === null ? (
        <>
          None is made by itself: a schedule is one of the <a href="/dashboard/settings">settings</a>.
        </>
      ) : (
        <>
          By the schedule <code>{schedule}</code>, next {next_at === null ? "" : <Time at={next_at} />}; the newest of all:{" "}
          {newest_at === null ? "none yet" : <Time at={newest_at} />}.
        </>
      )}{" "}
      {overdue && <strong>Overdue.</strong>} {error !== null && <span class="bad">✗ The last one failed: {error}</span>}{" "}
      {copies === null ? "Copies: none." : <CopiesLine {...copies} />}
    </p>
  );
}

function Row({ backup, isNamed, onDelete }: { backup: Backup; isNamed: boolean; onDelete: () => void }) {
  const { id, status, created_at, bytes, error } = backup;
  return (
    <tr role="row" data-row tabIndex={-1} class={isNamed ? "target" : undefined}>
      <Cell class="nowrap">
        <Time at={created_at} />
      </Cell>
      <Cell name="Id" class="nowrap">
        <Id id={id} />
      </Cell>
      <Cell name="State">
        {status === "ready" && <span class="good">✓ ready</span>}
        {status === "running" && <span role="status">being made …</span>}
        {status === "failed" && <span class="bad">✗ failed: {error}</span>}
      </Cell>
      <Cell name="Size" class="nowrap">
        {bytes === null ? "" : `${(bytes / 1e6).toFixed(1)} MB`}
      </Cell>
      <Cell class="actions-cell wide">
        {status === "ready" && (
          <button class="small" onClick={() => void download(id)}>
            Download
          </button>
        )}{" "}
        <button class="small" onClick={onDelete}>
          {status === "running" ? "Stop" : "Delete"}
        </button>
      </Cell>
    </tr>
  );
}

async function make(): Promise<void> {
  try {
    await api.createBackup();
  } catch (error) {
    toast((error as Error).message);
  }
  await changed(["backups"]);
}

/** A link sends no header: so a ticket stands for the key. What is attached leaves the page in place. */
async function download(id: string): Promise<void> {
  try {
    const { url } = await api.backupTicket(id);
    location.assign(url);
  } catch (error) {
    toast((error as Error).message);
  }
}

function DeleteBackup({ backup: { id, status }, onClose }: { backup: Backup; onClose: () => void }) {
  const reason = useSignal("");
  const isRunning = status === "running";
  const submit = async () => {
    await api.deleteBackup(id, reason.value);
    await changed(["backups"]);
    onClose();
    toast(isRunning ? "Backup stopped" : "Backup deleted");
  };
  return (
    <Dialog title={isRunning ? "Stop this backup" : "Delete this backup"} onClose={onClose}>
      <Form submit={isRunning ? "Stop" : "Delete"} danger onSubmit={submit}>
        <p>{isRunning ? "What is made of it so far is removed." : "The file is removed from the server."}</p>
        <ReasonField value={reason} />
      </Form>
    </Dialog>
  );
}
