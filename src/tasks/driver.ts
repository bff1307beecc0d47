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
/** However far away a task says its next piece is, it looks again by then: the system's clock may have been set. */
const WAIT_MS_MAX = HOUR_MS;
/** A task with more to do lets requests through between two pieces of its work. */
const YIELD_MS = 1;

export class Driver {
  readonly #tasks = new Map<string, Running>();
  readonly #log: Log;
  #isStarted = false;

  constructor(tasks: readonly Task[], log: Log) {
    this.#log = log;
    for (const task of tasks) this.#tasks.set(task.name, { task, timer: undefined, current: undefined, woken: false });
  }

  start(): void {
    this.#isStarted = true;
    for (const running of this.#tasks.values()) this.#schedule(running, YIELD_MS);
  }

  /** Runs the task soon, whatever it is waiting for. */
  wake(name: string): void {
    const running = this.#tasks.get(name);
    // Once is enough: waking it again and again must not put it off.
    if (running === undefined || !this.#isStarted || running.woken) return;
    running.woken = true;
    if (running.current === undefined) this.#schedule(running, YIELD_MS);
  }

  /** Ends all timers and waits for what is under way. */
  async stop(): Promise<void> {
    const tasks = [...this.#tasks.values()];
    this.#tasks.clear();
    for (const running of tasks) clearTimeout(running.timer);
    await Promise.all(tasks.flatMap((running) => running.current ?? []));
  }

  #schedule(running: Running, ms: number): void {
    clearTimeout(running.timer);
    if (!this.#tasks.has(running.task.name)) return;
    running.timer = setTimeout(
      () => {
        running.current = this.#run(running);
      },
      Math.min(Math.max(YIELD_MS, ms), WAIT_MS_MAX),
    );
  }

  async #run(running: Running): Promise<void> {
    running.woken = false;
    let ms = RETRY_MS;
    try {
      ms = await running.task.run();
    } catch (error) {
      this.#log.error("task failed", { task: running.task.name, error: describeError(error) });
    }
    running.current = undefined;
    this.#schedule(running, running.woken ? YIELD_MS : ms);
  }
}

interface Running {
  task: Task;
  timer: ReturnType<typeof setTimeout> | undefined;
  current: Promise<void> | undefined;
  woken: boolean;
}
