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
/** Older keys than fit into these are not named. */
const PAGES_MAX = 20;
const STALE_MS = 60_000;

/** @param asks - whether the names are read for it; where not, those are shown that a screen before has read */
export function Actor({ prefix, asks = true }: { prefix: string; asks?: boolean }) {
  const name = useKeyNames(asks).get(prefix);
  return (
    <span class="actor">
      <code>{prefix}</code>
      {name !== undefined && ` ${name}`}
    </span>
  );
}

/** What the keys that begin so are called. */
function useKeyNames(asks: boolean): ReadonlyMap<string, string> {
  const me = useMe();
  const { data } = useQuery({ queryKey: ["keys", "names"], enabled: useCan("admin") && asks, staleTime: STALE_MS, queryFn: readNames });
  return data ?? new Map(named(me === undefined ? [] : [me]));
}

async function readNames({ signal }: { signal: AbortSignal }): Promise<ReadonlyMap<string, string>> {
  const keys: ApiKey[] = [];
  for (let after: string | null = null, pages = 0; pages < PAGES_MAX; pages++) {
    const page = await api.keys({ starting_after: after }, signal, NAMES_PER_PAGE);
    keys.push(...page.data);
    if (!page.has_more) break;
    after = page.last_id;
  }
  // Two keys that begin alike are not told apart: the newer one is the likelier one.
  return new Map(named(keys.toReversed()));
}

const named = (keys: readonly ApiKey[]) => keys.flatMap(({ prefix, name }): [string, string][] => (name === null ? [] : [[prefix, name]]));
