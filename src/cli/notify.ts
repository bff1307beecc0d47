/**
 * Notifies systemd of the server's state, for units of `Type=notify`.
 *
 * systemd listens on a Unix datagram socket, to which neither Bun nor Node can send: hence three calls of libc.
 *
 * @see https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
 * @module
 */
import { dlopen, type FFIFunction } from "bun:ffi";

export type State = "READY=1" | "STOPPING=1" | `STATUS=${string}`;

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_NOSIGNAL = 0x4000;
/** The names of libc: glibc's, and musl's on each processor that Cairn is built for. */
const LIBC = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];
/** `sockaddr_un`: two bytes of family, 108 of path. */
const FAMILY_BYTES = 2;

/**
 * @param socket - of NOTIFY_SOCKET: a path, or an abstract name that begins with `@` in place of NUL
 * @throws {Error} when it cannot be sent
 */
export function notify(socket: string, state: State): void {
  const path = Buffer.from(socket.replace(/^@/, "\0"));
  const address = Buffer.alloc(FAMILY_BYTES + path.length);
  address.writeUInt16LE(AF_UNIX);
  path.copy(address, FAMILY_BYTES);
  const text = Buffer.from(`${state}\n`);
  const libc = openLibc({
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    sendto: { args: ["i32", "ptr", "usize", "i32", "ptr", "u32"], returns: "i64" },
    close: { args: ["i32"], returns: "i32" },
  });
  try {
    const descriptor = libc.symbols.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
    const sent = libc.symbols.sendto(descriptor, text, text.length, MSG_NOSIGNAL, address, address.length);
    libc.symbols.close(descriptor);
    if (sent !== BigInt(text.length)) throw new Error(`${socket} takes no message`);
  } finally {
    libc.close();
  }
}

/**
 * Opens the first of these libraries that this system has.
 *
 * @throws {Error} when it has none of them
 */
export function openLibc<Symbols extends Record<string, FFIFunction>>(symbols: Symbols, names: readonly string[] = LIBC) {
  for (const name of names) {
    try {
      return dlopen(name, symbols);
    } catch {
      // Another libc.
    }
  }
  throw new Error(`there is none of ${names.join(", ")}`);
}
