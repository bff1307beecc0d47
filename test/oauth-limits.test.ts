/**
 * OAuth 2.1 for `/mcp` with what hostile or careless applications send, and the end of a grant with that of its key.
 *
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { startCairn } from "./support/cairn.ts";
import { asking, codeIn, form, PUBLIC, registration, statusOf, VERIFIER } from "./support/oauth.ts";

const cairn = await startCairn(PUBLIC);
afterAll(() => cairn[Symbol.asyncDispose]());

test("a form of thousands of fields costs the token endpoint no more than reading it", async () => {
  await using own = await startCairn(PUBLIC);
  const names = Array.from({ length: 8_000 }, (_, i) => i.toString(36));
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  const raw = `grant_type=authorization_code&client_id=x&code=x&code_verifier=x&${names.join("&")}`;
  const costOf = async (path: string, error: string) => {
    const before = process.cpuUsage();
    expect((await own.post(path, undefined, { key: null, raw, headers })).body).toMatchObject({ error });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  let [read, checked] = [Infinity, Infinity];
  for (let run = 0; run < 10 && !(run > 0 && checked < 5 * Math.max(read, 8)); run++) {
    read = Math.min(read, await costOf("/revoke", "invalid_request"));
    checked = Math.min(checked, await costOf("/token", "invalid_grant"));
  }
  expect(checked).toBeLessThan(5 * Math.max(read, 8));
  const twice = await own.post("/token", undefined, { key: null, raw: raw.replace("&code=x", "&code=x&code=y"), headers });
  expect(twice.body).toEqual({ error: "invalid_request", error_description: "code is given twice." });
});
