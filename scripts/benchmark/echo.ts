/**
 * The limit of HTTP: a bare `Bun.serve` that reads the body and answers bytes it has.
 *
 * @module
 */
import { obey } from "./child.ts";

/** The bodies to answer with, and a piece of the path that tells each from the others. */
export interface EchoOrder {
  answers: { path: string; body: string }[];
}

let answers: EchoOrder["answers"] = [];
const headers = { "Content-Type": "application/json" };

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    if (request.method === "POST") await request.arrayBuffer();
    const only = answers[0] as { body: string };
    const answer = answers.length === 1 ? only : (answers.find(({ path }) => request.url.includes(path)) ?? only);
    return new Response(answer.body, { headers });
  },
});

obey((order: EchoOrder) => {
  answers = order.answers;
  return Promise.resolve(server.port as number);
});
