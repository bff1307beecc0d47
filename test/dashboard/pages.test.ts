/**
 * The files of the dashboard, as they are served.
 *
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { brotliCompressSync } from "node:zlib";
import { bundleDashboard } from "../../src/dashboard/bundle.ts";
import { startProcess, type CairnProcess } from "../support/process.ts";
import { startServer } from "../support/server.ts";

const KB = 1000;

let cairn: CairnProcess;
beforeAll(async () => {
  cairn = await startProcess();
});
afterAll(() => cairn[Symbol.asyncDispose]());

const ask = (path: string, headers: Record<string, string> = {}) =>
  fetch(cairn.address + path, { headers, redirect: "manual", decompress: false });

async function scriptPath(): Promise<string> {
  const page = await fetch(`${cairn.address}/dashboard`);
  return /<script[^>]+src="([^"]+)"/.exec(await page.text())?.[1] ?? "";
}

test("every path of the dashboard is the page, with a policy that allows its own files and nothing else", async () => {
  for (const path of ["", "/", "/sessions", "/sessions/sess_0VQk3aB4x1Zq", "/users/a.b@example.js", "/go/%ff"]) {
    const answer = await ask(`/dashboard${path}`);
    expect([path, answer.status, answer.headers.get("content-type")]).toEqual([path, 200, "text/html; charset=utf-8"]);
    expect(answer.headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
      "x-content-type-options": "nosniff",
      "x-request-id": expect.stringMatching(/^req_/),
    });
    expect(answer.headers.get("set-cookie")).toBeNull();
  }
});

test("the page has neither script nor style nor handlers of its own, which the policy would refuse", async () => {
  const page = await (await fetch(`${cairn.address}/dashboard`)).text();
  expect(page).not.toMatch(/<script>|<style|style="|\son\w+=|https?:\/\//);
});

test("a browser keeps a file for good and asks whether the page has changed", async () => {
  const file = await ask(await scriptPath());
  expect([file.status, file.headers.get("cache-control")]).toEqual([200, "public, max-age=31536000, immutable"]);
  const page = await ask("/dashboard");
  expect(page.headers.get("cache-control")).toBe("no-cache");
  const etag = page.headers.get("etag") ?? "";
  for (const known of [etag, `"other", ${etag}`, `W/${etag}`]) {
    const again = await ask("/dashboard", { "If-None-Match": known });
    expect([known, again.status, await again.text()]).toEqual([known, 304, ""]);
    expect(again.headers.get("etag")).toBe(etag);
  }
  expect((await ask("/dashboard", { "If-None-Match": '"other"' })).status).toBe(200);
});

test("a file comes in the best encoding that is taken, and each has an ETag of its own", async () => {
  const path = await scriptPath();
  const encodings = ["br, gzip", "gzip, deflate", "br;q=0, gzip;q=0.5", "identity", "br; q=0.0", "x-br"];
  const answers = await Promise.all(encodings.map((encoding) => ask(path, { "Accept-Encoding": encoding })));
  expect(answers.map(({ headers }) => headers.get("content-encoding"))).toEqual(["br", "gzip", "gzip", null, null, null]);
  expect(answers.map(({ headers }) => headers.get("vary"))).toEqual(encodings.map(() => "Accept-Encoding"));
  expect(new Set(answers.slice(0, 4).map(({ headers }) => headers.get("etag"))).size).toBe(3);
});

test("a file that does not exist, another method and a foreign Host are refused", async () => {
  expect((await ask("/dashboard/main-00000000.js")).status).toBe(404);
  expect((await ask("/dashboards")).status).toBe(404);
  expect((await fetch(`${cairn.address}/dashboard`, { method: "POST" })).status).toBe(405);
  expect((await ask("/dashboard", { Host: "evil.example" })).status).toBe(403);
});

test("a browser at the root gets to the dashboard, a program is told where everything is", async () => {
  const browser = await ask("/", { Accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
  expect([browser.status, browser.headers.get("location")]).toEqual([302, "/dashboard"]);
  for (const accept of ["application/json", "*/*"]) {
    const program = await ask("/", { Accept: accept });
    expect(program.status).toBe(200);
    expect(await program.json()).toEqual({
      name: "cairn",
      version: expect.stringMatching(/^\d/),
      docs: "/docs",
      guide: "/docs/guide",
      openapi: "/openapi.json",
      dashboard: "/dashboard",
    });
  }
});

test("a Cairn that runs from source serves it too", async () => {
  await using server = await startServer();
  const address = `http://127.0.0.1:${server.port}`;
  const page = await fetch(`${address}/dashboard`);
  const files = Array.from((await page.text()).matchAll(/(?:src|href)="(\/dashboard\/[^"]+)"/g), ([, path]) => path);
  expect(files.length).toBe(3);
  for (const path of files) expect((await fetch(`${address}${path}`)).status).toBe(200);
});

test("the first screen is at most 72 KB of script and style, a further chunk 40, and the executable 1 MB larger", async () => {
  const { files } = await bundleDashboard({ minify: true });
  const page = new TextDecoder().decode(files.find(({ name }) => name === "index.html")?.bytes);
  const sizes = files
    .filter(({ name }) => /\.(js|css)$/.test(name))
    .map(({ name, bytes }) => ({ name, isFirst: page.includes(name), size: brotliCompressSync(bytes).length }));
  const first = sizes.filter(({ isFirst }) => isFirst);
  expect(first.length).toBeGreaterThanOrEqual(2);
  expect(first.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(72 * KB);
  expect(sizes.filter(({ isFirst, size }) => !isFirst && size > 40 * KB)).toEqual([]);
  // As it is, with gzip, and with brotli.
  const embedded = files.reduce((sum, { bytes }) => sum + bytes.length + Bun.gzipSync(bytes).length + brotliCompressSync(bytes).length, 0);
  expect(embedded).toBeLessThanOrEqual(1000 * KB);
});
