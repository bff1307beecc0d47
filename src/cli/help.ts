/**
 * Texts of `cairn --help` and `cairn COMMAND --help`.
 *
 * @module
 */
import { version } from "../lib/version.ts";
import { defaultOf, summaryOf } from "../settings/described.ts";
import { SETTINGS, START_SETTINGS, type Setting } from "../settings/schema.ts";

interface Command {
  says: string;
  /** Its own flags. */
  flags?: Readonly<Record<string, string>>;
  /** The flags of cairn serve that matter to it; unless given, where the store is. */
  settings?: readonly Setting[];
  example: string;
}

const START: readonly Setting[] = Object.values(START_SETTINGS);
const WHERE: readonly Setting[] = [START_SETTINGS.dataDirectory, START_SETTINGS.database];
const WITH_FLAG = START.filter(({ flag }) => flag !== undefined);

const SERVER = {
  "--url URL": "address of a server, which is trusted as it is (the server of the data directory)",
  "--host ADDRESS": "ask at this address instead of the one that the server wrote into the data directory",
  "--port N": "and at this port",
};

/** By how each is called. */
const COMMANDS: Readonly<Record<string, Command>> = {
  "serve [flags]": { says: "serve the API", settings: WITH_FLAG, example: "cairn serve --data-dir /var/lib/cairn --port 8700" },
  "mcp [flags]": {
    says: "serve MCP on standard input and output, for a client that starts it",
    flags: {
      "--user NAME": "the user of the memories and sessions: a default, not a restriction",
      "--agent NAME": "the agent of the session, also a default (mcp)",
      "--session ID": "the session to use, instead of the one of agent and user",
      "--hooks": "open the store before the first call, for cairn hook; the user is the one who is logged in, unless given",
      "--tools SET": "all, or memory: the six tools of memories (all)",
      "--url URL": "the server to ask, with the key in CAIRN_API_KEY, instead of a data directory (CAIRN_URL)",
      "--data-dir DIR": "the data directory, shared with other cairn mcp (cairn in XDG_DATA_HOME, or in ~/.local/share)",
    },
    settings: [START_SETTINGS.database, START_SETTINGS.logLevel],
    example: "cairn mcp --user ada --agent my-agent",
  },
  "setup [AGENT…] [flags]": {
    says: "enter Cairn in the files of coding agents; alone it lists them and what would change",
    flags: {
      "--project": "in the files of the project that is the working directory, without a user or a path",
      "--mcp-only": "without hooks",
      "--no-capture": "with hooks that show memories, and keep no turns",
      "--dry-run": "show the changes only",
      "--remove": "take out what is Cairn's, and nothing else",
      "--yes": "do not ask",
      "--user NAME": "the user of the memories (the one who is logged in)",
      "--url URL": "the server to ask, with the key in CAIRN_API_KEY, instead of a data directory",
      "--data-dir DIR": "the data directory (that of cairn mcp)",
    },
    settings: [],
    example: "cairn setup claude-code codex",
  },
  "hook [AGENT | status | pause | resume]": {
    says: "run by coding agents at the events of a conversation; says what it last did, and switches it off and on",
    flags: {
      "--user NAME": "the user of the memories (the one who is logged in)",
      "--no-capture": "keep no turns",
      "--event NAME": "the event, for an agent whose input does not name it (Copilot CLI)",
      "--wait MS":
        "the longest time for an event (150 for a prompt, 800 for the start of a session, 2000 after an answer, or 500 in an agent that waits)",
      "--url URL": "the server to ask, with the key in CAIRN_API_KEY, instead of that of a data directory (CAIRN_URL)",
      "--data-dir DIR": "the data directory (that of cairn mcp)",
    },
    settings: [],
    example: "cairn hook status",
  },
  "keys create [flags]": {
    says: "make an API key and print it, once",
    flags: {
      "--name TEXT": "what it is for",
      "--scopes LIST": "read, write, admin, separated by commas (read,write)",
      "--tier TIER": "free, pro, enterprise (enterprise)",
      "--user ID": "bind it to a user: it sees and changes only that user's records (unbound)",
      "--agent ID": "bind it to an agent in the same way (unbound)",
      "--expires TIME": "when it expires: after a time such as 90d or 12h, or at one such as 2027-01-31T00:00:00Z (never)",
      "--rate-limit N/BURST": "requests per minute, and how many at once after a pause; tier enterprise only (60000/120000)",
    },
    example: "cairn keys create --name agent --expires 90d --rate-limit 600/1200",
  },
  "keys list [--json]": {
    says: "list the API keys; a running server saves their last use once a minute",
    flags: { "--json": "as an array of JSON, with the members that the API shows" },
    example: "cairn keys list --data-dir /var/lib/cairn",
  },
  "keys roll ID [--overlap 24h]": {
    says: "replace an API key; the old one keeps working for the overlap",
    flags: { "--overlap TIME": "how long the old one keeps working: at most 7d, 0 ends it at once (24h)" },
    example: "cairn keys roll key_0VQk39zYxWvU --overlap 2h",
  },
  "keys revoke ID [--force]": {
    says: "revoke an API key, at once",
    flags: { "--force": "revoke it even if it is the last valid admin key" },
    example: "cairn keys revoke key_0VQk39zYxWvU",
  },
  "backup FILE [--force]": {
    says: "write the whole store to one file, also while a server is running",
    flags: {
      "--force": "replace FILE if it is there",
      "--drill": "write nothing: restore FILE, or the newest backup of the schedule, into a scratch directory, check it and remove it",
    },
    settings: [START_SETTINGS.dataDirectory],
    example: "cairn backup /backups/today --data-dir /var/lib/cairn",
  },
  "restore FILE [--force]": {
    says: "replace the store with a backup: a file, or s3://BUCKET/PREFIX for the newest there",
    flags: { "--force": "replace the store that is there" },
    settings: [START_SETTINGS.dataDirectory],
    example: "cairn restore /backups/today --data-dir /var/lib/cairn --force",
  },
  "export [FILE] [flags]": {
    says: "write all records as lines of JSON, also while a server is running",
    flags: {
      "--salvage": "of a damaged store: write what can be read, and count what cannot",
      "--with-secrets": "include the secrets of webhooks and of the embedding provider",
      "--force": "replace FILE if it is there",
    },
    example: "cairn export all.jsonl --data-dir /var/lib/cairn",
  },
  "import [FILE]": {
    says: "read an export into a data directory without a store, or a database without records",
    example: "cairn import all.jsonl --data-dir ./copy",
  },
  "import --from SOURCE [PATH…] [flags]": {
    says: "take conversations and memories of another program over, each once: claude-code, codex, chatgpt, claude-ai, mem0, memory-files",
    flags: {
      "--dry-run": "say what would be imported, and store nothing",
      "--since TIME": "only turns since then: a time such as 90d, or one such as 2026-01-31",
      "--project DIR": "only conversations in this directory, or below",
      "--update": "replace memories that have changed in the source; turns stay as they are",
      "--strict": "stop at the first record that does not fit, instead of skipping it",
      "--report FILE": "write each record that was skipped to FILE, as lines of JSON",
      "--remove": "remove the sessions and memories that earlier imports have made of the same files",
      "--user NAME": "the user of conversations and memories (the one who is logged in)",
      "--url URL": "the server to ask, with the key in CAIRN_API_KEY, instead of a data directory (CAIRN_URL)",
      "--data-dir DIR": "the data directory (that of cairn mcp)",
    },
    settings: [START_SETTINGS.database],
    example: "cairn import --from claude-code --dry-run",
  },
  "dashboard [--url URL]": {
    says: "print a link that signs in to the dashboard of a running server; it works once, within ten minutes",
    flags: SERVER,
    settings: WHERE,
    example: "cairn dashboard --data-dir /var/lib/cairn",
  },
  "health [--url URL]": {
    says: "ask the server whether it is ready; ends with 1 if it is not",
    flags: SERVER,
    settings: [START_SETTINGS.dataDirectory],
    example: "cairn health --url https://cairn.example.com",
  },
  "doctor [--fix] [--oauth URL]": {
    says: "check every page, row, index and counter; --fix repairs what can be derived from the records",
    flags: {
      "--fix": "repair it; no server of the data directory may be running",
      "--oauth URL":
        "go the way of an application to the server at this address instead, and say where it ends (CAIRN_API_KEY: an admin key of it)",
    },
    example: "cairn doctor --fix --data-dir /var/lib/cairn",
  },
  "audit verify [FILE] [flags]": {
    says: "check that the traces of the store, or of the export FILE, are as they were signed; ends with 1 if one was changed, removed, moved or added",
    flags: {
      "--public-key KEY":
        "trust the chains of this key, or of several with commas (that of the data directory; all, of a database or a file)",
      "--head FILE": "compare with heads that were kept elsewhere, as GET /v1/audit/head answers them",
    },
    example: "cairn audit verify --data-dir /var/lib/cairn",
  },
  "rebuild-index": {
    says: "rebuild the vector index, if there are enough vectors for one",
    settings: [START_SETTINGS.dataDirectory],
    example: "cairn rebuild-index --data-dir /var/lib/cairn",
  },
  "selftest [--dir DIR]": {
    says: "check on this machine, in a minute and in a temporary directory, what the guarantees say: after kill -9 nothing is lost, a backup can be restored, an erased user is in no file, questions find what answers them",
    flags: { "--dir DIR": "directory on the disk to try, in which the temporary one is made (that of the system)" },
    settings: [],
    example: "cairn selftest --dir /var/lib",
  },
  "bench recall FILE… [flags]": {
    says: "ask the questions of a benchmark (LongMemEval, LoCoMo, REALTALK, BEAM, or a plain form) and say what is found, on a temporary store",
    flags: {
      "--format NAME": "longmemeval, locomo, realtalk, beam or plain (found in the file)",
      "--store-as KIND": "memories; or turns, found by words or by meaning (memories)",
      "--limit N": "results that each search asks for, at most 50 (50)",
      "--questions N": "ask the first N questions only (all)",
      "--concurrency N": "questions asked at once (1)",
      "--results FILE": "write each question with what was found as a line of JSON; a run that was killed continues there",
      "--force": "replace the results in FILE",
      "--json": "print the figures as JSON",
      "--dir DIR": "directory in which the temporary store is made (that of the system)",
      "--url URL": "ask that server instead, with the key in CAIRN_API_KEY; what is stored there is removed again",
    },
    settings: [],
    example: "cairn bench recall locomo10.json --results locomo.jsonl",
  },
  "bench load [flags]": {
    says: "measure the loop of an agent, in four requests and as a step in two: requests a second, latencies, processor time of the server",
    flags: {
      "--connections N,N": "numbers of connections, one after another (1,16,64)",
      "--sessions N": "sessions to work on, with 20 turns and 10 memories each (100)",
      "--seconds N": "measuring time of each (6)",
      "--json": "print the figures as JSON",
      "--dir DIR": "directory on the disk to measure, in which the temporary store is made (that of the system)",
      "--url URL": "ask that server instead, with the key in CAIRN_API_KEY; sessions that are stored there are deleted again",
    },
    settings: [],
    example: "cairn bench load --dir /var/lib",
  },
  "version [--native] [--check]": {
    says: "print the version, what it was built for, and its commit",
    flags: {
      "--native": "try the native add-ons; ends with 1 if they do not work",
      "--check": "ask whether there is a newer version, and say how to get it",
      "--url URL": "address of the releases (that of this one)",
    },
    settings: [],
    example: "cairn version --check",
  },
};

