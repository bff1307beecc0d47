import { expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { failed, runCairn, scratchDirectory, startProcess } from "../support/process.ts";

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
  // A name that somebody else has point here is told as little as by the API itself.
  for (const [host, status] of [
    ["rebound.example", 403],
    ["localhost.example:80", 403],
    ["127.0.0.1", 308],
    ["LOCALHOST:8080", 308],
  ] as const) {
    const answer = await fetch(`http://127.0.0.1:${redirectPort}/health`, { redirect: "manual", headers: { Host: host } });
    expect([host, answer.status, answer.headers.has("location")]).toEqual([host, status, status === 308]);
    expect([answer.headers.get("cache-control"), answer.headers.get("x-content-type-options")]).toEqual(["no-store", "nosniff"]);
    const requestId = answer.headers.get("x-request-id");
    expect(requestId).toStartWith("req_");
    if (status === 403) {
      const { error } = (await answer.json()) as { error: unknown };
      expect(error).toMatchObject({ code: "permission_denied", type: "permission_error", param: "Host", request_id: requestId });
    }
  }
});

test("a certificate without its key, or one that cannot be read, ends the start with what is wrong", async () => {
  using directory = scratchDirectory();
  const serve = (...flags: string[]) => runCairn(["serve", "--port", "0", "--data-dir", directory.path, ...flags]);
  expect(await serve("--tls-cert", CERTIFICATE)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--tls-cert and --tls-key go together"),
  });
  expect(await serve("--http-redirect-port", "8080")).toMatchObject({ code: 2, stderr: expect.stringContaining("needs --tls-cert") });
  const missing = directory.at("none.pem");
  const refused = async (certificate: string, key: string, message: string) =>
    expect(await serve("--tls-cert", certificate, "--tls-key", key)).toMatchObject(failed(expect.stringContaining(message)));
  await refused(missing, PRIVATE_KEY, `${missing} cannot be read`);
  await refused(PRIVATE_KEY, PRIVATE_KEY, `${PRIVATE_KEY} must hold a certificate in PEM form`);
  await refused(CERTIFICATE, CERTIFICATE, `${CERTIFICATE} must hold a private key without a passphrase in PEM form`);
  const other = directory.at("other.pem");
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await Bun.write(other, privateKey.export({ type: "pkcs8", format: "pem" }));
  await refused(CERTIFICATE, other, `The key in ${other} is not that of the certificate in ${CERTIFICATE}.`);
});

test("a port for plain HTTP that is taken ends the start whole, and what says no host to send it to is refused there", async () => {
  using directory = scratchDirectory();
  const tls = { CAIRN_TLS_CERT: CERTIFICATE, CAIRN_TLS_KEY: PRIVATE_KEY };
  using taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const port = taken.port ?? 0;
  const serve = ["serve", "--port", "0", "--data-dir", directory.path, "--http-redirect-port", String(port)];
  expect(await runCairn(serve, { environment: tls })).toEqual(
    failed(`cairn: Cannot listen on 127.0.0.1, port ${port}: something else listens there.\n`),
  );
  await taken.stop(true);
  await using cairn = await startProcess({
    dataDirectory: directory.path,
    environment: { ...tls, CAIRN_HTTP_REDIRECT_PORT: String(port) },
  });
  for (const head of ["GET /v1/sessions HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "GET / HTTP/1.1\r\nHost: %\r\n\r\n"]) {
    expect(await saidTo(port, head)).toMatch(/^HTTP\/1\.1 400 [^]*"code":"invalid_request"[^]*"param":"Host"/);
  }
  expect(await cairn.stop()).toBe(0);
  // One JSON line of log each, and no more.
  for (const line of cairn.stderr.trim().split("\n")) expect(JSON.parse(line)).toMatchObject({ level: expect.any(String) });
});

/** All that is answered to these bytes. */
async function saidTo(port: number, bytes: string): Promise<string> {
  let said = "";
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, chunk) {
        said += chunk.toString();
        if (said.includes("\r\n\r\n")) resolve();
      },
      close: () => resolve(),
    },
  });
  socket.write(bytes);
  await promise;
  socket.end();
  return said;
}
