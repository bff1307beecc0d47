/**
 * Runs tasks: each on its own timer, never twice at once, sooner when woken, and not at all after `stop`.
 *
 * A task that fails is logged and tried again after a pause; it stops nothing else.
 *
 * @module
 */
import { HOUR_MS } from "../lib/duration.ts";
import { describeError, type Log } from "../lib/log.ts";
import type { Task } from "./task.ts";

const RETRY_MS = 5_000;
/** A task looks again by then, whatever it says: the system's clock may have been set. */
const PAUSE_MS_MAX = HOUR_MS;
/** Requests are served between two pieces of a task with more to do. */
const YIELD_MS = 1;

interface Running {
  readonly task: Task;
  timer: ReturnType<typeof setTimeout> | undefined;
  current: Promise<void> | undefined;
  isWoken: boolean;
}

export class Driver {
  readonly #tasks: readonly Running[];
  readonly #log: Log;
  #state: "new" | "started" | "stopped" = "new";

  constructor(tasks: readonly Task[], log: Log) {
    this.#log = log;
    this.#tasks = tasks.map((task) => ({ task, timer: undefined, current: undefined, isWoken: false }));
    for (const running of this.#tasks) running.task.activator?.connect(() => this.#wake(running));
  }

  start(): void {
    if (this.#state !== "new") return;
    this.#state = "started";
    for (const running of this.#tasks) this.#schedule(running, YIELD_MS);
  }

  /** Ends all timers and waits for runs under way. */
  async stop(): Promise<void> {
    this.#state = "stopped";
    for (const { timer } of this.#tasks) clearTimeout(timer);
    await Promise.all(this.#tasks.flatMap(({ current }) => current ?? []));
  }

  #wake(running: Running): void {
    // Waking a task again and again must not put it off.
    if (running.isWoken || this.#state !== "started") return;
    running.isWoken = true;
    if (running.current === undefined) this.#schedule(running, YIELD_MS);
  }

  #schedule(running: Running, ms: number): void {
    if (this.#state !== "started") return;
    clearTimeout(running.timer);
    running.timer = setTimeout(
      () => {
        running.current = this.#run(running);
      },
      Math.min(Math.max(YIELD_MS, ms), PAUSE_MS_MAX),
    );
  }

  async #run(running: Running): Promise<void> {
    running.isWoken = false;
    let ms = RETRY_MS;
    try {
      ms = await running.task.run();
    } catch (error) {
      this.#log.error("task failed", { task: running.task.name, error: describeError(error) });
    }
    running.current = undefined;
    this.#schedule(running, running.isWoken ? YIELD_MS : ms);
  }
}
