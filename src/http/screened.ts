/**
 * Members of a request that may have secrets, by its schema.
 *
 * @module
 */
import { Kind, type TObject, type TSchema } from "@sinclair/typebox";
import type { ScreenedMember, ScreenedMembers } from "../secrets/screen.ts";
import type { Endpoint } from "./endpoint.ts";
import { IN_BRACKETS, PARSE } from "./types.ts";

/** Names of records and of those who have them, filters, and cursors: they find records, and what is found by them is looked at. */
const NAMES: ReadonlySet<string> = new Set([
  "session_id",
  "user_id",
  "agent_id",
  "external_id",
  "supersedes",
  "useful",
  "not_useful",
  "namespace",
  "key",
  "to",
  "index",
  "cursor",
  "token",
  "filter",
]);

interface Screened {
  readonly body: ScreenedMembers | undefined;
  readonly query: ScreenedMembers | undefined;
}

/** Members of the body and the query of a change that a key with the scope `write` can make; undefined where there are none. */
export function screenedOf({ method, scope, body, query }: Endpoint): Screened {
  const of = (schema: TObject | null) => (schema === null || method === "GET" || scope !== "write" ? undefined : membersOf(schema));
  return { body: unlessEmpty(of(body)), query: unlessEmpty(of(query)) };
}

function unlessEmpty(members: ScreenedMembers | undefined): ScreenedMembers | undefined {
  return members === undefined || Object.keys(members).length === 0 ? undefined : members;
}

function membersOf(schema: TObject): ScreenedMembers {
  const members = Object.entries<TSchema>(schema.properties).map(([name, property]) => [name, memberOf(name, property)] as const);
  return Object.fromEntries(members.filter((one): one is [string, ScreenedMember] => one[1] !== undefined));
}

function memberOf(name: string, schema: TSchema): ScreenedMember | undefined {
  if (NAMES.has(name) || PARSE in schema) return undefined;
  const { type } = schema as { type?: string };
  if (type === "string") return "all";
  if (type === "array") {
    const items = schema["items"] as TSchema;
    if (items[Kind] !== "Object") return items["type"] === "string" ? "all" : undefined;
    return inner(membersOf(items as TObject), IN_BRACKETS in schema ? "brackets" : "dots");
  }
  if (type !== "object") return undefined;
  return schema[Kind] === "Object" ? inner(membersOf(schema as TObject), undefined) : "all";
}

function inner(members: ScreenedMembers, array: "brackets" | "dots" | undefined): ScreenedMember | undefined {
  return unlessEmpty(members) && { members, array };
}