/** Help on the command that these words begin with; on all commands when there is none. */
export function helpOn([first = "", second = ""]: readonly string[]): string {
  const isCalled = (usage: string, name: string) => `${usage} `.startsWith(`${name} `);
  const calls = Object.keys(COMMANDS);
  const exact = calls.filter((usage) => isCalled(usage, `${first} ${second}`));
  const found = exact.length > 0 ? exact : calls.filter((usage) => isCalled(usage, first));
  return found.length === 0 || first === "" ? help() : found.map(describe).join("\n");
}

function describe(usage: string): string {
  const { says, flags = {}, settings = WHERE, example } = COMMANDS[usage] as Command;
  const all = [...Object.entries(flags), ...settings.map((setting) => [setting.flag ?? "", sayOf(setting)] as const)];
  const width = Math.max(...all.map(([flag]) => flag.length)) + 2;
  const listed = all.length === 0 ? [] : ["", "Flags:", ...all.map(([flag, meaning]) => `  ${flag.padEnd(width)}${meaning}`)];
  return [`cairn ${usage}`, `  ${says}`, ...listed, "", `Example: ${example}`, ""].join("\n");
}

/** Help on a setting: Markdown is for the API's documentation. */
function sayOf(setting: Setting): string {
  const [summary, fallback] = [summaryOf(setting).replaceAll("`", ""), defaultOf(setting)];
  return `${summary.charAt(0).toLowerCase()}${summary.slice(1)}${fallback === "" ? "" : ` (${fallback})`}`;
}

function help(): string {
  const width = Math.max(...Object.keys(COMMANDS).map(({ length }) => length)) + 2;
  return [
    `cairn ${version}: sessions with versioned state, turns, memory and an audit trail for AI agents`,
    "",
    ...Object.entries(COMMANDS).map(([usage, { says }]) => `  cairn ${usage.padEnd(width)}${says}`),
    "",
    "cairn COMMAND --help describes one command.",
    "",
    "Flags of cairn serve, each with its environment variable. Other commands take them too, and use what matters to them, such as --data-dir:",
    ...WITH_FLAG.map((setting) => `${`  ${setting.flag}`.padEnd(26)}${setting.variable?.padEnd(25)} ${sayOf(setting)}`),
    "",
    "Environment variables without a flag:",
    ...variablesOf(START.filter(({ flag }) => flag === undefined)),
    "",
    "Environment variables of settings that PATCH /v1/settings can change, and then overrides, while the server runs:",
    ...variablesOf(Object.values(SETTINGS)),
    "",
  ].join("\n");
}

function variablesOf(settings: readonly Setting[]): string[] {
  return settings.flatMap((setting) => (setting.variable === undefined ? [] : `  ${setting.variable.padEnd(30)}${sayOf(setting)}`));
}
