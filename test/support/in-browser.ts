/**
 * Registers tests in the browser, where there is one.
 *
 * @module
 */
import { chromiumProblem } from "./chromium.ts";
import { needs, type Part } from "./platform.ts";

const problem = await chromiumProblem();

export const BROWSER: Part = { name: "a browser", problem: () => problem };
export const inBrowser = needs(BROWSER);
