/**
 * Memories of Mem0: a list, a page or pages of them as its API gives them, or an export by a schema of the user's own.
 *
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";
import { LIMITS } from "../../lib/limits.ts";
import { isObject } from "../hook/transcript.ts";
import type { Found, Selection, SourceSession } from "./found.ts";
import { memoriesOf } from "./memory.ts";
import { foundInRecords, recordsOf, type Placed } from "./records.ts";
import { boundedName, hashOf, nonEmpty, restOf, timeMs } from "./values.ts";

const FROM = "mem0";
const LISTS = ["results", "memories", "relations"];
const USED = [
  "id",
  "memory",
  "content",
  "text",
  "user_id",
  "agent_id",
  "run_id",
  "metadata",
  "categories",
  "created_at",
  "expiration_date",
];
/** Bytes of metadata that are kept: the rest is ours. */
const METADATA_BYTES_MAX = LIMITS.metadataBytesMax - 16_384;

/** @throws {OperationError} where nothing is a memory of Mem0 */
export async function* mem0(paths: readonly string[], selection: Selection): AsyncGenerator<Found> {
  yield* foundInRecords(
    recordsOf(paths, (name) => name.toLowerCase().endsWith(".json"), LISTS),
    (record, place) => foundIn(record, place, selection),
    (first) => `There is no memory of Mem0: ${first ?? `${paths.join(", ")} has none`}.`,
  );
}

/** Gives what a record is: a memory, or a page of them. */
function* foundIn(record: JsonObject, place: string, selection: Selection): Generator<Placed> {
  const pages = LISTS.map((name) => record[name]).filter((list) => Array.isArray(list));
  if (pages.length === 0) yield { place, found: memory(record, place, selection) };
  for (const [i, one] of pages.flat().entries()) {
    const at = `${place}, memory ${i + 1}`;
    yield { place: at, found: isObject(one) ? memory(one, at, selection) : "is not an object" };
  }
}

/** @returns why it is none, or what it gives */
function memory(record: JsonObject, place: string, selection: Selection): string | readonly Found[] {
  const content = contentOf(record);
  if (content === undefined) return "has no memory, content or text";
  const { metadata, categories, expiration_date: expiration } = record;
  if (isObject(metadata) && Buffer.byteLength(JSON.stringify(metadata)) > METADATA_BYTES_MAX)
    return `has metadata of more than ${METADATA_BYTES_MAX} bytes`;
  const end = endOf(expiration);
  if (end !== undefined && end <= selection.now) return [{ kind: "left", place, reason: `expired at ${new Date(end).toISOString()}` }];
  const user = nameOf(record["user_id"], LIMITS.userIdLengthMax);
  const agent = nameOf(record["agent_id"], LIMITS.agentIdLengthMax);
  const run = nonEmpty(record["run_id"]);
  const session: SourceSession | undefined =
    run === undefined
      ? undefined
      : { externalId: boundedName(`${FROM}:${run}`), agentId: agent ?? FROM, user, metadata: { source: "import", imported_from: FROM } };
  return [
    ...memoriesOf(
      {
        from: FROM,
        name: `${FROM}:${nonEmpty(record["id"]) ?? hashOf(content)}`,
        content,
        type: "fact",
        at: timeMs(record["created_at"]),
        owner: { user, agent },
        session,
        tags: Array.isArray(categories) ? categories.filter((category) => typeof category === "string") : [],
        metadata: { ...(isObject(metadata) ? metadata : {}), ...restOf(record, USED) },
        expiresAt: end === undefined ? undefined : new Date(end).toISOString(),
      },
      selection,
    ),
  ];
}

/** Text of a memory, or of an edge of its graph. */
function contentOf({ memory, content, text, source, relationship, target, destination }: JsonObject): string | undefined {
  const to = nonEmpty(target) ?? nonEmpty(destination);
  const from = nonEmpty(source);
  const verb = nonEmpty(relationship);
  const edge = from === undefined || verb === undefined || to === undefined ? undefined : [from, verb, to].join(" ").replaceAll("_", " ");
  return nonEmpty(memory) ?? nonEmpty(content) ?? nonEmpty(text) ?? edge;
}

function nameOf(value: unknown, lengthMax: number): string | undefined {
  const name = nonEmpty(value);
  return name === undefined ? undefined : boundedName(name, lengthMax);
}

/** A day counts to its end. */
function endOf(value: unknown): number | undefined {
  const ms = timeMs(value);
  return ms !== undefined && typeof value === "string" && /^\d{4}-\d\d-\d\d$/.test(value) ? ms + 86_399_999 : ms;
}
