/**
 * Who made a change: what traces say, which is how a key begins, with the name of that key.
 *
 * Names are those of the newest keys and of browsers that are signed in, which only an admin key may read; any other one knows its own.
 *
 * @module
 */
import { api, type ApiKey } from "../api.ts";
import { useCan, useMe } from "../access.ts";
import { useQuery } from "../query.ts";

const NAMES_PER_PAGE = 100;
/** Older keys of a kind than fit into these are not named. */
const PAGES_MAX = 10;
const STALE_MS = 60_000;

export function Actor({ prefix }: { prefix: string }) {
  const name = useKeyNames().get(prefix);
  return (
    <span class="actor">
      <code>{prefix}</code>
      {name !== undefined && ` ${name}`}
    </span>
  );
}

/** What the keys that begin so are called. */
function useKeyNames(): ReadonlyMap<string, string> {
  const me = useMe();
  const { data } = useQuery({ queryKey: ["keys", "names"], enabled: useCan("admin"), staleTime: STALE_MS, queryFn: readNames });
  return data ?? new Map(named(me === undefined ? [] : [me]));
}

async function readNames({ signal }: { signal: AbortSignal }): Promise<ReadonlyMap<string, string>> {
  const found = await Promise.all(["session", "key"].map((kind) => keysOf(kind, signal)));
  // Two keys that begin alike are not told apart: the one that was made to be kept is the likelier one.
  return new Map(found.flatMap((keys) => named(keys.toReversed())));
}

async function keysOf(kind: string, signal: AbortSignal): Promise<ApiKey[]> {
  const keys: ApiKey[] = [];
  for (let after: string | null = null, pages = 0; pages < PAGES_MAX; pages++) {
    const page = await api.keys({ kind, starting_after: after }, signal, NAMES_PER_PAGE);
    keys.push(...page.data);
    if (!page.has_more) break;
    after = page.last_id;
  }
  return keys;
}

const named = (keys: readonly ApiKey[]) => keys.flatMap(({ prefix, name }): [string, string][] => (name === null ? [] : [[prefix, name]]));
