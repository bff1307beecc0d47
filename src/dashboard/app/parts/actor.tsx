/**
 * Actor of a change: how its key begins, as traces say, with the name of that key.
 *
 * Names are those of the newest keys and of browsers that are signed in, which only an admin key may read; any other one knows its own.
 *
 * @module
 */
import { api, type ApiKey } from "../api.ts";
import { useCan, useMe } from "../access.ts";
import { namesByPrefix } from "../key-names.ts";
import { useQuery } from "../query.ts";

const NAMES_PER_PAGE = 100;
/** Older keys than fit into these are not named. */
const PAGES_MAX = 20;
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

/** Names of the keys that begin so. */
function useKeyNames(): ReadonlyMap<string, string> {
  const me = useMe();
  const { data } = useQuery({ queryKey: ["keys", "names"], enabled: useCan("admin"), staleTime: STALE_MS, queryFn: readNames });
  return data ?? namesByPrefix(me === undefined ? [] : [me]);
}

async function readNames({ signal }: { signal: AbortSignal }): Promise<ReadonlyMap<string, string>> {
  const keys: ApiKey[] = [];
  for (let after: string | null = null, pages = 0; pages < PAGES_MAX; pages++) {
    const page = await api.keys({ starting_after: after }, signal, NAMES_PER_PAGE);
    keys.push(...page.data);
    if (!page.has_more) break;
    after = page.last_id;
  }
  return namesByPrefix(keys);
}
