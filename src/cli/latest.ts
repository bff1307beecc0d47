/**
 * The newest release, as the file `latest.json` of the releases says, and how to get it.
 *
 * Cairn does not replace its own file: under systemd it may not write there, and what npm, Homebrew or an image has installed is
 * theirs to replace. So it says the command that fits how it was installed.
 *
 * @module
 */
import { get as getOverHttp, type IncomingMessage } from "node:http";
import { get as getOverHttps } from "node:https";
import { dirname, join } from "node:path";
import { systemReason } from "../lib/system-errors.ts";

export interface Latest {
  readonly version: string;
  /** The day it was released, as in `2027-01-31`. */
  readonly date: string;
  /** The schema version of its store. */
  readonly schema: number;
}

const FILE = "latest.json";
const TIMEOUT_MS = 10_000;
const LENGTH_MAX = 64 * 1024;
const REDIRECTS_MAX = 5;
const VERSION = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Asks for the newest release. The request says nothing of this installation.
 *
 * @param releases - ends with a slash
 * @throws {Error} when it cannot be had, or is no such file
 */
export async function fetchLatest(releases: URL): Promise<Latest> {
  const url = new URL(FILE, releases);
  let text: string;
  try {
    text = await fetchText(url);
  } catch (error) {
    throw new Error(`${url.href} cannot be read: ${systemReason(error)}.`, { cause: error });
  }
  const latest = parseLatest(text);
  if (latest === undefined) throw new Error(`${url.href} does not say which version is the newest.`);
  return latest;
}

/** Content of the file; undefined when it is no such file. It may have more in it. */
function parseLatest(text: string): Latest | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { version, date, schema } = value as Partial<Record<keyof Latest, unknown>>;
  if (typeof version !== "string" || !VERSION.test(version)) return undefined;
  if (typeof date !== "string" || !DATE.test(date)) return undefined;
  return Number.isSafeInteger(schema) ? { version, date, schema: schema as number } : undefined;
}

async function fetchText(url: URL): Promise<string> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  let from = url;
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const answer = await request(from, signal);
    const { statusCode: status = 0, headers } = answer;
    if (status === 200) return readText(answer);
    answer.destroy();
    const next = status >= 300 && status < 400 ? URL.parse(headers.location ?? "", from.href) : null;
    if (next === null) throw new Error(`it answered ${status}`);
    // One who can change the answer on its way must not get there by a redirect.
    if (next.protocol !== "https:" && next.protocol !== from.protocol) throw new Error(`it leads to ${next.origin}`);
    from = next;
  }
  throw new Error("it leads on and on");
}

function request(url: URL, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const get = url.protocol === "https:" ? getOverHttps : getOverHttp;
    get(url, { signal, agent: false }, resolve).on("error", (error) =>
      reject(signal.aborted ? new Error(`no answer within ${TIMEOUT_MS / 1000} s`) : error),
    );
  });
}

async function readText(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    if ((length += chunk.length) > LENGTH_MAX) throw new Error(`it has more than ${LENGTH_MAX} bytes`);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** @returns above 0 when the first is the newer one, 0 when they are the same */
export function compareVersions(first: string, second: string): number {
  const [a, b] = [first, second].map((version) => VERSION.exec(version)?.slice(1).map(Number) ?? []) as [number[], number[]];
  return a.map((number, i) => number - (b[i] ?? 0)).find((difference) => difference !== 0) ?? 0;
}

export interface Installation {
  /** The path of this executable. */
  readonly executable: string;
  /** The directory of the user. */
  readonly home: string;
  readonly isContainer: boolean;
}

/** The one command that replaces this installation by another version. @param releases - ends with a slash */
export function upgradeCommand(version: string, releases: URL, { executable, home, isContainer }: Installation): string {
  const packaged = `cairn-server@${version}`;
  if (executable.includes("/_npx/")) return `npx ${packaged} serve`;
  if (executable.includes("/.bun/install/global/")) return `bun add --global ${packaged}`;
  if (executable.includes("/lib/node_modules/")) return `npm install --global ${packaged}`;
  if (executable.includes("/node_modules/")) return `npm install ${packaged}`;
  if (executable.includes("/Cellar/")) return "brew upgrade cairn";
  const published = (name: string) => quoted(new URL(name, releases).href);
  if (isContainer) return `docker build --pull --tag cairn ${published("Dockerfile")}`;
  const directory = dirname(executable);
  const into = directory === join(home, ".local/bin") ? "" : `CAIRN_INSTALL_DIR=${quoted(directory)} `;
  return `curl -fsSL ${published("install.sh")} | ${into}sh`;
}

/** As one word of a shell. */
function quoted(text: string): string {
  return /^[\w.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
