/**
 * A copy of the repository in which a mutation is made and tests are run, so that the sources stay as they are.
 *
 * @module
 */
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Failure } from "../failure.ts";
import { mutate, type Mutation } from "./mutation.ts";

/** Not copied: large, and the same for every mutation. */
const LINKED = ["node_modules", "native"];

export type Outcome = "passed" | "failed" | "timed out";

export interface TestRun {
  readonly outcome: Outcome;
  readonly ms: number;
  readonly output: string;
}

export class Workspace implements Disposable {
  readonly directory: string;
  /** Temporary files of the tests. */
  readonly #scratch: string;
  #running: Bun.Subprocess | undefined;

  constructor(root: string) {
    this.directory = mkdtempSync(join(tmpdir(), "cairn-mutate-"));
    this.#scratch = join(this.directory, ".scratch");
    // The user of PostgreSQL has a directory in it.
    chmodSync(this.directory, 0o711);
    const listed = Bun.spawnSync(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
    if (listed.exitCode !== 0) throw new Failure(`git ls-files failed:\n${listed.stderr.toString()}`);
    for (const file of listed.stdout.toString().split("\0")) {
      if (file === "" || !existsSync(join(root, file))) continue;
      mkdirSync(dirname(join(this.directory, file)), { recursive: true });
      cpSync(join(root, file), join(this.directory, file), { verbatimSymlinks: true });
    }
    for (const name of LINKED) symlinkSync(join(root, name), join(this.directory, name));
  }

  /** Runs `work` while the mutation is in place. */
  async with<Result>(mutation: Mutation, work: () => Promise<Result>): Promise<Result> {
    const path = join(this.directory, mutation.file);
    const source = readFileSync(path, "utf8");
    writeFileSync(path, mutate(source, mutation));
    try {
      return await work();
    } finally {
      writeFileSync(path, source);
    }
  }

  /** Runs one test file until its first failure, and ends whatever it has started. */
  async test(file: string, limitMs: number): Promise<TestRun> {
    rmSync(this.#scratch, { recursive: true, force: true });
    mkdirSync(this.#scratch);
    const startedAt = performance.now();
    // A process group of its own: servers that a test has started end with it.
    const child = Bun.spawn([process.execPath, "test", "--bail", "--timeout", String(limitMs), file], {
      cwd: this.directory,
      env: { ...process.env, TMPDIR: this.#scratch },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      detached: true,
    });
    this.#running = child;
    let isBuffered = false;
    const timer = setTimeout(() => {
      isBuffered = true;
      this.#kill();
    }, limitMs);
    const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
    clearTimeout(timer);
    this.#kill();
    this.#running = undefined;
    const outcome = isBuffered ? "timed out" : code === 0 ? "passed" : "failed";
    return { outcome, ms: performance.now() - startedAt, output: stdout + stderr };
  }

  #kill(): void {
    try {
      if (this.#running !== undefined) process.kill(-this.#running.pid, "SIGKILL");
    } catch {
      // Nothing of it is left.
    }
  }

  [Symbol.dispose](): void {
    this.#kill();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
