/**
 * Contents of an agent's file once Cairn is set up in it, or removed from it. Pure.
 *
 * Ours is the value by the name `cairn`. The result is parsed: where anything else in it is not what it was, nothing is changed.
 *
 * @module
 */
import { isDeepStrictEqual } from "node:util";
import type { HookFile, OwnFile, Program, ServerFile } from "./agents.ts";
import { isOurHook, plannedHooks } from "./hook-edits.ts";
import { parseJson, withoutValue, withValue } from "./json-edits.ts";
import { parseToml, withoutTable, withTable } from "./toml-edits.ts";

const NAME = "cairn";

/** Programs that are to stand in the files of an agent; undefined to remove them. */
export interface Wanted {
  readonly server: Program | undefined;
  /** Command of its hooks. */
  readonly hook: string | undefined;
}

/** Part of a file that is ours. */
export type Part = ServerFile | HookFile | OwnFile;

/**
 * Returns the text of a file as it should be.
 *
 * @returns an empty text for a file of ours that is to go
 * @param parts - what stands in it: the server, the hooks, or both
 * @throws {Error} where it cannot be changed without a change of something else
 */
export function planned(parts: readonly Part[], text: string, { server, hook }: Wanted): string {
  return parts.reduce((edited, part) => {
    if (part.format === "own") return plannedOwn(edited, part, hook);
    return part.format === "hooks" ? plannedHooks(edited, part, hook) : plannedServer(part, edited, server);
  }, text);
}

function plannedOwn(text: string, { text: ours }: OwnFile, hook: string | undefined): string {
  if (text.trim() !== "" && !isOurHook(text)) throw new Error("it is not a file of cairn setup");
  return hook === undefined ? "" : ours(hook);
}

function plannedServer(file: ServerFile, text: string, wanted: Program | undefined): string {
  const { format, below } = file;
  const read = format === "json" ? parseJson : parseToml;
  const start = format === "json" && text.trim() === "" ? "{}\n" : text;
  const before = read(start);
  if (!isObject(before)) throw new Error("it is not an object");
  const path = [...below, NAME];
  const value = wanted === undefined ? undefined : file.value(wanted);
  if (isDeepStrictEqual(valueAt(before, path), value)) return text;
  const refusal = refusalOf(before, below);
  if (refusal !== undefined) throw new Error(refusal);
  const edited = format === "json" ? editedJson(start, path, value) : editedToml(start, path, value);
  if (!isChangedTo(edited)) throw new Error(`its ${path.join(".")} is written in a way that cannot be changed here`);
  return edited;

  /** Checks that the value is what it should be, and everything else what it was. */
  function isChangedTo(result: string): boolean {
    try {
      const after = read(result);
      return isDeepStrictEqual(valueAt(after, path), value) && isDeepStrictEqual(without(after, path), without(before, path));
    } catch {
      return false;
    }
  }
}

function editedJson(text: string, path: readonly string[], value: object | undefined): string {
  return value === undefined ? withoutValue(text, path) : withValue(text, path, value);
}

function editedToml(text: string, path: readonly string[], value: ReturnType<ServerFile["value"]> | undefined): string {
  const name = path.join(".");
  return value === undefined ? withoutTable(text, name) : withTable(text, name, value);
}

/** Names the value that stands where an object should. */
function refusalOf(content: object, below: readonly string[]): string | undefined {
  const wrong = below.findIndex((_, i) => {
    const found = valueAt(content, below.slice(0, i + 1));
    return found !== undefined && !isObject(found);
  });
  return wrong === -1 ? undefined : `its ${below.slice(0, wrong + 1).join(".")} is not an object`;
}

function valueAt(content: unknown, path: readonly string[]): unknown {
  return path.reduce((found, name) => (isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined), content);
}

/** Leaves out a value, and what is empty above it. */
function without(content: unknown, [name = "", ...rest]: readonly string[]): unknown {
  if (!isObject(content)) return content;
  const { [name]: value, ...others } = content;
  const kept = rest.length === 0 ? undefined : without(value, rest);
  return kept === undefined || (isObject(kept) && Object.keys(kept).length === 0) ? others : { ...others, [name]: kept };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
