/**
 * The package for Debian and Ubuntu, installed by dpkg into a directory that stands for a system. systemd is a stand-in there, as no test
 * may have services of this machine: it notes what it is asked for.
 *
 * @module
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { debName, debPackage } from "../../scripts/packaging/deb.ts";
import { TARGET_NAMES } from "../../scripts/targets.ts";
import { DPKG, needs, ROOT as RIGHTS } from "../support/platform.ts";
import { scratchDirectory, type Scratch } from "../support/process.ts";

const it = needs(DPKG, RIGHTS);
const ROOT = join(import.meta.dir, "../..");

let directory: Scratch;
beforeAll(() => {
  directory = scratchDirectory();
});
afterAll(() => directory[Symbol.dispose]());

/** The package of a version, whose program says that version. */
function packageOf(version: string): string {
  const path = directory.at(debName(version, "linux-x64")!);
  writeFileSync(path, debPackage(version, "linux-x64", Buffer.from(`#!/bin/sh\necho "cairn ${version}"\n`), 1));
  return path;
}

function run(...command: string[]): string {
  const env = { ...process.env, LC_ALL: "C", PATH: `${directory.at("stand-ins")}:${process.env["PATH"]}:/usr/sbin:/sbin` };
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { env, stdin: "ignore" });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
  return stdout.toString();
}

it("a package is what dpkg reads: for each architecture of Debian, with its files and the unit that starts its program", () => {
  expect(TARGET_NAMES.flatMap((target) => debName("1.2.3", target) ?? [])).toEqual(["cairn_1.2.3_amd64.deb", "cairn_1.2.3_arm64.deb"]);
  const path = packageOf("1.2.3");
  const field = (name: string) => run("dpkg-deb", "--field", path, name).trim();
  expect(["Package", "Version", "Architecture"].map(field)).toEqual(["cairn", "1.2.3", "amd64"]);
  const lines = run("dpkg-deb", "--contents", path).trim().split("\n");
  expect(lines.map((line) => line.replace(/^(\S+) (\S+) .* (\S+)$/, "$1 $2 $3")).filter((line) => !line.startsWith("d"))).toEqual([
    "-rwxr-xr-x 0/0 ./usr/bin/cairn",
    "-rw-r--r-- 0/0 ./usr/lib/systemd/system/cairn.service",
    "-rw-r--r-- 0/0 ./usr/share/doc/cairn/copyright",
    "-rw-r--r-- 0/0 ./usr/share/doc/cairn/NOTICE",
  ]);
  const unit = readFileSync(join(ROOT, "scripts/deploy/cairn.service"), "utf8");
  run("dpkg-deb", "--extract", path, directory.at("extracted"));
  const own = readFileSync(directory.at("extracted/usr/lib/systemd/system/cairn.service"), "utf8");
  expect(own).toBe(unit.replace("ExecStart=/usr/local/bin/cairn serve", "ExecStart=/usr/bin/cairn serve"));
  expect(own).toContain("ExecStart=/usr/bin/cairn serve");
});

it("it is installed, started, upgraded, removed and purged, and the data stay", () => {
  const system = directory.at("system");
  for (const path of ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "run/systemd/system", "etc", "stand-ins"])
    mkdirSync(join(path === "stand-ins" ? directory.path : system, path), { recursive: true });
  for (const file of ["var/lib/dpkg/status", "etc/passwd", "etc/group"]) writeFileSync(join(system, file), "");
  const asked = directory.at("asked");
  for (const name of ["systemctl", "useradd"]) {
    writeFileSync(directory.at(`stand-ins/${name}`), `#!/bin/sh\necho "${name} $*" >>"${asked}"\n`);
    chmodSync(directory.at(`stand-ins/${name}`), 0o755);
  }
  const dpkg = (...command: string[]) => {
    writeFileSync(asked, "");
    run("dpkg", `--root=${system}`, "--force-script-chrootless", "--force-depends", `--log=${directory.at("log")}`, ...command);
    return readFileSync(asked, "utf8").trim().split("\n");
  };
  const program = join(system, "usr/bin/cairn");
  const user = `useradd --prefix ${system} --system --home-dir /var/lib/cairn --no-create-home --shell /usr/sbin/nologin cairn`;

  expect(dpkg("--install", packageOf("1.2.3"))).toEqual([user, "systemctl daemon-reload", "systemctl enable --now cairn.service"]);
  expect(run(program)).toBe("cairn 1.2.3\n");
  expect(statSync(program).mode & 0o777).toBe(0o755);

  mkdirSync(join(system, "var/lib/cairn"), { recursive: true });
  writeFileSync(join(system, "var/lib/cairn/data.mdb"), "what agents remember");
  writeFileSync(join(system, "etc/passwd"), "cairn:x:999:999::/var/lib/cairn:/usr/sbin/nologin\n");
  expect(dpkg("--install", packageOf("1.2.4"))).toEqual([
    "systemctl daemon-reload",
    "systemctl daemon-reload",
    "systemctl try-restart cairn.service",
  ]);
  expect(run(program)).toBe("cairn 1.2.4\n");

  expect(dpkg("--remove", "cairn")).toEqual(["systemctl disable --now cairn.service", "systemctl daemon-reload"]);
  expect(existsSync(program)).toBe(false);
  expect(dpkg("--purge", "cairn").filter((line) => line !== "" && line !== "systemctl daemon-reload")).toEqual([]);
  expect(existsSync(join(system, "usr/lib/systemd/system/cairn.service"))).toBe(false);
  expect(readdirSync(join(system, "var/lib/cairn"))).toEqual(["data.mdb"]);
});
