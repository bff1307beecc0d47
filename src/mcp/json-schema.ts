/**
 * Translates TypeBox schemas to the plain JSON Schema (2020-12) that clients of MCP read.
 *
 * @module
 */
import type { TSchema } from "@sinclair/typebox";
import type { JsonObject, JsonValue } from "../lib/json.ts";

const LIMITS_OF_VALUES = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"];
const WITH_DESCRIPTIONS = new Set(["type", "const", "required", "description", "default", ...LIMITS_OF_VALUES]);
/** Nobody reads descriptions of what comes back, and every client pays for them with its model's context. */
const WITHOUT_DESCRIPTIONS = new Set(["type", "const", "required"]);

/** The schema of what a model sends, with its descriptions. */
export function inputSchemaOf(schema: TSchema): JsonObject {
  return translate(schema, WITH_DESCRIPTIONS);
}

/** The schema of what it gets. Members that it does not name are allowed: a later Cairn may answer with more. */
export function outputSchemaOf(schema: TSchema): JsonObject {
  return translate(schema, WITHOUT_DESCRIPTIONS);
}

function translate(schema: TSchema, kept: ReadonlySet<string>): JsonObject {
  const plain: JsonObject = {};
  for (const [keyword, value] of Object.entries(schema) as [string, JsonValue][]) {
    if (keyword === "properties") {
      const members = Object.entries(value as unknown as Record<string, TSchema>);
      plain["properties"] = Object.fromEntries(members.map(([name, member]) => [name, translate(member, kept)]));
    } else if (keyword === "items") {
      plain["items"] = translate(value as unknown as TSchema, kept);
    } else if (keyword === "anyOf") {
      // Literals, in all schemas there are.
      Object.assign(plain, { type: "string", enum: (value as unknown as TSchema[]).map((member) => member["const"] as JsonValue) });
    } else if (kept.has(keyword) && !(keyword === "default" && typeof value === "object")) {
      plain[keyword] = value;
    }
  }
  if (schema["nullable"] === true) plain["type"] = [plain["type"] ?? "object", "null"];
  return plain;
}
