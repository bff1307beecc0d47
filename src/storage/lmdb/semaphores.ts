/**
 * Check that the system allows the semaphores that LMDB locks with on macOS.
 *
 * There LMDB has one writer at a time by System V semaphores, which the system releases when a process is killed. A sandbox can
 * forbid them, and then LMDB ends the process with no more than an abort: hence a set is made, and removed, before it is opened.
 * POSIX semaphores are no way out: they stay taken when a process is killed. On Linux LMDB has robust mutexes.
 *
 * @module
 */
import { dlopen } from "bun:ffi";

/** As many as LMDB makes for a store. */
const SEMAPHORES = 3;
/** The same numbers on macOS and Linux. */
const IPC_PRIVATE = 0;
const IPC_CREAT_OWNER_ONLY = 0o1600;
const IPC_RMID = 0;

const REFUSAL =
  "the system does not allow System V semaphores (semget), which LMDB locks it with on macOS. In a sandbox, allow them " +
  "(ipc-sysv-sem in a profile of sandbox-exec), or run Cairn outside of it; without one, ipcs -s lists those that are taken, and ipcrm frees them.";

/**
 * Returns why LMDB cannot lock a store here; undefined when it can, or when the system does not let itself be asked.
 *
 * @param library - has `semget` and `semctl`; undefined on systems where LMDB needs neither
 */
export function semaphoreRefusal(library = process.platform === "darwin" ? "libSystem.B.dylib" : undefined): string | undefined {
  const libc = library === undefined ? undefined : openLibrary(library);
  if (libc === undefined) return undefined;
  const { semget, semctl } = libc.symbols;
  const id = semget(IPC_PRIVATE, SEMAPHORES, IPC_CREAT_OWNER_ONLY);
  if (id >= 0) semctl(id, 0, IPC_RMID);
  libc.close();
  return id >= 0 ? undefined : REFUSAL;
}

function openLibrary(library: string) {
  try {
    return dlopen(library, {
      semget: { args: ["i32", "i32", "i32"], returns: "i32" },
      semctl: { args: ["i32", "i32", "i32"], returns: "i32" },
    });
  } catch {
    return undefined;
  }
}
