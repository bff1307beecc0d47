/**
 * Files that are Cairn's alone, in folders from which agents load every file. Pure.
 *
 * @module
 */

/** @param command - line for a shell */
export type OwnText = (command: string) => string;

/** Seconds after which the agent gives a hook up; it ends by itself before. */
const TIMEOUT_SECONDS = 5;

/** Hooks of Copilot, which names the event in no input. VS Code reads the same file. */
export function copilotHooks(command: string): string {
  const hook = (event: string) => {
    const line = `${command} --event ${event}`;
    return [{ type: "command", bash: line, powershell: line.startsWith('"') ? `& ${line}` : line, timeoutSec: TIMEOUT_SECONDS }];
  };
  const hooks = Object.fromEntries(["sessionStart", "agentStop"].map((event) => [event, hook(event)]));
  return `${JSON.stringify({ version: 1, hooks }, undefined, 2)}\n`;
}

/**
 * Plugin of OpenCode. Its model is sent the texts of a conversation with each request, since OpenCode keeps them in no message; those of
 * conversations within another, which its model holds with itself, are left alone.
 */
export function openCodePlugin(command: string): string {
  return PLUGIN.replace("COMMAND_LINE", () => JSON.stringify(command));
}

const PLUGIN = `// Runs cairn hook at the events of OpenCode. Written by cairn setup, which replaces this file and removes it.
import { spawn } from "node:child_process";

const COMMAND = COMMAND_LINE;
const WAIT_MS = 5000;

/** Returns the text for the model, or nothing: whatever happens, OpenCode continues. */
function hook(input) {
  return new Promise((resolve) => {
    let printed = "";
    const done = () => {
      clearTimeout(timer);
      try {
        resolve(JSON.parse(printed).text);
      } catch {
        resolve(undefined);
      }
    };
    const timer = setTimeout(done, WAIT_MS);
    try {
      const child = spawn(COMMAND, { shell: true, stdio: ["pipe", "pipe", "ignore"], windowsHide: true });
      child.stdout.setEncoding("utf8").on("data", (text) => (printed += text));
      child.stdin.on("error", done);
      child.on("error", done).on("close", done);
      child.stdin.end(JSON.stringify(input));
    } catch {
      done();
    }
  });
}

export const Cairn = async ({ client, directory }) => {
  const sessions = new Map();

  async function begun(id) {
    const { data } = await client.session.get({ path: { id } }).catch(() => ({}));
    if (data?.parentID !== undefined) return undefined;
    const common = { session_id: id, cwd: directory, version: data?.version };
    const session = { texts: [], prompt: undefined, isCompacting: false, last: Promise.resolve() };
    // One event after the other.
    session.send = (name, more) =>
      (session.last = session.last.then(async () => {
        const text = await hook({ ...common, hook_event_name: name, ...more });
        if (typeof text === "string") session.texts.push(text);
      }));
    await session.send("session.created");
    return session;
  }

  const sessionOf = (id) => {
    if (!sessions.has(id)) sessions.set(id, begun(id));
    return sessions.get(id);
  };

  return {
    "chat.message": async (_, { message, parts }) => {
      const session = await sessionOf(message.sessionID);
      if (session === undefined) return;
      session.prompt = message.id;
      const said = parts.filter((part) => part.type === "text" && !part.synthetic);
      await session.send("chat.message", { prompt_id: message.id, prompt: said.map((part) => part.text).join("\\n\\n") });
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      if (sessions.has(sessionID)) system.push(...((await sessions.get(sessionID))?.texts ?? []));
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      const session = await sessions.get(sessionID);
      if (session !== undefined) session.isCompacting = true;
    },
    "experimental.text.complete": async ({ sessionID }, { text }) => {
      const session = await sessions.get(sessionID);
      if (session?.prompt !== undefined && !session.isCompacting) await session.send("text.complete", { prompt_id: session.prompt, text });
    },
    event: async ({ event: { type, properties } }) => {
      if (type === "session.deleted") sessions.delete(properties?.info?.id);
      const session = await sessions.get(properties?.sessionID);
      if (session === undefined) return;
      if (type === "session.compacted") {
        Object.assign(session, { texts: [], isCompacting: false });
        await session.send("session.created");
      }
      if (type === "session.idle" && session.prompt !== undefined) await session.send(type, { prompt_id: session.prompt });
    },
  };
};
`;
