/**
 * Work that happens by itself: expiry, retention, clean-up, delivery.
 *
 * @module
 */
export interface Task {
  readonly name: string;
  /**
   * Does a bounded piece of work; it takes no input and looks at what is stored, so running late or twice does no harm.
   *
   * @returns milliseconds until the next piece: 0 when there is more to do now
   */
  run(): Promise<number>;
}
