/**
 * Which test runs each block of code on a page, or why none does. A block is named by how it begins.
 *
 * @module
 */

export type Held = { readonly file: string; readonly test: string } | { readonly because: string };

const by = (file: string, test: string): Held => ({ file: `test/${file}`, test });
const none = (because: string): Held => ({ because });

const CLONE = by("process/readme.test.ts", "who does all that the pages say in a clean clone");
const CLIENT = by("packaging/client.test.ts", "each example of its page that ends by itself runs as it is printed");
const PYTHON = by("python/python.test.ts", "each example of the page of the Python client");
const WHEEL = by("python/python.test.ts", "the wheel and its sources install into an empty environment");
const TYPES = by("packaging/client.test.ts", "its types fit its page");
const ADAPTERS = by("packaging/client.test.ts", "the example of ${name} prints what it says");
const QUICKSTART = by("process/pages.test.ts", "the quick start works line by line");
const INSTALL = by("packaging/release.test.ts", "what the page on installing says installs");
const MCP = by("process/pages.test.ts", "what the page on MCP has a client set up connects");
const SETUP = by("process/setup.test.ts", "the file of every agent has the server");
const ROOT_RIGHTS = none("it changes users and services of the machine; test/process/deploy.test.ts reads the unit");
const DOCKER = none("it needs Docker; test/process/deploy.test.ts reads the Dockerfile and the compose file");
const CLAUDE = none("it needs Claude Code; test/process/mcp.test.ts runs the command that it adds, and MCP over HTTP has tests of its own");

