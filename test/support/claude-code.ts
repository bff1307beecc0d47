/**
 * Claude Code as npm installs it, and a model that it can ask instead of its own.
 *
 * @module
 */
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Part } from "./platform.ts";

const VERSION = "2.1.332";
const FOLDER = join(dirname(dirname(import.meta.dir)), ".tools", `claude-code-${VERSION}`);
const PACKAGE = join(FOLDER, "node_modules/@anthropic-ai/claude-code");

/** Its command; it takes 400 MB, so that only `scripts/test --all` asks for it. */
export const CLAUDE = join(FOLDER, "node_modules/.bin/claude");

let problem: string | undefined;
let isAsked = false;

/** Installs it with the first question. */
export const CLAUDE_CODE: Part = {
  name: "Claude Code",
  problem() {
    if (!isAsked) problem = install();
    isAsked = true;
    return problem;
  },
};

function install(): string | undefined {
  if (Bun.which("npm") === null || Bun.which("node") === null) return "there is no npm";
  const runs = () =>
    existsSync(CLAUDE) && Bun.spawnSync([CLAUDE, "--version"], { env: {}, stdout: "ignore", stderr: "ignore" }).exitCode === 0;
  if (runs()) return undefined;
  mkdirSync(FOLDER, { recursive: true });
  const options = { stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
  Bun.spawnSync(
    ["npm", "install", "--prefix", FOLDER, "--ignore-scripts", "--no-audit", "--no-fund", `@anthropic-ai/claude-code@${VERSION}`],
    options,
  );
  // Puts the executable of this system in its place.
  if (existsSync(PACKAGE)) Bun.spawnSync(["node", "install.cjs"], { ...options, cwd: PACKAGE });
  return runs() ? undefined : "npm does not install it";
}

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
