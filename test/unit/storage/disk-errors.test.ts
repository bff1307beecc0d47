import { expect, spyOn, test } from "bun:test";
import * as fs from "node:fs";
import { constants, tmpdir } from "node:os";
import { diskReason } from "../../../src/storage/lmdb/disk/disk-errors.ts";

const GIB = 1024 ** 3;

for (const { free, says } of [
  { free: 0, says: "The disk is full." },
  { free: GIB, says: "The disk has failed." },
]) {
  test(`a write that came to nothing or was cut short, with ${free} bytes free, says: ${says}`, () => {
    const real = fs.statfsSync;
    using said = spyOn(fs, "statfsSync").mockImplementation(((path: string) => ({ ...real(path), bsize: 1, bavail: free })) as never);
    const cause = Object.assign(new Error("Input/output error"), { code: constants.errno.EIO });
    expect(diskReason(cause, tmpdir())).toBe(says);
    expect(said).toHaveBeenCalled();
  });
}
