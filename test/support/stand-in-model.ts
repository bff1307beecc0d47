/**
 * A model that Claude Code can ask instead of its own.
 *
 * @module
 */
/** A server that speaks as much of the Messages API as one prompt needs, and keeps what it was asked. */
export function standInModel(answer: string): { url: string; asked: string[] } & Disposable {
  const asked: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname !== "/v1/messages") return Response.json({ input_tokens: 1 });
      const body = await request.text();
      asked.push(body);
      const { model, stream } = JSON.parse(body) as { model: string; stream?: boolean };
      const usage = { input_tokens: 1, output_tokens: 1 };
      const message = {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage,
      };
      if (stream !== true) return Response.json({ ...message, content: [{ type: "text", text: answer }], stop_reason: "end_turn" });
      const events = [
        { type: "message_start", message },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: answer } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
        { type: "message_stop" },
      ];
      const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
      return new Response(text, { headers: { "Content-Type": "text/event-stream" } });
    },
  });
  return { url: server.url.origin, asked, [Symbol.dispose]: () => void server.stop(true) };
}
