/**
 * `cairn keys`: makes, lists, rolls and revokes API keys in a store, also while servers are running.
 *
 * Of a new key, standard output gets the key alone, for scripts; what there is to say of it goes to standard error.
 *
 * @module
 */
import { parseFlags, UsageError, type Config } from "../config.ts";
import { createKey, deleteKey, getKey, listKeys, rollKey } from "../keys/keys.ts";
import type { ApiKey } from "../keys/schema.ts";
import { SCOPES } from "../lib/scopes.ts";
import { DEFAULT_TIER, RATE_LIMIT_MAX, TIERS, type RateLimit, type Tier } from "../keys/tiers.ts";
import { systemClock } from "../lib/clock.ts";
import { parseDuration } from "../lib/duration.ts";
import { messageOf } from "../lib/errors.ts";
import type { KeyId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength } from "../lib/text.ts";
import { parseInstant } from "../lib/time.ts";
import type { Owner } from "../storage/owner.ts";
import type { CommandDeps } from "../operations/open-records.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { assertPlace, checkedName, prepareOnce, shownPlace, storeConfigOf } from "./command-line.ts";
import { escaped, print } from "./print.ts";

/** The last time that the API can show, in the year 9999. */
const LAST_TIME_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

const ACTIONS = new Map(Object.entries({ create, list, roll, revoke }));

export async function keys([name = "", ...args]: readonly string[]): Promise<number> {
  const action = ACTIONS.get(name);
  if (action === undefined) throw new UsageError("cairn keys needs one of create, list, roll, revoke");
  await action(args);
  return 0;
}

async function list(args: readonly string[]): Promise<void> {
  const { flags, has } = parseFlags(args, { switches: ["json"] });
  const config = storeConfigOf(flags);
  assertPlace(config);
  using _ = prepareOnce(config);
  const { withAnyStore } = await import("../operations/with-store.ts");
  const found = await withAnyStore(config, systemClock, (store) => Array.fromAsync(allKeys(store)));
  if (has("json")) await print(`[${found.map((key) => JSON.stringify(key)).join(",\n ")}]`);
  else if (found.length > 0) await print(tableOf([Object.keys(COLUMNS), ...found.map(rowOf)]));
}

/** Columns of `keys list`. The name is last because it can be any text. */
const COLUMNS: Readonly<Record<string, (key: ApiKey) => string>> = {
  ID: ({ id }) => id,
  KIND: ({ kind }) => kind,
  KEY: ({ prefix }) => `${prefix}…`,
  SCOPES: ({ scopes }) => scopes.join(","),
  USER: ({ user_id: user }) => escaped(user ?? "any"),
  AGENT: ({ agent_id: agent }) => escaped(agent ?? "any"),
  TIER: ({ tier }) => tier,
  "A MINUTE/BURST": ({ rate_limit: { per_minute: rate, burst } }) => `${rate}/${burst}`,
  CREATED: ({ created_at: at }) => at,
  "LAST USED": ({ last_used_at: at }) => at ?? "never",
  ENDS: ({ expires_at: at }) => at ?? "never",
  NAME: ({ name }) => escaped(name ?? ""),
};

function rowOf(key: ApiKey): string[] {
  return Object.values(COLUMNS).map((show) => show(key));
}

/** Columns are two spaces apart. */
function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function idFirst(action: string, [id, ...flags]: readonly string[]): [id: string, ...flags: string[]] {
  if (id === undefined || id.startsWith("-")) throw new UsageError(`cairn keys ${action} needs the id of a key (key_…)`);
  return [id, ...flags];
}

function create(args: readonly string[]): Promise<void> {
  const { flags } = parseFlags(args, { flags: ["name", "scopes", "tier", "user", "agent", "expires", "rate-limit"] });
  const scopes = (flags["scopes"] ?? "read,write").split(",").map((text) => oneOf(SCOPES, text.trim(), "--scopes"));
  const tier = oneOf(TIERS, flags["tier"] ?? DEFAULT_TIER, "--tier");
  const input = {
    name: nameIn(flags["name"]),
    scopes,
    tier,
    owner: ownerIn(flags["user"], flags["agent"], scopes),
    expiresAt: expiryIn(flags["expires"]),
    rateLimit: rateLimitIn(flags["rate-limit"], tier),
  };
  const config = storeConfigOf(flags);
  // A first key may come before the first start; in a wrong place it is a key to nothing.
  const sayNew = () => console.error(`There was no store in ${shownPlace(config)}: a new one is made.`);
  const work: Work = async (records) => {
    const key = JSON.parse(await createKey(records, records.operator, input)) as ApiKey;
    await printKey(key);
    console.error(`${key.id} has the scopes ${key.scopes.join(" and ")}. ${SHOWN_ONCE}`);
  };
  return withRecords(config, work, sayNew);
}

