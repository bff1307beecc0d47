/**
 * Pebble, the test server of Let's Encrypt, with a name server that leads every name to this machine.
 *
 * @module
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Part } from "./platform.ts";
import { scratchDirectory, until } from "./process.ts";

const VERSION = "v2.10.3";
const TOOLS = join(dirname(dirname(import.meta.dir)), ".tools");
const PROGRAMS = join(TOOLS, `pebble-${VERSION}`);
const MODULE = "github.com/letsencrypt/pebble/v2/cmd";
const TLS = join(import.meta.dir, "tls");
/** Every name leads to 127.0.0.1, and the name server serves names alone. */
const ONE_ADDRESS = "-defaultIPv4=127.0.0.1 -defaultIPv6= -http01= -https01= -tlsalpn01= -doh=".split(" ");
const NO_PROXY = { NO_PROXY: "*" };

let problem: string | undefined;
let isAsked = false;

/** From the proxy of Go's modules; built with the first question. */
export const PEBBLE: Part = {
  name: "Pebble",
  problem() {
    if (!isAsked) problem = build();
    isAsked = true;
    return problem;
  },
};

function build(): string | undefined {
  if (existsSync(PROGRAMS)) return undefined;
  const go = Bun.which("go", { PATH: `${process.env["PATH"]}:/usr/local/go/bin` });
  if (go === null) return "there is no Go";
  const fresh = join(TOOLS, `pebble-new-${process.pid}`);
  mkdirSync(TOOLS, { recursive: true });
  const env = { ...process.env, GOBIN: fresh, GOFLAGS: "-mod=mod" };
  const packages = ["pebble", "pebble-challtestsrv"].map((name) => `${MODULE}/${name}@${VERSION}`);
  const { exitCode } = Bun.spawnSync([go, "install", ...packages], { env, stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  if (exitCode === 0 && !existsSync(PROGRAMS)) renameSync(fresh, PROGRAMS);
  rmSync(fresh, { recursive: true, force: true });
  return existsSync(PROGRAMS) ? undefined : "Go does not build it";
}

/** Ports that were free a moment ago. */
export function freePorts(count: number): number[] {
  const probes = Array.from({ length: count }, () => Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } }));
  const ports = probes.map(({ port }) => port);
  for (const probe of probes) probe.stop(true);
  return ports;
}

export interface Pebble extends AsyncDisposable {
  /** Settings of a server that asks it, and where it looks for the answers. */
  readonly environment: Record<string, string>;
  readonly httpPort: number;
  /** Certificate of the authority that its certificates lead to. */
  readonly root: string;
  /** Has a name lead to an address of this machine on which nobody listens. */
  misdirect(name: string): Promise<unknown>;
  /** Orders that it has taken. */
  readonly orders: () => number;
  stop(): Promise<void>;
}

/** @param validSeconds - how long its certificates are valid */
export async function startPebble({ validSeconds = 7_776_000, httpPort = freePorts(1)[0]! } = {}): Promise<Pebble> {
  const [port, management, names, nameServer] = freePorts(4) as [number, number, number, number];
  const scratch = scratchDirectory();
  const config = {
    pebble: {
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: join(TLS, "certificate.pem"),
      privateKey: join(TLS, "key.pem"),
      httpPort,
      tlsPort: 1,
      profiles: { default: { description: "", validityPeriod: validSeconds } },
    },
  };
  await Bun.write(scratch.at("config.json"), JSON.stringify(config));
  const nameServerFlags = ["-dnsserver", `127.0.0.1:${nameServer}`, "-management", `127.0.0.1:${names}`];
  const dns = Bun.spawn([join(PROGRAMS, "pebble-challtestsrv"), ...nameServerFlags, ...ONE_ADDRESS], {
    env: NO_PROXY,
    stdout: "ignore",
    stderr: "ignore",
  });
  const ca = Bun.spawn(
    [join(PROGRAMS, "pebble"), "-config", scratch.at("config.json"), "-dnsserver", `127.0.0.1:${nameServer}`],
    // A tenth of the requests is refused for its nonce: a client asks again.
    { env: { ...NO_PROXY, PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "10" }, stdout: "pipe", stderr: "ignore" },
  );
  let said = "";
  void (async () => {
    const decoder = new TextDecoder();
    for await (const piece of ca.stdout) said += decoder.decode(piece, { stream: true });
  })();
  const authority = await Bun.file(join(TLS, "certificate.pem")).text();
  const tls = { ca: authority };
  const root = await until("Pebble to answer", async () => {
    if (ca.exitCode !== null) throw new Error(`Pebble ended with ${ca.exitCode}: ${said}`);
    return fetch(`https://localhost:${management}/roots/0`, { tls }).then(
      (answer) => answer.text(),
      () => undefined,
    );
  });
  const managed = (what: string, body: object) =>
    fetch(`http://127.0.0.1:${names}/${what}`, { method: "POST", body: JSON.stringify(body) });
  await until("the name server to answer", () => managed("clear-a", { host: "nobody.example." }).then(Boolean, () => undefined));
  const stop = async () => {
    ca.kill("SIGKILL");
    await ca.exited;
  };
  return {
    environment: { CAIRN_ACME_DIRECTORY: `https://localhost:${port}/dir`, NODE_EXTRA_CA_CERTS: join(TLS, "certificate.pem") },
    httpPort,
    root,
    misdirect: (name) => managed("add-a", { host: `${name}.`, addresses: ["127.0.0.2"] }),
    orders: () => said.split("Added order").length - 1,
    stop,
    async [Symbol.asyncDispose]() {
      dns.kill("SIGKILL");
      await Promise.all([stop(), dns.exited]);
      scratch[Symbol.dispose]();
    },
  };
}
