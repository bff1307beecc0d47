/**
 * A Chromium for the tests, from the package `@sparticuz/chromium`: it needs no browser on the machine and no rights there. It is
 * unpacked once, into `.tools`, which git ignores.
 *
 * @module
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { devDependencies } from "../../package.json";

const root = dirname(dirname(import.meta.dir));
const source = join(root, "node_modules/@sparticuz/chromium/bin");
const directory = join(root, ".tools", `chromium-${devDependencies["@sparticuz/chromium"]}`);

/**
 * Without a locale of the machine it would call its language `en-US@posix`, which `Intl` refuses. The libraries are those that a
 * small system lacks (NSS).
 */
const START = `#!/bin/sh
here=$(dirname "$0")
export LD_LIBRARY_PATH="\${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$here/lib" LANG=en_US.UTF-8 FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/chromium" "$@"
`;

/** The font of the package for text, also on a machine without fonts. */
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${directory}/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${directory}/fonts-cache</cachedir>
  <alias><family>sans-serif</family><prefer><family>Open Sans</family></prefer></alias>
  <alias><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`;

let unpacked: Promise<string> | undefined;

/** Returns a command that starts it. */
export function chromium(): Promise<string> {
  return (unpacked ??= unpack());
}

/** Says why it does not start on this machine; undefined where it does. */
export async function chromiumProblem(): Promise<string | undefined> {
  const here = `${process.platform}-${process.arch}`;
  if (here !== "linux-x64") return `the browser of the tests is one for linux-x64, and this is ${here}`;
  const { exitCode, stderr } = Bun.spawnSync([await chromium(), "--version"], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  return exitCode === 0 ? undefined : `the browser of the tests does not start: ${stderr.toString().trim().split("\n").at(-1)}`;
}

async function unpack(): Promise<string> {
  const command = join(directory, "chromium.sh");
  if (existsSync(command)) return command;
  const bytes = async (name: string) => brotliDecompressSync(await Bun.file(join(source, name)).bytes());
  mkdirSync(dirname(directory), { recursive: true });
  const scratch = mkdtempSync(`${directory}-`);
  try {
    for (const archive of ["al2023.tar.br", "fonts.tar.br"]) await new Bun.Archive(await bytes(archive)).extract(scratch);
    writeFileSync(join(scratch, "chromium"), await bytes("chromium.br"), { mode: 0o755 });
    writeFileSync(join(scratch, "fonts.conf"), FONTS);
    writeFileSync(join(scratch, "chromium.sh"), START, { mode: 0o755 });
    renameSync(scratch, directory);
  } catch (error) {
    // Another run may have been faster.
    if (!existsSync(command)) throw error;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return command;
}
