/**
 * Connections from a port that another connection has, which Linux allows to another server: neither Bun nor Node has the option.
 *
 * @module
 */
import { dlopen } from "bun:ffi";
import { closeSync, read, writeSync } from "node:fs";
import type { Part } from "./platform.ts";

const AF_INET = 2;
const SOCK_STREAM_CLOEXEC = 1 | 0o2000000;
const SOL_IP = 0;
const IP_LOCAL_PORT_RANGE = 51;
const SHUT_RDWR = 2;
const BYTES_MAX = 65_536;

let library: ReturnType<typeof openLibc> | undefined;
const libc = () => (library ??= openLibc()).symbols;
const openLibc = () =>
  dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
    connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
    shutdown: { args: ["i32", "i32"], returns: "i32" },
  });

/** Makes a socket that connects from a port and no other. @returns undefined where the kernel cannot do that */
function socketFrom(port: number): number | undefined {
  const descriptor = libc().socket(AF_INET, SOCK_STREAM_CLOEXEC, 0);
  if (libc().setsockopt(descriptor, SOL_IP, IP_LOCAL_PORT_RANGE, new Uint16Array([port, port]), 4) === 0) return descriptor;
  closeSync(descriptor);
  return undefined;
}

export const SAME_PORT: Part = {
  name: "shared ports",
  problem: () => {
    if (process.platform !== "linux") return "only Linux connects twice from one port";
    const descriptor = socketFrom(40_000);
    if (descriptor === undefined) return "its kernel is older than 6.3";
    closeSync(descriptor);
    return undefined;
  },
};

export interface Connection extends Disposable {
  write(text: string): void;
}

/** Connects to 127.0.0.1 from a port that may be taken. @throws where a connection of these ends is there already */
export function connectFrom(from: number, to: number, onData: (text: string) => void): Connection {
  const descriptor = socketFrom(from) as number;
  const address = Buffer.from([AF_INET, 0, to >> 8, to & 0xff, 127, 0, 0, 1, ...Array.from({ length: 8 }, () => 0)]);
  if (libc().connect(descriptor, address, address.length) !== 0) {
    closeSync(descriptor);
    throw new Error(`no connection from port ${from} to port ${to}`);
  }
  const buffer = Buffer.alloc(BYTES_MAX);
  let isOpen = true;
  const readOn = () =>
    read(descriptor, buffer, 0, buffer.length, null, (error, length) => {
      if (error === null && length > 0) {
        onData(buffer.toString("latin1", 0, length));
        readOn();
      } else {
        isOpen = false;
        closeSync(descriptor);
      }
    });
  readOn();
  return {
    write: (text) => void writeSync(descriptor, text, null, "latin1"),
    [Symbol.dispose]() {
      // The read that waits ends by it, and closes it.
      if (isOpen) libc().shutdown(descriptor, SHUT_RDWR);
    },
  };
}
