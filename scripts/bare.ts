/**
 * A machine with npm and nothing else, for the gate: what Debian calls required, without apt, with Node.js and npm, in a root of its own
 * that is made of the packages of this machine. It has no compiler, PostgreSQL, Python, git or curl. The network is this machine's.
 *
 * @module
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { Failure } from "./failure.ts";

const repository = dirname(import.meta.dir);

/** Nothing runs without it, so no package is called required for it. */
const C_LIBRARY = "libc6";
/** Packages that Debian calls required and that would install others. */
const INSTALLERS = new Set(["apt", "dpkg"]);
const REQUIRED = "${Package} ${Essential} ${Priority}\\n";
const NOT_COPIED = /^\/usr\/share\/(doc|man|locale|info|lintian)\//;
/** Links to directories of the same names in `usr`. */
const MERGED = ["bin", "sbin", "lib", "lib64"];
/** A name that is in no file of its own. */
const CLONE = "clone-on-a-bare-machine";

/** Its arguments are a root and a command, which has mounts and processes of its own: they end with it. */
const ENTER = `mount --bind "$1" "$1"
for name in dev sys; do mount --rbind "/$name" "$1/$name"; done
mount -t proc proc "$1/proc"
exec chroot "$@"`;
const ISOLATED = ["unshare", "--mount", "--pid", "--fork", "--kill-child"];

/**
 * Runs `scripts/test` there, in a clone of the last commit.
 *
 * @returns its exit code
 */
export async function testBare(args: readonly string[]): Promise<number> {
  if (process.getuid?.() !== 0 || Bun.which("dpkg-query") === null)
    throw new Failure("A bare machine is made by root, on Debian or what is made of it.");
  const root = mkdtempSync(join(tmpdir(), "cairn-bare-"));
  try {
    makeRoot(root);
    output("git", "clone", "--quiet", repository, join(root, CLONE));
    const command = ["sh", "-c", `cd /${CLONE} && exec scripts/test "$@"`, "sh", ...args];
    const child = Bun.spawn([...ISOLATED, "sh", "-euc", ENTER, "sh", root, ...command], {
      env: { ...process.env, PATH: "/usr/local/bin:/usr/sbin:/usr/bin", HOME: homedir(), TMPDIR: "/tmp" },
      stdio: ["inherit", "inherit", "inherit"],
    });
    // Nothing less ends `unshare`, and what it has started with it.
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => child.kill("SIGKILL"));
    return await child.exited;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function makeRoot(root: string): void {
  for (const name of ["proc", "dev", "sys", "tmp", homedir()]) mkdirSync(join(root, name), { recursive: true });
  // Other users have a place there, too.
  chmodSync(root, 0o755);
  chmodSync(join(root, "tmp"), 0o1777);
  for (const name of MERGED) {
    mkdirSync(join(root, "usr", name), { recursive: true });
    symlinkSync(join("usr", name), join(root, name));
  }
  const files = [...filesOfRequired(), ...nodeAndNpm()];
  for (const path of [...files, ...commandsAmong(files)]) copy(path, root);
  for (const path of librariesOf(files)) if (!isThere(join(root, real(path)))) copy(path, root, { dereference: true });
  // Configuration of the network, of npm and of the names of users.
  for (const path of ["/etc", "/usr/etc", join(homedir(), ".npmrc")]) if (existsSync(path)) copy(path, root);
}

function filesOfRequired(): string[] {
  const packages = output("dpkg-query", "--show", "--showformat", REQUIRED)
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([name = "", essential, priority]) => (essential === "yes" || priority === "required") && !INSTALLERS.has(name));
  const listed = output("dpkg-query", "--listfiles", C_LIBRARY, ...packages.map(([name = ""]) => name)).split("\n");
  const isFile = (path: string) => path.startsWith("/") && isThere(path) && !lstatSync(path).isDirectory();
  return Array.from(new Set(listed)).filter((path) => isFile(path) && !NOT_COPIED.test(path));
}

function nodeAndNpm(): string[] {
  const commands = ["node", "npm", "npx"].map((name) => Bun.which(name));
  const [node, npm, npx] = commands;
  if (!node || !npm || !npx) throw new Failure("A bare machine is made with the node and npm of this one, and there is none.");
  return [realpathSync(node), npm, npx, dirname(dirname(realpathSync(npm)))];
}

/** Names of commands that Debian gives to one of several packages: `awk`. */
function commandsAmong(files: readonly string[]): string[] {
  const here = new Set(files.map(real));
  return readdirSync("/usr/bin")
    .map((name) => join("/usr/bin", name))
    .filter((path) => lstatSync(path).isSymbolicLink() && readlinkSync(path).startsWith("/etc/alternatives/"))
    .filter((path) => existsSync(path) && here.has(realpathSync(path)));
}

function librariesOf(files: readonly string[]): string[] {
  const programs = files.filter((path) => /\/s?bin\/|\.so\b/.test(path));
  const { stdout } = Bun.spawnSync(["ldd", ...programs], { stderr: "ignore" });
  return Array.from(new Set(Array.from(stdout.toString().matchAll(/(\/\S+) \(0x/g), ([, path = ""]) => path)));
}

/** A link counts, whether or not it leads anywhere: in a root it leads to this machine. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** The path without links to its directory. */
function real(path: string): string {
  return join(realpathSync(dirname(path)), basename(path));
}

function copy(path: string, root: string, { dereference = false } = {}): void {
  cpSync(path, join(root, real(path)), { recursive: true, dereference, verbatimSymlinks: !dereference });
}

function output(...command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stdin: "ignore" });
  if (exitCode !== 0) throw new Failure(`${command.slice(0, 2).join(" ")} ended with ${exitCode}: ${stderr.toString().trim()}`);
  return stdout.toString();
}
