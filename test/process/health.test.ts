import { expect, test } from "bun:test";
import { join } from "node:path";
import { failed, runCairn, scratchDirectory, startProcess } from "../support/process.ts";

const tls = (name: string) => join(import.meta.dir, "../support/tls", name);
const notReady = (address: string, why: RegExp) =>
  failed(expect.stringMatching(new RegExp(`^cairn: ${address.replaceAll(/[[\].]/g, "\\$&")} is not ready: ${why.source}\n$`)));
const READY = { code: 0, stdout: "ready\n", stderr: "" };

test("cairn health ends with 0 while the server of the same settings is ready, makes no directory, and ends with 1 when it is gone", async () => {
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: directory.at("data"), flags: ["--host", "0.0.0.0"] });
  const { port } = new URL(server.address);
  // A proxy that is not there: nobody is to ask it.
  const environment = {
    CAIRN_HOST: "0.0.0.0",
    CAIRN_PORT: port,
    CAIRN_DATA_DIR: directory.at("none"),
    http_proxy: "http://127.0.0.1:9",
  };
  expect(await runCairn(["health"], { environment, directory: directory.path })).toEqual(READY);
  expect(await runCairn(["health", "--port", port])).toEqual(READY);
  expect(await runCairn(["health", "--url", `http://localhost:${port}/some/where`])).toEqual(READY);
  expect(await Array.fromAsync(new Bun.Glob("*").scan({ cwd: directory.path, onlyFiles: false }))).toEqual(["data"]);
  expect(await server.stop()).toBe(0);
  expect(await runCairn(["health"], { environment })).toEqual(notReady(`http://127.0.0.1:${port}`, /nothing listens there/));
});

test("cairn health takes any certificate from the server of its own settings, and from an address that it is given only one that is trusted", async () => {
  const flags = ["--tls-cert", tls("certificate.pem"), "--tls-key", tls("key.pem")];
  await using server = await startProcess({ flags });
  const { port } = new URL(server.address);
  expect(await runCairn(["health", "--port", port, ...flags])).toEqual(READY);
  expect(await runCairn(["health", "--url", server.address])).toEqual(notReady(server.address, /.*certificate.*/));
  expect(await runCairn(["health", "--port", port])).toMatchObject({ code: 1, stdout: "" });
});

const OTHERS: { name: string; answer: () => Response | Promise<Response>; why: RegExp }[] = [
  { name: "is something else", answer: () => new Response("hello"), why: /it answered 200 hello/ },
  { name: "says it is not ready", answer: () => Response.json({ status: "starting" }), why: /it answered 200 {"status":"starting"}/ },
  { name: "cannot serve", answer: () => Response.json({ status: "ready" }, { status: 503 }), why: /it answered 503 {"status":"ready"}/ },
  { name: "sends it elsewhere", answer: () => Response.redirect("https://example.com/", 308), why: /it answered 308 / },
  { name: "never answers", answer: () => new Promise(() => undefined), why: /.*(timed out|aborted|timeout).*/ },
];

for (const { name, answer, why } of OTHERS) {
  test(`cairn health ends with 1 when who is there ${name}`, async () => {
    await using other = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 60, fetch: answer });
    expect(await runCairn(["health", "--port", `${other.port}`])).toEqual(notReady(`http://127.0.0.1:${other.port}`, why));
  });
}
