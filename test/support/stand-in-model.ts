/**
 * A model that coding agents can ask instead of their own: it speaks as much of each API as one prompt needs.
 *
 * @module
 */

export interface StandInModel extends Disposable {
  readonly url: string;
  /** Bodies of the requests for an answer. */
  readonly asked: readonly string[];
}

type Answer = (answer: string, body: { readonly model?: string; readonly stream?: boolean }) => Response;

/** By what the path of an API has in it. */
const APIS: Readonly<Record<string, Answer>> = {
  "/v1/messages": messages,
  "/responses": responses,
  "/chat/completions": completions,
  GenerateContent: geminiContent,
};

export function standInModel(answer: string): StandInModel {
  const asked: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const api = Object.keys(APIS).find((part) => pathname.endsWith(part));
      if (api === undefined) return Response.json({ input_tokens: 1 });
      const body = await request.text();
      asked.push(body);
      return APIS[api]?.(answer, JSON.parse(body)) ?? Response.error();
    },
  });
  return { url: server.url.origin, asked, [Symbol.dispose]: () => void server.stop(true) };
}

function stream(events: readonly object[], last = ""): Response {
  const named = (event: object) => ("type" in event ? `event: ${String(event.type)}\n` : "");
  const text = events.map((event) => `${named(event)}data: ${JSON.stringify(event)}\n\n`).join("") + last;
  return new Response(text, { headers: { "Content-Type": "text/event-stream" } });
}

/** Messages of Anthropic. */
function messages(answer: string, { model, stream: isStream }: Parameters<Answer>[1]): Response {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null, usage };
  if (isStream !== true) return Response.json({ ...message, content: [{ type: "text", text: answer }], stop_reason: "end_turn" });
  return stream([
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: answer } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
    { type: "message_stop" },
  ]);
}

/** Responses of OpenAI. */
function responses(answer: string): Response {
  const item = { type: "message", id: "msg_1", role: "assistant", status: "completed" };
  const content = [{ type: "output_text", text: answer, annotations: [] }];
  const usage = { input_tokens: 1, input_tokens_details: null, output_tokens: 1, output_tokens_details: null, total_tokens: 2 };
  return stream([
    { type: "response.created", response: { id: "resp_1" } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
    { type: "response.output_text.delta", item_id: item.id, output_index: 0, content_index: 0, delta: answer },
    { type: "response.output_item.done", output_index: 0, item: { ...item, content } },
    { type: "response.completed", response: { id: "resp_1", usage } },
  ]);
}

/** Chat completions of OpenAI. */
function completions(answer: string, { model }: Parameters<Answer>[1]): Response {
  const chunk = (delta: object, reason: string | null) => ({
    id: "chat_1",
    object: "chat.completion.chunk",
    created: 1,
    model,
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
  return stream([chunk({ role: "assistant", content: answer }, null), chunk({}, "stop")], "data: [DONE]\n\n");
}

/** The API of Gemini. */
function geminiContent(answer: string): Response {
  const candidates = [{ content: { role: "model", parts: [{ text: answer }] }, finishReason: "STOP", index: 0 }];
  return stream([{ candidates, usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 } }]);
}
