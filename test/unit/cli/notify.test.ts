import { expect } from "bun:test";
import { openLibc } from "../../../src/cli/notify.ts";
import { onLinux } from "../../support/platform.ts";

const test = onLinux("systemd and its libc");

test("libc is found under the name that it has on this system, whichever comes first", () => {
  const libc = openLibc({ getpid: { args: [], returns: "i32" } }, ["libc.musl-none.so.1", "libc.so.6", "libc.musl-x86_64.so.1"]);
  expect(libc.symbols.getpid()).toBe(process.pid);
  libc.close();
  expect(() => openLibc({ getpid: { args: [], returns: "i32" } }, ["libnone.so"])).toThrow("there is none of libnone.so");
});
