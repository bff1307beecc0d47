/**
 * Translates TypeBox schemas, which are JSON Schema, to OpenAPI 3.0.
 *
 * OpenAPI 3.0 has no `const`, no null type, and one example instead of several. A schema with a title becomes a component of that
 * name, to which its users refer; one without is written out in place. So is one that has defaults, which are of requests alone, with
 * its title: of a component openapi-typescript takes a field with a default for one that is always there.
 *
 * @module
 */
import type { TSchema } from "@sinclair/typebox";
import { invariant } from "../lib/invariant.ts";
import { toJson, type JsonObject, type JsonValue } from "../lib/json.ts";

/** The schemas with a title, by title. */
export type SchemaComponents = Map<string, JsonObject>;

/** Returns what the document has for `schema`, and adds its components to `components`. */
export function openApiSchema(schema: TSchema, components: SchemaComponents): JsonObject {
  const translated = translate(schema, components);
  const { title } = schema;
  if (title === undefined) return translated;
  if (hasDefault(schema)) return { title, ...translated };
  const known = components.get(title);
  invariant(known === undefined || toJson(known) === toJson(translated), `two schemas have the title ${title}`);
  components.set(title, translated);
  return { $ref: `#/components/schemas/${title}` };
}

/** Checks whether a field of an object, or of one in it, has a default. */
function hasDefault({ properties = {}, items }: TSchema): boolean {
  const members = [...Object.values(properties as Record<string, TSchema>), ...(items === undefined ? [] : [items as TSchema])];
  return members.some((member) => "default" in member || hasDefault(member));
}

function translate(schema: TSchema, components: SchemaComponents): JsonObject {
  const translated: JsonObject = {};
  for (const [keyword, value] of Object.entries(schema) as [string, JsonValue][]) {
    switch (keyword) {
      case "properties":
        translated["properties"] = Object.fromEntries(
          Object.entries(value as unknown as Record<string, TSchema>).map(([name, property]) => [
            name,
            openApiSchema(property, components),
          ]),
        );
        break;
      case "items":
        translated["items"] = openApiSchema(value as unknown as TSchema, components);
        break;
      case "anyOf":
        Object.assign(translated, union(value as unknown as TSchema[], components));
        break;
      case "const":
        translated["enum"] = [value];
        break;
      case "examples":
        // The example of a component is shown by the operations that take or give it.
        if (schema.title === undefined) translated["example"] = (value as JsonValue[])[0] ?? null;
        break;
      default:
        if (keyword !== "title" && !keyword.startsWith("x-")) translated[keyword] = value;
    }
  }
  // In OpenAPI 3.0 a null has to be in the list as well.
  const { enum: values } = translated;
  if (translated["nullable"] === true && Array.isArray(values) && !values.includes(null)) translated["enum"] = [...values, null];
  const maxBytes = schema["x-max-bytes"] as number | undefined;
  if (maxBytes !== undefined) translated["description"] = `${schema.description ?? ""} At most ${maxBytes / 1024} KiB as JSON.`.trim();
  return translated;
}

/** Literals are an `enum`; null is `nullable`. */
function union(members: readonly TSchema[], components: SchemaComponents): JsonObject {
  const present = members.filter((member) => member["type"] !== "null");
  const nullable: JsonObject = present.length < members.length ? { nullable: true } : {};
  if (present.every((member) => "const" in member)) {
    return { type: present[0]?.["type"] as string, enum: present.map((member) => member["const"] as JsonValue), ...nullable };
  }
  return { anyOf: present.map((member) => openApiSchema(member, components)), ...nullable };
}
