import { expect, test } from "bun:test";
import { isTrusted } from "../../../src/cli/announcement.ts";

test("a user trusts their own files and root's, and root those of the directory's owner", () => {
  const [root, ada, bob] = [0, 1001, 1002];
  const files = [root, ada, bob];
  const trusted = (user: number, directory: number) => files.filter((file) => isTrusted({ file, directory, user }));
  expect(trusted(ada, ada)).toEqual([root, ada]);
  expect(trusted(ada, root)).toEqual([root, ada]);
  expect(trusted(ada, bob)).toEqual([root, ada]);
  expect(trusted(root, ada)).toEqual([root, ada]);
  expect(trusted(root, root)).toEqual([root]);
});
