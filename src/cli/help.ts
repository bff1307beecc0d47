/**
 * What `cairn --help` prints, and `cairn COMMAND --help`.
 *
 * @module
 */
import { version } from "../lib/version.ts";
import { defaultOf, SETTINGS, START_SETTINGS, summaryOf, type Setting } from "../settings/schema.ts";

interface Command {
  /** `keys create` */
  name: string;
  /** What comes behind the name. */
  usage: string;
  says: string;
  /** Its own flags, and those of every command that matter to it. */
  flags: readonly (readonly [flag: string, says: string])[];
  example: string;
}

/** What help says of a setting: Markdown is for the API's documentation. */
const says = (setting: Setting) => {
  const [summary, fallback] = [summaryOf(setting).replaceAll("`", ""), defaultOf(setting)];
  return `${summary.charAt(0).toLowerCase()}${summary.slice(1)}${fallback === "" ? "" : ` (${fallback})`}`;
};
const flagOf = (setting: Setting) => [setting.flag ?? "", says(setting)] as const;

const ALL: readonly Setting[] = [...Object.values(START_SETTINGS), ...Object.values(SETTINGS)];
const WITH_FLAG = ALL.filter(({ flag }) => flag !== undefined);
const VARIABLE_ONLY = ALL.filter(({ flag, variable }) => flag === undefined && variable !== undefined);

const DATA_DIRECTORY = flagOf(START_SETTINGS.dataDirectory);

const COMMANDS: readonly Command[] = [
  {
    name: "serve",
    usage: "[flags]",
    says: "serve the API",
    flags: WITH_FLAG.map(flagOf),
    example: "cairn serve --data-dir /var/lib/cairn --port 8700",
  },
  {
    name: "keys create",
    usage: "[flags]",
    says: "make an API key and print it",
    flags: [
      ["--name TEXT", "what it is for"],
      ["--scopes LIST", "read, write, admin, separated by commas (read,write)"],
      ["--tier TIER", "free, pro, enterprise (enterprise)"],
      ["--expires TIME", "when it ends: a while from now such as 90d or 12h, or a time such as 2027-01-31T00:00:00Z (never)"],
      ["--rate-limit N/BURST", "requests per minute, and how many may come at once after a pause; for the tier enterprise (60000/120000)"],
      DATA_DIRECTORY,
    ],
    example: "cairn keys create --name agent --expires 90d --rate-limit 600/1200",
  },
  {
    name: "keys list",
    usage: "",
    says: "list the API keys; beside a server, their last use is as of a minute ago",
    flags: [DATA_DIRECTORY],
    example: "cairn keys list --data-dir /var/lib/cairn",
  },
  {
    name: "keys roll",
    usage: "ID [--overlap 24h]",
    says: "replace one; it keeps working for that long (at most 7d; 0: ends at once)",
    flags: [["--overlap TIME", "how long the old one keeps working: at most 7d, 0 ends it at once (24h)"], DATA_DIRECTORY],
    example: "cairn keys roll key_0VQk39zYxWvU --overlap 2h",
  },
  {
    name: "keys revoke",
    usage: "ID [--force]",
    says: "revoke one, at once",
    flags: [["--force", "also the last admin key that works"], DATA_DIRECTORY],
    example: "cairn keys revoke key_0VQk39zYxWvU",
  },
  {
    name: "backup",
    usage: "FILE [--force]",
    says: "write the whole store to one file, while it is served too",
    flags: [["--force", "replace FILE if it is there"], DATA_DIRECTORY],
    example: "cairn backup /backups/today --data-dir /var/lib/cairn",
  },
  {
    name: "restore",
    usage: "FILE [--force]",
    says: "put a backup in the place of the store",
    flags: [["--force", "replace the store that is there"], DATA_DIRECTORY],
    example: "cairn restore /backups/today --data-dir /var/lib/cairn --force",
  },
  {
    name: "export",
    usage: "[FILE] [flags]",
    says: "write everything as lines of JSON, while it is served too",
    flags: [
      ["--salvage", "of a damaged store: write what can be read, and count what is left out"],
      ["--with-secrets", "those of webhooks and of the embedding provider too"],
      ["--force", "replace FILE if it is there"],
      DATA_DIRECTORY,
    ],
    example: "cairn export all.jsonl --data-dir /var/lib/cairn",
  },
  {
    name: "import",
    usage: "[FILE]",
    says: "read an export into a data directory without a store",
    flags: [DATA_DIRECTORY],
    example: "cairn import all.jsonl --data-dir ./copy",
  },
  {
    name: "health",
    usage: "[--url URL]",
    says: "ask the server whether it is ready; ends with 1 if it is not",
    flags: [
      ["--url URL", "where it is (the server of --host and --port on this machine)"],
      flagOf(START_SETTINGS.host),
      flagOf(START_SETTINGS.port),
    ],
    example: "cairn health --url https://cairn.example.com",
  },
  {
    name: "doctor",
    usage: "[--fix]",
    says: "check every page, row, index and counter, and mend what records say",
    flags: [["--fix", "mend what the records say how to mend; no server may have the directory"], DATA_DIRECTORY],
    example: "cairn doctor --fix --data-dir /var/lib/cairn",
  },
  {
    name: "rebuild-index",
    usage: "",
    says: "build the vector index again, where there are vectors enough for one",
    flags: [DATA_DIRECTORY],
    example: "cairn rebuild-index --data-dir /var/lib/cairn",
  },
  { name: "version", usage: "", says: "print the version", flags: [], example: "cairn version" },
];

const lines = (items: readonly string[]) => items.join("\n");

/** What is said of the command that these words begin with; of all of them when it is none. */
export function helpOn(words: readonly string[]): string {
  const [first = "", second = ""] = words;
  const exact = COMMANDS.filter(({ name }) => name === first || name === `${first} ${second}`);
  const found = exact.length > 0 ? exact : COMMANDS.filter(({ name }) => name.startsWith(`${first} `));
  return found.length === 0 ? help() : lines(found.map(describe));
}

function describe({ name, usage, says, flags, example }: Command): string {
  const width = Math.max(...flags.map(([flag]) => flag.length)) + 2;
  return lines([
    `cairn ${name} ${usage}`.trimEnd(),
    `  ${says}`,
    ...(flags.length === 0 ? [] : ["", "Flags:", ...flags.map(([flag, meaning]) => `  ${flag.padEnd(width)}${meaning}`)]),
    "",
    `Example: ${example}`,
    "",
  ]);
}

function help(): string {
  return lines([
    `cairn ${version}: sessions with versioned state, turns, memory and an audit trail for AI agents`,
    "",
    ...COMMANDS.map(({ name, usage, says }) => `${`  cairn ${name} ${usage}`.padEnd(38)}${says}`),
    "",
    "cairn COMMAND --help says more of one.",
    "",
    "Flags of every command, each with its environment variable:",
    ...WITH_FLAG.map((setting) => `${`  ${setting.flag}`.padEnd(26)}${setting.variable?.padEnd(25)} ${says(setting)}`),
    "",
    "In the environment only:",
    ...VARIABLE_ONLY.map((setting) => `  ${setting.variable?.padEnd(30)}${says(setting)}`),
    "",
  ]);
}
