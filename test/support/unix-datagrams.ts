/**
 * A datagram socket in the file system, as systemd's: neither Bun nor Node has one.
 *
 * @module
 */
import { dlopen } from "bun:ffi";

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_DONTWAIT = 0x40;
const LENGTH_MAX = 4096;

export interface Datagrams extends Disposable {
  /** The next one, if there is one by now. */
  receive(): string | undefined;
}

/** @param name - a path, or a name that begins with NUL */
export function bindDatagrams(name: string): Datagrams {
  const libc = dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
    recv: { args: ["i32", "ptr", "usize", "i32"], returns: "i64" },
    close: { args: ["i32"], returns: "i32" },
  });
  const { symbols } = libc;
  const descriptor = symbols.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
  const address = Buffer.from(`\u0001\0${name}`);
  if (symbols.bind(descriptor, address, address.length) !== 0) throw new Error(`nothing can be received at ${name}`);
  return {
    receive() {
      const bytes = Buffer.alloc(LENGTH_MAX);
      const length = Number(symbols.recv(descriptor, bytes, bytes.length, MSG_DONTWAIT));
      return length < 0 ? undefined : bytes.toString("utf8", 0, length);
    },
    [Symbol.dispose]() {
      symbols.close(descriptor);
      libc.close();
    },
  };
}
