/**
 * The embedding provider of the executable's environment.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { startEmbeddingServer } from "../support/embedding-server.ts";
import { scratchDirectory, startProcess } from "../support/process.ts";

test("the provider is asked directly, whatever proxies the environment names, and gets no key that was set for OpenAI", async () => {
  using directory = scratchDirectory();
  await using provider = startEmbeddingServer({ length: 384 });
  let asked = 0;
  using proxy = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => (asked++, new Response("", { status: 502 })) });
  const names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
  await using server = await startProcess({
    dataDirectory: directory.path,
    environment: {
      ...Object.fromEntries(names.map((name) => [name, `http://127.0.0.1:${proxy.port}`])),
      CAIRN_EMBEDDING_PROVIDER: "openai",
      CAIRN_EMBEDDING_BASE_URL: provider.baseUrl.replace("127.0.0.1", "localhost"),
      OPENAI_API_KEY: "sk-for-openai-alone-0123456789",
    },
  });
  const session = await server.createSession();
  const content = "The boat is moored at pier nine.";
  await server.addMemory(session.id, content);
  expect(provider.requests.length).toBeGreaterThan(0);
  expect([...new Set(provider.requests.map(({ headers }) => headers.get("authorization")))]).toEqual([null]);
  expect(asked).toBe(0);
});
