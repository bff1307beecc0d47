/**
 * Classes of answers, and types of what is nested in requests.
 *
 * @module
 */
import { OPEN } from "../../src/client/filters.ts";
import type { Schema } from "../client-types.ts";
import { docstring } from "./docstrings.ts";
import { answers, MADE, pascal, refName, requests, schemas } from "./document.ts";

type Mode = "answer" | "request";

/** Classes of objects that are written in place, by their names. */
type Lifted = Map<string, { readonly schema: Schema; readonly mode: Mode }>;

export function types(): string {
  const classes: Lifted = new Map();
  for (const [name, schema] of Object.entries(schemas)) {
    if (schema.properties === undefined || hasOtherMembers(schema)) continue;
    if (answers.has(name) && itemsOf(name) === undefined) classes.set(name, { schema, mode: "answer" });
    if (requests.has(name) && isNested(name)) classes.set(nameIn("request", name), { schema, mode: "request" });
    for (const [member, field] of requests.has(name) ? Object.entries(schema.properties) : [])
      typeOf(field, "request", { name: `${name}${pascal(member)}`, lifted: classes });
  }
  // Iterating a map gives what is added meanwhile.
  const made = Array.from(drawn(classes), ([name, text]): [string, string] => [name, text]);
  const codes = (schemas["Error"]?.properties?.["error"]?.properties?.["code"]?.enum ?? []) as string[];
  const literals = [...codes, "connection_failed", "timeout", "unexpected_answer"].map((code) => `    ${JSON.stringify(code)},\n`);
  return `"""Requests and answers of Cairn, ${MADE}"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

from ._record import Record

OPEN = frozenset(${JSON.stringify(OPEN).replaceAll(",", ", ")})
"""Fields that have a default or say where a page begins: as None they let nothing more through."""

ErrorCode = Literal[
${literals.join("")}]
${made
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([, text]) => text)
  .join("")}`;
}

function* drawn(classes: Lifted): Generator<[string, string]> {
  for (const [name, { schema, mode }] of classes)
    yield [name, mode === "answer" ? recordClass(name, schema, classes) : typedDict(name, schema, classes)];
}

function recordClass(name: string, { description = "", properties = {}, required = [] }: Schema, lifted: Lifted): string {
  const nested: string[] = [];
  const members = Object.entries(properties).map(([member, schema]) => {
    const type = typeOf(schema, "answer", { name: `${name}${pascal(member)}`, lifted });
    const kind = recordIn(schema, `${name}${pascal(member)}`);
    if (kind !== undefined) nested.push(`${JSON.stringify(member)}: ${JSON.stringify(kind)}`);
    const isOptional = !required.includes(member);
    const optional = type.endsWith("| None") ? type : `${type} | None`;
    return `    ${member}: ${isOptional ? `${optional} = None` : type}\n${docstring(schema.description, 4)}`;
  });
  const table = nested.length === 0 ? "" : `    __nested__: ClassVar[Mapping[str, str]] = {${nested.join(", ")}}\n`;
  return `\n\nclass ${name}(Record):\n${docstring(description, 4)}${description === "" ? "" : "\n"}${table}${members.join("")}`;
}

function typedDict(name: string, { description = "", properties = {}, required = [] }: Schema, lifted: Lifted): string {
  const members = Object.entries(properties).map(([member, schema]) => {
    const type = typeOf(schema, "request", { name: `${name}${pascal(member)}`, lifted });
    return `    ${member}: ${required.includes(member) ? type : `NotRequired[${type}]`}\n${docstring(schema.description, 4)}`;
  });
  return `\n\nclass ${name}(TypedDict):\n${docstring(description, 4)}${description === "" ? "" : "\n"}${members.join("")}`;
}

interface Place {
  /** The name of an object that is written in place. */
  readonly name: string;
  readonly lifted?: Lifted;
  /** `list` as it is called where a method has its name. */
  readonly list?: string;
}

export function typeOf(schema: Schema, mode: Mode, place: Place): string {
  const isNull = schema.nullable === true || schema.enum?.includes(null) === true;
  if (!isNull) return plainTypeOf(schema, mode, place);
  return schema.enum?.every((value) => value === null) === true ? "None" : `${plainTypeOf(schema, mode, place)} | None`;
}

function plainTypeOf(schema: Schema, mode: Mode, place: Place): string {
  const { $ref, enum: values, anyOf, type, items = {}, properties } = schema;
  if ($ref !== undefined) return hasOtherMembers(schemas[refName($ref)]) ? "Mapping[str, Any]" : nameIn(mode, refName($ref));
  if (values !== undefined)
    return `Literal[${values
      .filter((value) => value !== null)
      .map(literal)
      .join(", ")}]`;
  if (anyOf !== undefined) return anyOf.map((member) => typeOf(member, mode, place)).join(" | ");
  switch (type) {
    case "string":
      return "str";
    case "boolean":
      return "bool";
    case "integer":
      return "int";
    case "number":
      return "float";
    case "array":
      return `${mode === "answer" ? (place.list ?? "list") : "Sequence"}[${typeOf(items, mode, place)}]`;
    case "object":
      if (properties === undefined) return mode === "answer" ? "dict[str, Any]" : "Mapping[str, Any]";
      place.lifted?.set(place.name, { schema, mode });
      return place.name;
    default:
      return "Any";
  }
}

/** Checks whether an object has members besides those with names, so that it is a mapping. */
function hasOtherMembers(schema: Schema | undefined): boolean {
  return typeof schema?.additionalProperties === "object";
}

function literal(value: unknown): string {
  return value === true ? "True" : value === false ? "False" : JSON.stringify(value);
}

/** Returns the class of the records that a member holds, one or several. */
function recordIn({ $ref, type, items, properties }: Schema, name: string): string | undefined {
  if ($ref !== undefined) return schemas[refName($ref)]?.properties === undefined ? undefined : refName($ref);
  if (type === "array" && items !== undefined) return recordIn(items, name);
  return type === "object" && properties !== undefined ? name : undefined;
}

/** Type of the items of a list of the API; undefined for what is no list. */
export function itemsOf(name: string): Schema | undefined {
  const { properties } = schemas[name] ?? {};
  return properties?.["last_id"] !== undefined && properties["has_more"] !== undefined ? properties["data"]?.items : undefined;
}

/** Bodies are the arguments of methods: only what is in them has a type. */
function isNested(name: string): boolean {
  const reference = `"#/components/schemas/${name}"`;
  return Object.entries(schemas).some(
    ([other, schema]) => requests.has(other) && JSON.stringify(schema.properties ?? {}).includes(reference),
  );
}

function nameIn(mode: Mode, name: string): string {
  return mode === "request" && answers.has(name) ? `${name}Param` : name;
}
