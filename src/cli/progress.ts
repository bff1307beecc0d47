/**
 * Shows the progress of a long command, in one line on standard error that is written over. It shows nothing without a terminal.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";

const REDRAW_MS = 100;
const BAR_WIDTH = 30;
const ERASE = "\r\u001b[K";

export interface Progress extends Disposable {
  /** Without a total, `unit` is counted. */
  readonly show: (done: number, total?: number) => void;
  /** Erases the line, for other output. */
  readonly clear: () => void;
}

interface Terminal {
  isTTY?: boolean;
  write(text: string): unknown;
}

/** @param unit - what is counted: `lines` */
export function showProgress(what: string, unit: string, terminal: Terminal = process.stderr, now = () => systemClock.elapsed()): Progress {
  let drawnAt = Number.NEGATIVE_INFINITY;
  const clear = () => {
    if (drawnAt !== Number.NEGATIVE_INFINITY) terminal.write(ERASE);
    drawnAt = Number.NEGATIVE_INFINITY;
  };
  return {
    show(done, total) {
      if (terminal.isTTY !== true || now() - drawnAt < REDRAW_MS) return;
      drawnAt = now();
      terminal.write(`${ERASE}${what} ${total === undefined ? `${done.toLocaleString("en")} ${unit}` : bar(done / Math.max(1, total))}`);
    },
    clear,
    [Symbol.dispose]: clear,
  };
}

function bar(share: number): string {
  const full = Math.floor(Math.min(1, share) * BAR_WIDTH);
  return `[${"#".repeat(full)}${".".repeat(BAR_WIDTH - full)}] ${Math.floor(Math.min(1, share) * 100)} %`;
}
