/**
 * Work that happens by itself: expiry, retention, clean-up, delivery.
 *
 * @module
 */
export interface Task {
  readonly name: string;
  /** Runs the task before its time. */
  readonly activator?: Activator;
  /**
   * Does a bounded piece of work; it takes no input and looks at what is stored, so running late or twice does no harm.
   *
   * @returns milliseconds until the next piece: 0 when there is more to do now
   */
  run(): Promise<number>;
}

/** Wakes a task. Parts that do so are given it before the task exists; the driver connects the two. */
export class Activator {
  #run: (() => void) | undefined;

  wake(): void {
    this.#run?.();
  }

  connect(run: () => void): void {
    this.#run = run;
  }
}
