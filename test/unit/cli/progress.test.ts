import { expect, test } from "bun:test";
import { showProgress } from "../../../src/cli/progress.ts";

function terminal(isTTY: boolean) {
  const written: string[] = [];
  return { isTTY, written, write: (text: string) => written.push(text) };
}

const ERASE = "\r\u001b[K";

test("on a terminal a bar is drawn ten times a second at most, and taken away at the end", () => {
  const screen = terminal(true);
  let ms = 0;
  {
    using progress = showProgress("Looking", "rows", screen, () => ms);
    for (; ms <= 200; ms += 50) progress.show(ms, 200);
  }
  expect(screen.written).toEqual([
    `${ERASE}Looking [..............................] 0 %`,
    `${ERASE}Looking [###############...............] 50 %`,
    `${ERASE}Looking [##############################] 100 %`,
    ERASE,
  ]);
});

test("where nobody knows how much there is, what is done is counted", () => {
  const screen = terminal(true);
  showProgress("Importing", "lines", screen, () => 0).show(12_345);
  expect(screen.written).toEqual([`${ERASE}Importing 12,345 lines`]);
});

test("where there is no terminal nothing is written", () => {
  const screen = terminal(false);
  {
    using progress = showProgress("Looking", "rows", screen, () => 0);
    progress.show(1, 2);
  }
  expect(screen.written).toEqual([]);
});