function roll(args: readonly string[]): Promise<void> {
  const [id, ...rest] = idFirst("roll", args);
  const { flags } = parseFlags(rest, { flags: ["overlap"] });
  const overlapMs = overlapIn(flags["overlap"]);
  return withExistingRecords(storeConfigOf(flags), async (records) => {
    const answer = JSON.parse(await rollKey(records, records.operator, id, { overlapMs })) as ApiKey;
    await printKey(answer);
    const { expires_at: end } = JSON.parse(await getKey(records, id)) as ApiKey;
    console.error(`${answer.id} replaces ${id}, which ends ${end}. ${SHOWN_ONCE}`);
  });
}

function revoke(args: readonly string[]): Promise<void> {
  const [id, ...rest] = idFirst("revoke", args);
  const { flags, has } = parseFlags(rest, { switches: ["force"] });
  return withExistingRecords(storeConfigOf(flags), async (records) => {
    await deleteKey(records, records.operator, id, { force: has("force") }).catch((error: unknown) => {
      // The command has a flag for what a request says in its query.
      throw new Error(messageOf(error).replace("send force=true", "add --force"), { cause: error });
    });
    await print(`Revoked ${id}`);
  });
}

const SHOWN_ONCE = "The key is shown only this once.";

async function printKey({ id, key = "" }: ApiKey): Promise<void> {
  try {
    await print(key);
  } catch (error) {
    throw new Error(`${messageOf(error)} Nobody knows the new key now: revoke ${id}.`, { cause: error });
  }
}

function overlapIn(text: string | undefined): number {
  const ms = text === undefined ? LIMITS.keyOverlapSecondsDefault * 1000 : text === "0" ? 0 : parseDuration(text);
  if (ms === undefined || ms > LIMITS.keyOverlapSecondsMax * 1000) {
    throw new UsageError(`--overlap must be a time of at most 7d, such as 24h, 30m or 0; got ${text}`);
  }
  return ms;
}

function nameIn(text: string | undefined): string | null {
  const length = codePointLength(text ?? "");
  if (length > LIMITS.keyNameLengthMax) throw new UsageError(`--name must be at most ${LIMITS.keyNameLengthMax} characters; got ${length}`);
  return text ?? null;
}

function ownerIn(user: string | undefined, agent: string | undefined, scopes: readonly string[]): Owner {
  for (const [flag, name] of Object.entries({ user, agent })) {
    if (name !== undefined && scopes.includes("admin"))
      throw new UsageError(`--${flag} is for keys without the scope admin, which manages the keys of all`);
  }
  return { userId: checkedName("user", user), agentId: checkedName("agent", agent) };
}

function expiryIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  const at = ms === undefined ? parseInstant(text) : systemClock.now() + ms;
  if (at === undefined || at > LAST_TIME_MS) {
    throw new UsageError(`--expires must be a duration such as 90d or 12h, or a time such as 2027-01-31T00:00:00Z; got ${text}`);
  }
  if (at <= systemClock.now()) throw new UsageError(`--expires must be in the future; got ${text}`);
  return at;
}

/** As in the API: only keys of the tier enterprise have limits of their own. */
function rateLimitIn(text: string | undefined, tier: Tier): RateLimit | undefined {
  if (text === undefined) return undefined;
  const [perMinute = 0, burst = 0] = /^\d{1,10}\/\d{1,10}$/.test(text) ? text.split("/").map(Number) : [];
  if ([perMinute, burst].some((count) => count < 1 || count > RATE_LIMIT_MAX)) {
    throw new UsageError(
      `--rate-limit must be requests per minute and a burst, such as 600/1200, each 1 to ${RATE_LIMIT_MAX}; got ${text}`,
    );
  }
  if (tier !== "enterprise") throw new UsageError(`--rate-limit is for keys of the tier enterprise; got ${tier}`);
  return { perMinute, burst };
}

async function* allKeys(store: RecordStore): AsyncGenerator<ApiKey> {
  for (let startingAfter: KeyId | undefined; ;) {
    const page = JSON.parse(await listKeys({ store }, {}, { limit: LIMITS.listMax, startingAfter })) as {
      data: ApiKey[];
      has_more: boolean;
    };
    yield* page.data;
    startingAfter = page.data.at(-1)?.id as KeyId | undefined;
    if (!page.has_more) return;
  }
}

type Work = (records: CommandDeps) => Promise<void>;

/** @throws {OperationError} where there is no store */
export async function withExistingRecords(config: Config, work: Work): Promise<void> {
  assertPlace(config);
  return withRecords(config, work);
}

/** @param onNew - called where a store is made */
async function withRecords(config: Config, work: Work, onNew?: () => void): Promise<void> {
  using _ = prepareOnce(config);
  // Native parts now know where to unpack.
  const { openRecords } = await import("../operations/open-records.ts");
  const records = await openRecords(config, systemClock, { onNew });
  try {
    await work(records);
  } finally {
    await records.store.close();
  }
}

function oneOf<Value extends string>(values: readonly Value[], text: string, flag: string): Value {
  const found = values.find((value) => value === text);
  if (found === undefined)
    throw new UsageError(`${flag} must be ${flag === "--scopes" ? "one or more" : "one"} of ${values.join(", ")}; got ${text}`);
  return found;
}
