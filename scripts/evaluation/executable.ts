/**
 * The executable, serving from a directory of its own.
 *
 * @module
 */
import { dirname, join } from "node:path";

const EXECUTABLE = join(dirname(dirname(import.meta.dir)), "dist/cairn");
const KEY = `crn_${"Evaluation".padEnd(24, "0")}`;

export interface Running {
  readonly url: string;
  /** A key that no rate limit holds up. */
  readonly key: string;
  stop(): Promise<void>;
}

export async function startExecutable(directory: string): Promise<Running> {
  const server = Bun.spawn([EXECUTABLE, "serve", "--port", "0", "--data-dir", directory, "--log-level", "warn"], {
    env: { CAIRN_API_KEY: KEY },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const url = await addressIn(server.stdout);
  const response = await fetch(`${url}/v1/api_keys`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": KEY },
    body: JSON.stringify({ scopes: ["read", "write"], tier: "enterprise", rate_limit: { per_minute: 1e9, burst: 1e9 } }),
  });
  const { key } = (await response.json()) as { key: string };
  return {
    url,
    key,
    async stop() {
      server.kill("SIGTERM");
      await server.exited;
    },
  };
}

async function addressIn(output: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of output) {
    text += new TextDecoder().decode(chunk);
    const address = /serving on (http:\S+)/.exec(text)?.[1];
    if (address !== undefined) return address;
  }
  throw new Error(`the executable did not start: ${text}`);
}
