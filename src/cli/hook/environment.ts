/**
 * Flags and environment of `cairn hook`: read here and not by the configuration, whose checks take longer to load than a hook may run.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { parseArgs } from "node:util";
import { CLAUDE_CODE, HOOK_AGENTS, type HookAgent } from "./agents.ts";

export interface HookEnvironment {
  /** The agent that runs it. */
  readonly agent: HookAgent;
  /** The event, of an agent whose input does not name it. */
  readonly event: string | undefined;
  /** The data directory: of the server to ask, and of what hooks keep. */
  readonly directory: string;
  /** The server to ask, as the operator named it, instead of that of the data directory. */
  readonly server: { readonly url: URL; readonly key: string } | undefined;
  readonly user: string | undefined;
  readonly isOff: boolean;
  /** True to keep no turns. */
  readonly noCapture: boolean;
  /** Longest time for an event, instead of its own. */
  readonly waitMs: number | undefined;
  /** Another agent runs the hooks of Claude Code, too. */
  readonly isCursor: boolean;
}

const SUBCOMMANDS = ["status", "pause", "resume"] as const;
export type Subcommand = (typeof SUBCOMMANDS)[number];

type Texts = Readonly<Record<string, string | undefined>>;

/** @throws {Error} for a flag that is not known, or where nothing says where the data is */
export function readHook(
  args: readonly string[],
  environment: Texts = process.env,
): { subcommand: Subcommand | undefined; hook: HookEnvironment } {
  const text = { type: "string" } as const;
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { url: text, user: text, "data-dir": text, wait: text, event: text, "no-capture": { type: "boolean" } },
    allowPositionals: true,
  });
  const [word, ...more] = positionals;
  const subcommand = SUBCOMMANDS.find((name) => name === word);
  const agent = word === undefined ? CLAUDE_CODE : HOOK_AGENTS.find(({ name }) => name === word);
  if (more.length > 0 || (agent ?? subcommand) === undefined) throw new Error(`cairn hook has no ${positionals.join(" ")}`);
  const url = values.url ?? (values["data-dir"] === undefined ? environment["CAIRN_URL"] : undefined);
  const key = environment["CAIRN_API_KEY"];
  const waitMs = values.wait === undefined ? undefined : Number(values.wait);
  if (waitMs !== undefined && !(waitMs > 0)) throw new Error(`--wait must be a number of milliseconds; got ${values.wait ?? ""}`);
  return {
    subcommand,
    hook: {
      agent: agent ?? CLAUDE_CODE,
      event: values.event,
      directory: values["data-dir"] ?? (environment["CAIRN_DATA_DIR"] || userDirectory(environment)),
      server: url && key ? { url: new URL(url), key } : undefined,
      user: values.user ?? (environment["USER"] || environment["LOGNAME"] || environment["USERNAME"] || undefined),
      isOff: ["off", "0", "false"].includes(environment["CAIRN_HOOKS"]?.toLowerCase() ?? ""),
      noCapture: values["no-capture"] === true,
      waitMs,
      isCursor: environment["CURSOR_VERSION"] !== undefined,
    },
  };
}

/** Directory in which `cairn mcp` keeps data of its user. */
function userDirectory({ XDG_DATA_HOME: data, HOME: home }: Texts): string {
  if (data && isAbsolute(data)) return join(data, "cairn");
  if (!home) throw new Error("there is no home directory (HOME)");
  return join(home, ".local", "share", "cairn");
}

/** Checks whether a project has switched hooks off: `.cairn/off` in it, or in a directory above. */
export function isOffIn(directory: string): boolean {
  for (let path = directory; ; path = dirname(path)) {
    if (existsSync(join(path, ".cairn", "off"))) return true;
    if (path === dirname(path)) return false;
  }
}