/** Decisions and the architecture are not among them: they have drawings, and no commands. */
export const BLOCKS: Readonly<Record<string, Readonly<Record<string, Held>>>> = {
  "README.md": {
    "scripts/start ": CLONE,
    "KEY=crn_…": by("process/readme.test.ts", "the first conversation of the README works as it is printed"),
    'import { Cairn } from "cairn-client";\n\n': by("packaging/client.test.ts", "the examples of the README run as they are printed"),
    'import { Cairn } from "cairn-client";\nimport { CairnSaver }': by(
      "packaging/client.test.ts",
      "the examples of the README run as they are printed",
    ),
    "cairn setup": SETUP,
  },
  "src/adapters/README.md": { "import {": ADAPTERS },
  "src/client/README.md": {
    "scripts/start\n": CLONE,
    "scripts/package-client": CLONE,
    'import { Cairn } from "cairn-client";\n\n': by(
      "packaging/client.test.ts",
      "the first conversation of its page works as it is printed",
    ),
    // One of them has events come until its loop is left: its types are checked.
    'import { Cairn } from "cairn-client";\nconst': CLIENT,
    "import { Cairn, CairnError }": CLIENT,
    "import { verifyWebhook": TYPES,
  },
  "src/docs/contribute/how-it-works.md": { "rows of sessions": none("it is a table of figures, which scripts/bench measures") },
  "src/docs/contribute/release.md": {
    "scripts/release 0.1.0": none("it takes minutes; test/packaging/ has what it makes, and its --verify the rest"),
  },
  "src/docs/contribute/start-here.md": { "scripts/start ": CLONE },
  "src/docs/contribute/testing.md": { "scripts/test ": none("it is the gate that runs this test, and what takes longer than the gate") },
  "src/docs/guide/agent-loop.md": {
    "import { createInterface }": by("process/readme.test.ts", "the agent loop of the documentation asks a model"),
  },
  "src/docs/guide/coding-agents.md": { "cairn setup ": SETUP },
  "src/docs/guide/concepts.md": {
    "# Context": by(
      "context-budget.test.ts",
      "the text of a context is a block with a line for each record, and the messages say the same",
    ),
  },
  "src/docs/guide/import.md": {
    "cairn import ": by("process/import.test.ts", "transcripts of Claude Code become sessions and turns of their times"),
  },
  "src/docs/guide/mcp.md": {
    "claude mcp add": CLAUDE,
    '{ "mcpServers": { "cairn": { "command"': MCP,
    '{ "mcpServers": { "cairn": { "url"': MCP,
    '{\n  "inputs"': MCP,
    "[mcp_servers.cairn]": MCP,
  },
  "src/docs/guide/oauth.md": {
    "CAIRN_PUBLIC_URL=": none("it needs a name with a certificate, which no test has"),
    "ok      The address": by("process/oauth-doctor.test.ts", "it says where the way ends behind a proxy that ${name}"),
  },
  "src/docs/guide/programs.md": {
    "scripts/package-client": CLONE,
    "const headers": by("process/readme.test.ts", "the client of a page works as it is printed"),
    "import json": by("process/readme.test.ts", "the Python client of a page works as it is printed"),
  },
  "src/docs/guide/quickstart.md": {
    "scripts/start\n": CLONE,
    "KEY=crn_…": QUICKSTART,
    "S=$(c sessions": QUICKSTART,
    "c memory": QUICKSTART,
    'c "sessions/$S/': QUICKSTART,
  },
  "src/docs/guide/search.md": {
    "ollama pull": by("process/pages.test.ts", "another embedding is set as its page says"),
  },
  "src/docs/guide/filters.md": { "{": by("documents.test.ts", "a filter compares members by their paths") },
  "src/docs/guide/webhooks.md": {
    "c webhooks": by("process/pages.test.ts", "settings are changed and a webhook is created as their pages say"),
    "import { createHmac": by("process/readme.test.ts", "the check of webhooks in the documentation takes what Cairn sends"),
  },
  "src/docs/skill/SKILL.md": {
    "curl -fsS": by("packaging/client.test.ts", "the skill for agents has its form, fits into 2 KB, and its examples run"),
    "import { Cairn }": by("packaging/client.test.ts", "the skill for agents has its form, fits into 2 KB, and its examples run"),
  },
  "src/docs/operate/backup-restore.md": {
    "cairn backup /backups/today": by(
      "process/pages.test.ts",
      "a store is backed up, restored, exported, imported and checked as the page says",
    ),
    "curl -sX PATCH localhost": by(
      "backup-schedule.test.ts",
      "one is made when it is due, the newest are kept, and those that were asked for stay",
    ),
    "export AWS_ACCESS_KEY_ID": by(
      "backup-copies.test.ts",
      "the newest backup is copied whole to a bucket, old copies go, and a restore and a drill find it there",
    ),
    "cairn restore s3:": by(
      "backup-copies.test.ts",
      "the newest backup is copied whole to a bucket, old copies go, and a restore and a drill find it there",
    ),
    "0 3 * * *": none("it is a line of cron; the command is run with another name"),
    "curl -sX POST localhost": by("process/pages.test.ts", "a backup is made and downloaded over HTTP as the page says"),
  },
  "src/docs/operate/commands.md": {
    "scripts/build ": none("the executable of the tests is made by it; the path of the data is one of root's"),
    "cairn serve ": by("process/pages.test.ts", "every command of the page exists, and the page has every command"),
  },
  "src/docs/operate/benchmarks.md": {
    "cairn bench recall": by("process/bench-recall.test.ts", "a file of something else is no file of results, and --force replaces it"),
  },
  "src/docs/operate/configuration.md": {
    "c settings": by("process/pages.test.ts", "settings are changed and a webhook is created as their pages say"),
  },
  "src/docs/operate/damage.md": {
    "cairn export left.jsonl": by("process/pages.test.ts", "what is left of a store is saved as the page says"),
  },
  "src/docs/operate/deploy.md": {
    "sudo install": ROOT_RIGHTS,
    "docker build": DOCKER,
    "cairn serve --domain": by("process/certificates.test.ts", "a server gets a certificate for its domains"),
    "[Service]": ROOT_RIGHTS,
  },
  "src/docs/operate/install.md": {
    "scripts/start\n": CLONE,
    "npx cairn-server": none("nothing is published; test/packaging/ installs the package from a registry of its own"),
    'curl -fsSL "$RELEASE/install.sh"': INSTALL,
    "curl -fsSL --remote-name-all": INSTALL,
    'curl -fsSLO "$RELEASE/cairn_': by(
      "packaging/deb.test.ts",
      "it is installed, started, upgraded, removed and purged, and the data stay",
    ),
    'docker build -t cairn "$RELEASE': none("it needs Docker, Homebrew and a published release"),
  },
  "src/docs/operate/postgres.md": {
    "docker build": DOCKER,
    "cairn export all.jsonl --with-secrets": by(
      "process/database.test.ts",
      "what was exported from a directory is imported into a database",
    ),
  },
  "src/docs/operate/secrets.md": {
    "{": by(
      "secrets.test.ts",
      "with redact the text is stored without its secrets at every way in, and the answer says where and what they were",
    ),
  },
  "src/docs/reference/audit-format.md": Object.fromEntries(
    ["leaf   = SHA-256", "cairn audit chain 1", "cairn audit head 1", "cairn audit removals 1"].map((start) => [
      start,
      by("python/python.test.ts", "a program of 60 lines verifies the traces of an export"),
    ]),
  ),
  "src/docs/reference/benchmark-format.md": {
    '{\n  "corpora"': by("unit/cli/bench-formats.test.ts", "the example of the specification is read as it says"),
  },
  "src/docs/reference/export-format.md": {
    '{"cairn_export":1': by("process/pages.test.ts", "an export has the lines that its specification has"),
  },
  "src/docs/reference/keys-and-scopes.md": {
    "cairn keys create": by("process/pages.test.ts", "keys are made, listed, rolled and revoked as the page says"),
  },
  "src/python/README.md": {
    "scripts/start\n": CLONE,
    "scripts/package-python": WHEEL,
    'from cairn_client import Cairn\n\ncairn = Cairn("crn_…", ': WHEEL,
    "import asyncio": PYTHON,
    'from cairn_client import Cairn\n\ncairn = Cairn("crn_…")\n': PYTHON,
    "from cairn_client import OMIT": PYTHON,
    "from cairn_client import Cairn\n\ndocuments": PYTHON,
    "import json": PYTHON,
    "from typing import TypedDict": PYTHON,
    "from claude_agent_sdk import ClaudeAgentOptions": PYTHON,
    "from strands.memory import": PYTHON,
    "from langchain_core.messages import": PYTHON,
    "from llama_index.core.llms import": PYTHON,
  },
  "test/README.md": { "scripts/mutate": none("it takes an hour or two; test/mutations.test.ts holds that every mutation applies") },
};
