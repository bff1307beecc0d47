/**
 * `cairn doctor --oauth URL`: the executable next to a server that applications can connect to, and behind proxies that break the way.
 *
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { KEY, runCairn, startProcess } from "../support/process.ts";

const cairn = await startProcess();
afterAll(() => cairn[Symbol.asyncDispose]());

const doctor = (address: string, key?: string) =>
  runCairn(["doctor", "--oauth", address], { environment: key === undefined ? {} : { CAIRN_API_KEY: key } });
const grants = async () => (await cairn.ok(cairn.get("/v1/api_keys?kind=oauth"))).data;

const WITHOUT_KEY = [
  "ok      The address is one that clients accept",
  "ok      /mcp asks for a token, and says where to get one",
  "ok      The resource names this server",
  "ok      This server says how to get a token",
  "ok      An application says who it is",
  "ok      The browser is led to the dashboard",
  "ok      The token endpoint answers",
];
const WITH_KEY = [
  "ok      An admin consents",
  "ok      The code becomes tokens",
  "ok      /mcp lists its tools",
  "ok      The tokens are refreshed",
  "ok      Revoked tokens open nothing",
];

test("it goes as far as it can without consent, and with an admin key to the end, which leaves nothing", async () => {
  const plain = await doctor(cairn.address);
  expect({ ...plain, stdout: plain.stdout.trimEnd().split("\n") }).toEqual({
    code: 0,
    stderr: "",
    stdout: [
      ...WITHOUT_KEY,
      "As far as applications get without consent. With an admin key of that server in CAIRN_API_KEY the rest is tried, too.",
    ],
  });
  const whole = await doctor(`${cairn.address}/mcp`, KEY);
  expect(whole.stdout.trimEnd().split("\n")).toEqual([...WITHOUT_KEY, ...WITH_KEY, "Applications can be connected."]);
  expect(await grants()).toEqual([]);
});

test("where no application can register itself it is one that has a document", async () => {
  const set = (oauth_clients: string | null) => cairn.ok(cairn.request("PATCH", "/v1/settings", { oauth_clients }));
  await set("known");
  expect((await doctor(cairn.address, KEY)).stdout).toStartWith([...WITHOUT_KEY, ...WITH_KEY].join("\n"));
  await set("notes.example.com");
  const { code, stdout } = await doctor(cairn.address, KEY);
  await set(null);
  expect([code, ...stdout.trimEnd().split("\n")]).toEqual([
    0,
    ...WITHOUT_KEY,
    "untried An admin consents",
    expect.stringContaining("The setting oauth_clients names hosts alone"),
  ]);
});

/** A proxy before the server that changes what goes through it. */
function proxyWith(
  change: (request: Request, path: string, forward: (headers?: object) => Promise<Response>) => Promise<Response> | Response,
) {
  const proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { pathname, search, host } = new URL(request.url);
      const body = request.method === "GET" ? {} : { body: await request.text() };
      const forward = (headers: object = {}) =>
        fetch(cairn.address + pathname + search, {
          method: request.method,
          headers: { ...Object.fromEntries(request.headers), host, ...headers },
          redirect: "manual",
          ...body,
        });
      return change(request, pathname, forward);
    },
  });
  return { address: proxy.url.origin, [Symbol.asyncDispose]: () => proxy.stop(true) };
}

interface Fault {
  name: string;
  change: Parameters<typeof proxyWith>[0];
  steps: number;
  says: string;
}

const at =
  (wanted: string, answer: () => Response): Fault["change"] =>
  (_, path, forward) =>
    path.startsWith(wanted) ? answer() : forward();
const nothing = () => new Response("Not Found", { status: 404 });

const endless = () => new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536).fill(32)) }));

