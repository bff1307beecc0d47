/**
 * Hooks in a file of settings: lists by event, of groups of commands as Claude Code has them, or of commands. Pure.
 *
 * Ours are the commands whose program is `cairn hook`; everything else stays.
 *
 * @module
 */
import { isDeepStrictEqual } from "node:util";
import type { HookFile } from "./agents.ts";
import { parseJson, withoutValue, withValue } from "./json-edits.ts";

/** In the text of a file the quotes of a path are escaped. */
const OURS = /(^|[\\/"' ])cairn(\.exe)?(\\?["'])? hook( |"|$)/;

/** A new file whose lists have commands. */
const EMPTY_FLAT = '{\n  "version": 1\n}\n';

type Content = Readonly<Record<string, unknown>>;

interface Place {
  readonly path: readonly (string | number)[];
  readonly event: string;
  readonly handler: unknown;
}

/**
 * Returns the text with our hooks, or without.
 *
 * @param command - undefined to remove them
 * @throws {Error} where it cannot be changed without a change of something else
 */
export function plannedHooks(text: string, { handlers, isFlat }: HookFile, command: string | undefined): string {
  const start = text.trim() === "" ? (isFlat ? EMPTY_FLAT : "{}\n") : text;
  const before = contentOf(start);
  const wanted = command === undefined ? {} : handlers(command);
  if (isSet(before, wanted)) return text;
  let edited = start;
  const kept = new Set<string>();
  for (const { path, event, handler } of oursIn(before).toReversed()) {
    if (!kept.has(event) && isDeepStrictEqual(handler, wanted[event])) kept.add(event);
    else edited = withoutValue(edited, path);
  }
  for (const [event, handler] of Object.entries(wanted)) {
    if (!kept.has(event)) edited = withValue(edited, ["hooks", event], isFlat ? handler : { hooks: [handler] }, true);
  }
  const after = contentOf(edited);
  if (!isSet(after, wanted) || !isDeepStrictEqual(withoutOurs(after), withoutOurs(before)))
    throw new Error("its hooks are written in a way that cannot be changed here");
  return edited;
}

function contentOf(text: string): Content {
  const content = parseJson(text);
  if (!isObject(content)) throw new Error("it is not an object");
  const { hooks = {} } = content;
  if (!isObject(hooks)) throw new Error("its hooks is not an object");
  const odd = Object.keys(hooks).find((event) => !Array.isArray(hooks[event]));
  if (odd !== undefined) throw new Error(`its hooks.${odd} is not a list`);
  return content;
}

function isSet(content: Content, wanted: Readonly<Record<string, unknown>>): boolean {
  const ours = oursIn(content);
  return ours.length === Object.keys(wanted).length && ours.every(({ event, handler }) => isDeepStrictEqual(handler, wanted[event]));
}

/** Finds our commands in their order, each by the path of what goes with it: its group, if it is one and it is alone there. */
function oursIn({ hooks }: Content): Place[] {
  const groups = Object.entries(isObject(hooks) ? hooks : {}).flatMap(([event, list]) =>
    (list as unknown[]).map((group, at) => ({ event, at, group })),
  );
  return groups.flatMap(({ event, at, group }) => {
    if (isOurs(group)) return [{ event, handler: group, path: ["hooks", event, at] }];
    const handlers = handlersOf(group);
    return handlers.flatMap((handler, i): Place[] => {
      if (!isOurs(handler)) return [];
      return [{ event, handler, path: ["hooks", event, at, ...(handlers.length === 1 ? [] : ["hooks", i])] }];
    });
  });
}

function withoutOurs({ hooks, ...others }: Content): Content {
  const left = Object.entries(isObject(hooks) ? hooks : {}).flatMap(([event, list]) => {
    const groups = (list as unknown[]).flatMap((group) => {
      if (isOurs(group)) return [];
      const handlers = handlersOf(group);
      const foreign = handlers.filter((handler) => !isOurs(handler));
      return handlers.length > 0 && foreign.length === 0 ? [] : [isObject(group) ? { ...group, hooks: foreign } : group];
    });
    return groups.length === 0 ? [] : [[event, groups] as const];
  });
  return left.length === 0 ? others : { ...others, hooks: Object.fromEntries(left) };
}

function handlersOf(group: unknown): readonly unknown[] {
  return isObject(group) && Array.isArray(group["hooks"]) ? (group["hooks"] as unknown[]) : [];
}

function isOurs(handler: unknown): boolean {
  return isObject(handler) && typeof handler["command"] === "string" && isOurHook(handler["command"]);
}

/** Checks whether a command, or the text of a file, is or has one of ours. */
export function isOurHook(text: string): boolean {
  return OURS.test(text);
}

function isObject(value: unknown): value is Content {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
