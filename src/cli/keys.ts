/**
 * `cairn keys`: makes, lists and revokes API keys in a data directory, beside a running server too.
 *
 * @module
 */
import { OPTIONS, UsageError, parseFlags, type Config } from "../config.ts";
import { createKey, deleteKey, listKeys, SCOPES, type Scope } from "../keys/keys.ts";
import { TIERS } from "../keys/tiers.ts";
import { systemClock } from "../lib/clock.ts";
import type { KeyId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Caller, Records } from "../traces/record.ts";

const OPERATOR: Caller & { scopes: readonly Scope[] } = {
  actor: "system",
  keyId: null,
  scopes: ["admin"],
  retentionDays: 0,
  requestId: null,
  startedAt: null,
};

interface ListedKey {
  id: KeyId;
  name: string | null;
  prefix: string;
  key?: string;
  scopes: string[];
  tier: string;
  created_at: string;
}

export async function keys([action, ...args]: readonly string[], prepare: (args: readonly string[]) => Config): Promise<number> {
  switch (action) {
    case "create":
      return create(args, prepare);
    case "list":
      return withRecords(prepare(args), (records) => {
        for (const key of allKeys(records)) {
          console.log([key.id, `${key.prefix}…`, key.scopes.join(","), key.tier, key.created_at, key.name ?? ""].join("  ").trimEnd());
        }
      });
    case "revoke": {
      const [id, ...flags] = args;
      if (id === undefined || id.startsWith("-")) throw new UsageError("cairn keys revoke needs the id of a key (key_…)");
      return withRecords(prepare(flags), async (records) => {
        await deleteKey(records, OPERATOR, id);
        console.log(`Revoked ${id}`);
      });
    }
    default:
      throw new UsageError("cairn keys knows create, list and revoke");
  }
}

function create(args: readonly string[], prepare: (args: readonly string[]) => Config): Promise<number> {
  const own = ["name", "scopes", "tier"].map((flag) => ({ flag }));
  const flags = parseFlags(args, [...own, ...Object.values(OPTIONS)]);
  const scopes = (flags["scopes"] ?? "read,write").split(",").map((text) => oneOf(SCOPES, text.trim(), "--scopes"));
  const tier = oneOf(TIERS, flags["tier"] ?? "enterprise", "--tier");
  const common = Object.values(OPTIONS).flatMap(({ flag }) => {
    const value = flags[flag];
    return value === undefined ? [] : [`--${flag}`, value];
  });
  return withRecords(prepare(common), async (records) => {
    const answer = JSON.parse(await createKey(records, OPERATOR, { name: flags["name"] ?? null, scopes, tier })) as ListedKey;
    console.log(answer.key);
  });
}

function* allKeys(records: Records): Generator<ListedKey> {
  for (let startingAfter: KeyId | undefined; ;) {
    const page = JSON.parse(listKeys(records, { limit: LIMITS.listMax, startingAfter })) as { data: ListedKey[]; has_more: boolean };
    yield* page.data;
    startingAfter = page.data.at(-1)?.id;
    if (!page.has_more) return;
  }
}

async function withRecords(config: Config, work: (records: Records) => void | Promise<void>): Promise<number> {
  // Not before the native parts know where to unpack.
  const { openRecords } = await import("../service.ts");
  const records = await openRecords(config.dataDirectory, systemClock);
  try {
    await work(records);
    return 0;
  } finally {
    await records.store.close();
  }
}

function oneOf<Value extends string>(values: readonly Value[], text: string, flag: string): Value {
  const found = values.find((value) => value === text);
  if (found === undefined) throw new UsageError(`${flag} knows ${values.join(", ")}; got ${text}`);
  return found;
}