const FAULTS: Fault[] = [
  { name: "passes on no /mcp", change: at("/mcp", nothing), steps: 1, says: "The proxy has to pass on /mcp." },
  {
    name: "leads elsewhere",
    change: at("/mcp", () => Response.redirect("https://other.example/", 301)),
    steps: 1,
    says: "clients do not follow",
  },
  {
    name: "hands on a name of its own",
    change: (_, __, forward) => forward({ host: "other.example" }),
    steps: 1,
    says: "set CAIRN_PUBLIC_URL=",
  },
  {
    name: "hands on no name",
    change: (_, __, forward) => forward({ host: "127.0.0.1:1" }),
    steps: 1,
    says: "WWW-Authenticate names http://127.0.0.1:1/",
  },
  {
    name: "drops WWW-Authenticate",
    change: async (_, __, forward) => {
      const { status, headers, body } = await forward();
      headers.delete("www-authenticate");
      return new Response(body, { status, headers });
    },
    steps: 1,
    says: "has no WWW-Authenticate with resource_metadata",
  },
  { name: "passes on no /.well-known/", change: at("/.well-known/", nothing), steps: 2, says: "The proxy has to pass on /.well-known/." },
  {
    name: "answers with a page of its own",
    change: at("/.well-known/oauth-authorization-server", () => new Response("<html>\u001b[2J")),
    steps: 3,
    says: "answered with <html>\\u001b[2J, which is no JSON object",
  },
  {
    name: "answers without an end",
    change: at("/.well-known/oauth-authorization-server", endless),
    steps: 3,
    says: "There is no answer: more than 1048576 bytes came",
  },
  { name: "passes on no /register", change: at("/register", nothing), steps: 4, says: "The proxy has to pass on /register." },
  { name: "passes on no /authorize", change: at("/authorize", nothing), steps: 5, says: "The proxy has to pass on /authorize." },
  { name: "passes on no /dashboard", change: at("/dashboard", nothing), steps: 5, says: "The proxy has to pass on /dashboard." },
  { name: "passes on no /token", change: at("/token", nothing), steps: 6, says: "The proxy has to pass on /token." },
  {
    name: "drops Authorization",
    change: (_, __, forward) => forward({ authorization: "" }),
    steps: 9,
    says: "The proxy has to pass on the header Authorization",
  },
];

for (const { name, change, steps, says } of FAULTS)
  test(`it says where the way ends behind a proxy that ${name}`, async () => {
    await using proxy = proxyWith(change);
    const { code, stdout, stderr } = await doctor(proxy.address, KEY);
    const lines = stdout.trimEnd().split("\n");
    expect({ code, stderr, lines: lines.slice(0, steps) }).toEqual({
      code: 1,
      stderr: "",
      lines: [...WITHOUT_KEY, ...WITH_KEY].slice(0, steps),
    });
    expect(lines.slice(steps)).toEqual([
      ([...WITHOUT_KEY, ...WITH_KEY][steps] ?? "").replace("ok    ", "BROKEN"),
      expect.stringContaining(says),
    ]);
    expect(await grants()).toEqual([]);
  });

test("it asks the one server alone, also for a path that begins like another one", async () => {
  let asked = 0;
  const nobody = () => new Response(String(++asked), { status: 404 });
  const other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: nobody });
  await using proxy = proxyWith(async (request, path, forward) => {
    if (path !== "/mcp") return forward();
    const metadata = `${new URL(request.url).origin}//${other.url.host}/metadata`;
    return new Response("", { status: 401, headers: { "WWW-Authenticate": `Bearer resource_metadata="${metadata}"` } });
  });
  const { code, stdout } = await doctor(proxy.address, KEY);
  await other.stop(true);
  expect({ code, asked, stdout }).toEqual({ code: 1, asked: 0, stdout: expect.stringContaining("BROKEN  The resource names this server") });
});

test("it says what is wrong with the key, with nobody there, and with the address", async () => {
  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["read", "write"] }));
  expect((await doctor(cairn.address, key)).stdout).toContain("CAIRN_API_KEY is no admin's.");
  expect((await doctor(cairn.address, "crn_000000000000000000000000")).stdout).toContain("CAIRN_API_KEY is no key of this server.");
  expect(await doctor("http://127.0.0.1:1")).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("There is no answer: nothing listens there."),
  });
  expect(await doctor("http://cairn.example.com", KEY)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^BROKEN  The address is one that clients accept\n        Clients refuse http at other machines/),
  });
  for (const address of ["cairn.example.com", "https://cairn.example.com/v1", "https://cairn.example.com/?x"])
    expect(await doctor(address)).toMatchObject({ code: 2, stdout: "" });
  expect(await runCairn(["doctor", "--oauth", cairn.address, "--fix"])).toMatchObject({ code: 2, stdout: "" });
});
