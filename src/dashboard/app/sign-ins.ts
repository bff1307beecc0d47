/**
 * Sign-ins among traces: each is the creation of a key, and there are more of them than of any other change by hand. The API does not tell
 * them apart, so they are left out of what was read. Pure.
 *
 * @module
 */
import type { Static } from "@sinclair/typebox";
import type { ApiKey } from "../../keys/schema.ts";
import type { Trace } from "../../traces/schema.ts";

type Shown = Pick<Static<typeof Trace>, "action" | "details">;

const SIGN_IN_KINDS: ReadonlySet<unknown> = new Set<Static<typeof ApiKey>["kind"]>(["session", "link"]);

/** Checks whether it is of the key that a browser got by signing in, or of a link that signs one in, and its end. */
export function isSignIn({ action, details }: Shown): boolean {
  return (action === "api_key.created" || action === "api_key.revoked") && SIGN_IN_KINDS.has(details["kind"]);
}

interface PageOf<Item> {
  data: Item[];
  has_more: boolean;
  last_id: string | null;
}

/** Limit of pages at once: if nearly all entries are left out, the rest is read when more is asked for. */
const PAGES_AT_ONCE_MAX = 4;
/** As many as a window shows. */
export const ENOUGH_TRACES = 20;

/** Reads page after page until enough traces are wanted, or there were too many pages. @param read - gets the cursor of a page */
export async function readWanted<Item extends Shown>(
  read: (after: string | null) => Promise<PageOf<Item>>,
  isWanted: (trace: Item) => boolean,
  after: string | null,
): Promise<PageOf<Item> & { hidden: number }> {
  const data: Item[] = [];
  let [hidden, cursor] = [0, after];
  for (let pages = 1; ; pages++) {
    const page = await read(cursor);
    const wanted = page.data.filter(isWanted);
    data.push(...wanted);
    hidden += page.data.length - wanted.length;
    cursor = page.last_id;
    if (!page.has_more || data.length >= ENOUGH_TRACES || pages === PAGES_AT_ONCE_MAX) return { ...page, data, hidden };
  }
}
