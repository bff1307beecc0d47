/**
 * Registers tests in the browser, where there is one.
 *
 * @module
 */
import { chromiumProblem } from "./chromium.ts";
import { needs } from "./platform.ts";

const problem = await chromiumProblem();

export const inBrowser = needs({ name: "a browser", problem: () => problem });
