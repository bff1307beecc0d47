import { expect, test } from "bun:test";
import { cpuMs, psCpuMs } from "../../../src/cli/bench/process-use.ts";
import { needs, PS } from "../../support/platform.ts";

test.each([
  ["0:00.05", 50],
  ["3:04.50", 184_500],
  ["01:02:03", 3_723_000],
  ["1-02:03:04", 93_784_000],
])("processor time that ps shows as %s is %i ms", (shown, ms) => {
  expect(psCpuMs(shown)).toBe(ms);
});

needs(PS)("the processor time of this process is as ps has it, to the second", () => {
  const { stdout } = Bun.spawnSync(["ps", "-o", "cputime=", "-p", `${process.pid}`]);
  expect(Math.abs(cpuMs(process.pid) - psCpuMs(stdout.toString().trim()))).toBeLessThanOrEqual(2_000);
});
