import { expect, test } from "bun:test";
import { join } from "node:path";
import { runCairn, scratchDirectory, startProcess } from "../support/process.ts";

const CERTIFICATE = join(import.meta.dir, "../support/tls/certificate.pem");
const PRIVATE_KEY = join(import.meta.dir, "../support/tls/key.pem");

test("with a certificate it speaks HTTPS alone, and sends plain HTTP there from a port of its own", async () => {
  using directory = scratchDirectory();
  using probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const redirectPort = probe.port ?? 0;
  await probe.stop(true);
  await using cairn = await startProcess({
    dataDirectory: directory.path,
    environment: { CAIRN_TLS_CERT: CERTIFICATE, CAIRN_TLS_KEY: PRIVATE_KEY, CAIRN_HTTP_REDIRECT_PORT: String(redirectPort) },
  });
  const port = new URL(cairn.address).port;
  const ca = await Bun.file(CERTIFICATE).text();
  const health = await fetch(`https://localhost:${port}/health`, { tls: { ca } });
  expect(await health.json()).toMatchObject({ status: "ready" });
  await expect(fetch(`http://localhost:${port}/health`)).rejects.toThrow();

  const redirected = await fetch(`http://127.0.0.1:${redirectPort}/v1/sessions?limit=2`, {
    redirect: "manual",
    headers: { Host: "localhost" },
  });
  expect(redirected.status).toBe(308);
  expect(redirected.headers.get("location")).toBe(`https://localhost:${port}/v1/sessions?limit=2`);
}, 60_000);

test("a certificate without its key, or one that cannot be read, ends the start with what is wrong", async () => {
  using directory = scratchDirectory();
  const serve = (...flags: string[]) => runCairn(["serve", "--port", "0", "--data-dir", directory.path, ...flags]);
  expect(await serve("--tls-cert", CERTIFICATE)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--tls-cert and --tls-key go together"),
  });
  expect(await serve("--http-redirect-port", "8080")).toMatchObject({ code: 2, stderr: expect.stringContaining("needs --tls-cert") });
  const missing = join(directory.path, "none.pem");
  expect(await serve("--tls-cert", missing, "--tls-key", PRIVATE_KEY)).toMatchObject({ code: 1, stderr: expect.stringContaining(missing) });
}, 60_000);
