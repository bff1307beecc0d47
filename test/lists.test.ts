import { expect, test } from "bun:test";
import { refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";

test("a filter that another list has is refused by a list without it, one that no list has is ignored", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const turns = `/v1/sessions/${session.id}/turns`;
  const versions = `/v1/sessions/${session.id}/versions`;
  const webhook = await cairn.ok(cairn.post("/v1/webhooks", { url: "https://example.com/", events: ["turn.added"] }));
  for (const { list, param } of [
    { list: "/v1/sessions", param: "session_id" },
    { list: "/v1/sessions", param: "type" },
    { list: "/v1/sessions", param: "order" },
    { list: "/v1/memory", param: "agent_id" },
    { list: "/v1/memory", param: "action" },
    { list: "/v1/traces", param: "agent_id" },
    { list: "/v1/traces", param: "tags" },
    { list: turns, param: "created_after" },
    { list: turns, param: "user_id" },
    { list: versions, param: "order" },
    { list: "/v1/api_keys", param: "user_id" },
    { list: "/v1/webhooks", param: "type" },
    { list: `/v1/webhooks/${webhook.id}/deliveries`, param: "created_before" },
  ]) {
    const refused = refusal(await cairn.get(`${list}?limit=5&${param}=x`));
    expect({ list, ...refused }).toEqual({ list, status: 400, code: "invalid_request", param });
    // Sent twice, empty or escaped it is the same.
    expect(refusal(await cairn.get(`${list}?${param.replace("e", "%65")}=&${param}=`))).toMatchObject({ status: 400, param });
    expect((await cairn.get(`${list}?limit=5&unknown=x&constructor=1&__proto__=2`)).status).toBe(200);
  }
  const { message } = (await cairn.get("/v1/webhooks?type=x")).body.error;
  expect(message).toBe("type is not a parameter of this list; it has limit, starting_after.");
  // What is no list takes no notice.
  expect((await cairn.get(`/v1/sessions/${session.id}?limit=x&user_id=y`)).status).toBe(200);
});

test("created_after and created_before leave out the very time they name, and are refused where they are none", async () => {
  await using cairn = await startCairn();
  const made: { session: string; memory: string }[] = [];
  for (let i = 0; i < 4; i++) {
    const session = await cairn.createSession({ user_id: i % 2 === 0 ? "even" : "odd" });
    made.push({ session: session.id, memory: (await cairn.addMemory(session.id, `Parcel ${i} came.`)).id });
    cairn.clock.advance({ ms: 1 });
  }
  for (const { list, name } of [
    { list: "/v1/sessions", name: "session" },
    { list: "/v1/memory", name: "memory" },
  ] as const) {
    const numbers = async (query: string) => {
      const { data } = await cairn.ok(cairn.get(`${list}?${query}`));
      return data.map(({ id }: { id: string }) => made.findIndex((one) => one[name] === id));
    };
    expect(await numbers("created_after=2026-05-07T08:00:00.001Z")).toEqual([3, 2]);
    expect(await numbers("created_before=2026-05-07T08:00:00.001Z")).toEqual([0]);
    expect(await numbers("created_after=2026-05-07T10:00:00+02:00&created_before=2026-05-07T08:00:00.003Z")).toEqual([2, 1]);
    expect(await numbers("created_after=2026-05-07T08:00:00Z&user_id=odd")).toEqual([3, 1]);
    expect(await numbers("created_before=2026-05-07T08:00:00.003Z&limit=2")).toEqual([2, 1]);
    expect(await numbers(`created_before=2026-05-07T08:00:00.003Z&starting_after=${made[1]![name]}`)).toEqual([0]);
    for (const param of ["created_after", "created_before"])
      expect(refusal(await cairn.get(`${list}?${param}=yesterday`))).toMatchObject({ status: 400, param });
  }
});
