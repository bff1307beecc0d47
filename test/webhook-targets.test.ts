/**
 * Where webhooks may lead, and what is shown of the answers that come from there.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { deliveries } from "../src/storage/tables.ts";
import { refusal } from "./support/answers.ts";
import { startCairn, type Options } from "./support/cairn.ts";
import { dialHere, publicUrl, startReceiver } from "./support/receiver.ts";

const HERE: Options = {};
const OUTSIDE: Options = { network: { loopback: false } };
const ANYWHERE: Options = { network: { loopback: false }, environment: { webhooks: { allow_private: true } } };
const TARGETS: { url: string; status: [here: number, outside: number, anywhere: number] }[] = [
  { url: "https://agents.example.com/hook", status: [201, 201, 201] },
  { url: "http://127.0.0.1:3000/hook", status: [201, 400, 201] },
  { url: "http://2130706433/", status: [201, 400, 201] },
  { url: "http://[::ffff:127.0.0.1]/", status: [201, 400, 201] },
  { url: "http://10.1.2.3/", status: [400, 400, 201] },
  { url: "http://inside.example.com/", status: [400, 400, 201] },
  { url: "http://169.254.169.254/latest/meta-data/", status: [400, 400, 400] },
  { url: "http://metadata.example.com/", status: [400, 400, 400] },
  { url: "http://user:word@agents.example.com/", status: [400, 400, 400] },
  { url: "ftp://agents.example.com/", status: [400, 400, 400] },
  { url: "http://unknown.example.com/", status: [201, 201, 201] },
];
const NAMES: Record<string, string> = {
  "inside.example.com": "192.168.1.1",
  "metadata.example.com": "169.254.169.254",
  "agents.example.com": "8.8.8.8",
};
const resolve = (name: string) => (NAMES[name] === undefined ? Promise.reject(new Error(name)) : Promise.resolve(["8.8.8.8", NAMES[name]]));

for (const [index, [listening, options]] of (
  [
    ["on loopback", HERE],
    ["beyond loopback", OUTSIDE],
    ["where private targets are allowed", ANYWHERE],
  ] as const
).entries()) {
  test(`${listening}: a URL that leads where it must not is refused when it is set and when it is changed`, async () => {
    await using cairn = await startCairn({ ...options, network: { resolve, ...options.network } });
    const { id } = await cairn.subscribe("https://agents.example.com/");
    for (const { url, status } of TARGETS) {
      const made = await cairn.post("/v1/webhooks", { url, events: ["turn.added"] });
      const changed = await cairn.patch(`/v1/webhooks/${id}`, { url });
      const expected = status[index];
      expect({ url, made: made.status, changed: changed.status }).toEqual({
        url,
        made: expected,
        changed: expected === 201 ? 200 : 400,
      } as never);
      if (expected === 400) expect(refusal(made)).toEqual({ status: 400, code: "invalid_request", param: "url" });
      else expect([made.body.url, changed.body.url]).toEqual([url, url]);
    }
  });
}

test("a name that leads elsewhere later is not followed there", async () => {
  let address = "127.0.0.1";
  await using cairn = await startCairn({ network: { resolve: () => Promise.resolve([address]) } });
  await using receiver = startReceiver();
  const { id } = await cairn.subscribe(receiver.url.replace("127.0.0.1", "agents.example.com"), { events: ["session.created"] });
  await cairn.createSession();
  await cairn.deliver();
  address = "10.0.0.1";
  await cairn.createSession();
  await cairn.deliver();
  expect(receiver.received).toHaveLength(1);
  expect((await cairn.deliveries(id))[0]).toMatchObject({
    status: "pending",
    response_code: null,
    error: expect.stringContaining("10.0.0.1"),
  });
});

test("what is set of private targets holds at once, for a URL that is set and for the next attempt; metadata services stay refused", async () => {
  await using cairn = await startCairn({ network: { loopback: false, resolve } });
  await using receiver = startReceiver();
  const allow = (allow_private: boolean | null) => cairn.ok(cairn.patch("/v1/settings", { webhooks: { allow_private } }));
  const statusOf = async (url: string) => (await cairn.post("/v1/webhooks", { url, events: ["turn.added"], enabled: false })).status;
  const statuses = async () => [
    await statusOf(receiver.url),
    await statusOf("http://inside.example.com/"),
    await statusOf("http://metadata.example.com/"),
    await statusOf("http://[::ffff:169.254.169.254]/"),
    await statusOf("http://[fd00:ec2::254]/"),
  ];
  expect(await statuses()).toEqual([400, 400, 400, 400, 400]);
  await allow(true);
  expect(await statuses()).toEqual([201, 201, 400, 400, 400]);
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  for (const [allowed, expected] of [
    [true, { status: "delivered", error: null }],
    [false, { status: "pending", response_code: null, error: expect.stringContaining("127.0.0.1 is this machine") }],
    [true, { status: "delivered", error: null }],
    [null, { status: "pending", response_code: null, error: expect.stringContaining("webhooks.allow_private") }],
  ] as const) {
    await allow(allowed);
    await cairn.createSession();
    await cairn.deliver();
    expect((await cairn.deliveries(id))[0]).toMatchObject(expected);
  }
  expect(receiver.received).toHaveLength(2);
});

test("a name that takes long to be looked up does not hold the request", async () => {
  await using cairn = await startCairn({ network: { resolve: () => new Promise(() => undefined) } });
  const making = cairn.subscribe("https://slow.example.com/");
  await cairn.clock.waiting(2_000);
  cairn.clock.advance({ ms: 2_000 });
  expect(await making).toMatchObject({ url: "https://slow.example.com/" });
});

test("what a receiver answers is shown to admin keys alone, as text whatever bytes it is of, and stands in no log", async () => {
  await using cairn = await startCairn({ network: { dial: dialHere } });
  const answers = [
    {
      sent: new Uint8Array([0x61, 0x00, 0x1b, 0x5b, 0x32, 0x4a, 0x0d, 0x0a, 0x09, 0x7f, 0xc2, 0x9b]),
      shown: "a\ufffd\ufffd[2J\r\n\t\ufffd\ufffd",
    },
    { sent: new Uint8Array([0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x62]), shown: "\ufffd\ufffd(\ufffd\ufffd\ufffdb" },
    { sent: new TextEncoder().encode(`{"object":"list"}</script>\u2028"\\`), shown: `{"object":"list"}</script>\u2028"\\` },
    // The last character would not fit: none of it is shown.
    { sent: new TextEncoder().encode(`${"x".repeat(2_047)}🫖 and more`), shown: "x".repeat(2_047) },
  ];
  await using receiver = startReceiver((_, count) => new Response(answers[count - 1]?.sent, { status: count % 2 === 0 ? 200 : 400 }));
  const { id } = await cairn.subscribe(publicUrl(receiver.url), { events: ["session.created"] });
  for (const _ of answers) {
    await cairn.createSession();
    await cairn.deliver();
  }
  const path = `/v1/webhooks/${id}/deliveries`;
  const { text } = await cairn.plain("GET", path);
  expect(text).not.toMatch(/[\p{Cc}]/u);
  expect(JSON.parse(text).data.map((delivery: any) => delivery.response_body)).toEqual(answers.map(({ shown }) => shown).reverse());
  const key = await cairn.newKey({ scopes: ["read", "write"] });
  expect(refusal(await cairn.get(path, { key }))).toMatchObject({ status: 403, code: "permission_denied" });
  const logged = cairn.logged.join("");
  for (const telling of ["[2J", "\ufffd", "script", "xxxx"]) expect(logged).not.toContain(telling);
  await cairn.restart();
  expect((await cairn.plain("GET", path)).text).toBe(text);
});

test("what a receiver answered is kept for public addresses only, not for this machine nor for a private network", async () => {
  const addresses: Record<string, string[]> = {
    "public.example.com": ["93.184.215.14"],
    "here.example.com": ["127.0.0.1"],
    "mapped.example.com": ["::ffff:127.0.0.1"],
    "inside.example.com": ["10.1.2.3"],
  };
  const network = { dial: dialHere, resolve: (name: string) => Promise.resolve(addresses[name] ?? []) };
  await using cairn = await startCairn({ network, environment: { webhooks: { allow_private: true } } });
  await using receiver = startReceiver(({ path }) => new Response(`what ${path} keeps to itself`, { status: 500 }));
  const { port } = new URL(receiver.url);
  const shown: Record<string, unknown> = {};
  for (const name of ["127.0.0.1", ...Object.keys(addresses)]) {
    const { id } = await cairn.subscribe(`http://${name}:${port}/${name}`, { events: ["session.created"] });
    await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`));
    await cairn.deliver();
    const [{ id: delivery, response_code, response_body, response_withheld, error }] = await cairn.deliveries(id);
    expect([name, response_code, error]).toEqual([name, 500, "The receiver answered 500."]);
    shown[name] = response_body;
    // Null alone could be an answer without a body.
    expect([name, response_withheld]).toEqual([name, response_body === null]);
    const { recent_attempts } = await cairn.ok(cairn.get(`/v1/webhooks/${id}/deliveries/${delivery}`));
    expect(recent_attempts).toEqual([expect.objectContaining({ response_body, response_withheld })]);
  }
  expect(shown).toEqual({
    "127.0.0.1": null,
    "public.example.com": "what /public.example.com keeps to itself",
    "here.example.com": null,
    "mapped.example.com": null,
    "inside.example.com": null,
  });
  const rows = await cairn.read((reader) => reader.rows(deliveries, { from: "", to: "~" }));
  const kept = rows.filter(({ row }) => JSON.stringify(row).includes("keeps to itself"));
  expect(kept).toHaveLength(1);
});
