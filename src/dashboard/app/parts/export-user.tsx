/**
 * Saves everything of a user as a file. Leaving the screen ends it.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { UserDetails } from "../api.ts";
import { download } from "../download.ts";
import { exportUser } from "../user-export.ts";
import { counted, number } from "../words.ts";
import { toast } from "./toast.tsx";

/** Records between two figures on the button. */
const SAID_EVERY = 50;
/** Characters of a file's name that every system takes. */
const SAFE = /[^A-Za-z0-9._-]+/g;

export function ExportUser({ user }: { user: UserDetails }) {
  /** Records read so far; null while it does not run. */
  const read = useSignal<number | null>(null);
  const left = useRef(new AbortController());
  useEffect(() => () => left.current.abort(), []);
  const save = async () => {
    const lines: string[] = [];
    let missing = 0;
    read.value = 0;
    try {
      for await (const record of exportUser(user, left.current.signal)) {
        lines.push(`${JSON.stringify(record)}\n`);
        missing = record.documents_missing ?? 0;
        if (lines.length % SAID_EVERY === 0) read.value = lines.length;
      }
      download(`${user.id.replaceAll(SAFE, "-").slice(0, 60)}.jsonl`, "application/jsonl", lines);
      const without = missing > 0 ? `, without ${counted(missing, "documents")} with agents that no session names` : "";
      toast(`Saved ${counted(lines.length - 1, "records")}${without}`);
    } catch (error) {
      if (!left.current.signal.aborted) toast((error as Error).message);
    } finally {
      read.value = null;
    }
  };
  return (
    <button disabled={read.value !== null} onClick={() => void save()}>
      {read.value === null ? "Export" : `Exporting … ${number(read.value)}`}
    </button>
  );
}
