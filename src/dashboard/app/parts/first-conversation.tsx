/**
 * First steps in a Cairn without any record: a key, and what sends a conversation with it, in the languages that there are clients for.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useLocation } from "preact-iso";
import { useCan } from "../access.ts";
import { api } from "../api.ts";
import { changed } from "../query.ts";
import { Choices } from "./choices.tsx";
import { CopyButton } from "./copy.tsx";
import { Form } from "./form.tsx";

const text = (content: string) => ({ type: "text", content });
/** A first conversation, as on the pages of the documentation: `$S` is the session, which the first request makes. */
const REQUESTS: readonly (readonly [path: string, body: object])[] = [
  ["sessions", { agent_id: "support-bot", user_id: "user-42" }],
  ["memory", { session_id: "$S", content: "The customer prefers e-mail to phone calls.", type: "preference" }],
  ["sessions/$S/turns", { input: text("Where is my order?"), output: text("It arrives tomorrow.") }],
  ["sessions/$S/state", { state: { order: "A-17", step: 1 } }],
  ["sessions/$S/context", { query: "How does the customer prefer to be contacted?" }],
];

const QUERY = "How does the customer prefer to be contacted?";
/** Stands for the key until one is made. */
const NO_KEY = "crn_…";

/** Snippets by what they are written in, each complete. */
const SNIPPETS: Readonly<Record<string, (key: string) => string>> = {
  curl: (key) =>
    [
      `KEY=${key}`,
      `c() { curl -s -H "X-API-Key: $KEY" -H "Content-Type: application/json" "${location.origin}/v1/$1" "\${@:2}"; echo; }`,
      ...REQUESTS.map(([path, body], index) => {
        const command = `c ${path} -d '${JSON.stringify(body).replace("$S", "'$S'")}'`;
        return index === 0 ? `S=$(${command} | grep -o 'sess_[0-9A-Za-z]*')` : command;
      }),
    ].join("\n"),
  TypeScript: (key) => `import { Cairn } from "cairn-client";

const cairn = new Cairn({ apiKey: "${key}", baseUrl: "${location.origin}" });

const session = await cairn.sessions.create({ agent_id: "support-bot", user_id: "user-42" });
await cairn.memories.add({ session_id: session.id, content: "The customer prefers e-mail to phone calls." });
await cairn.turns.add(session.id, {
  input: { type: "text", content: "Where is my order?" },
  output: { type: "text", content: "It arrives tomorrow." },
});
const context = await cairn.sessions.context(session.id, { query: "${QUERY}" });
console.log(context.memories);`,
  Python: (key) => `from cairn_client import Cairn

cairn = Cairn("${key}", "${location.origin}")

session = cairn.sessions.create(agent_id="support-bot", user_id="user-42")
cairn.memories.add(session_id=session.id, content="The customer prefers e-mail to phone calls.")
cairn.turns.add(
    session.id,
    input={"type": "text", "content": "Where is my order?"},
    output={"type": "text", "content": "It arrives tomorrow."},
)
print(cairn.sessions.context(session.id, query="${QUERY}").memories)`,
  MCP: (key) =>
    `claude mcp add --transport http cairn ${location.origin}/mcp --header "X-API-Key: ${key}" --header "X-Cairn-User: user-42"`,
};
/** Pages that say what a snippet needs. */
const GUIDES: Readonly<Record<string, string>> = { curl: "quickstart", TypeScript: "programs", Python: "programs", MCP: "mcp" };

export function FirstConversation() {
  const { route } = useLocation();
  const mayWrite = useCan("write");
  const language = useSignal("curl");
  const key = useSignal(NO_KEY);
  const lines = SNIPPETS[language.value]?.(key.value) ?? "";
  const run = async () => {
    let session = "";
    for (const [path, body] of REQUESTS) {
      const { id } = await api.post(path.replace("$S", session), "session_id" in body ? { ...body, session_id: session } : body);
      session ||= id ?? "";
    }
    route(`/dashboard/sessions/${session}`);
  };
  return (
    <section class="stack first">
      <p>Nothing is stored yet. Send a first conversation from here or from a program, or connect an agent: it appears on this page.</p>
      {mayWrite && <Form submit="Send them from here" onSubmit={run} />}
      <FirstKey apiKey={key} />
      <div class="bar">
        <Choices
          label="Written in"
          value={language.value}
          choices={Object.fromEntries(Object.keys(SNIPPETS).map((name) => [name, name]))}
          onChoice={(name) => (language.value = name)}
        />
        <a href={`/docs/guide/${GUIDES[language.value]}`}>What this needs and does</a>
      </div>
      <div class="json">
        <CopyButton text={lines} />
        <pre tabIndex={0} role="region" aria-label="A first conversation">
          {lines}
        </pre>
      </div>
    </section>
  );
}

/** Makes a key for the snippets; the one that this browser has is for the dashboard. */
function FirstKey({ apiKey }: { apiKey: Signal<string> }) {
  const mayAdmin = useCan("admin");
  const fill = async () => {
    const made = await api.createKey({ name: "first agent", scopes: ["read", "write"] });
    apiKey.value = made.key ?? NO_KEY;
    await changed(["keys"]);
  };
  if (apiKey.value !== NO_KEY)
    return <p class="note">The key is in the lines below, and is never shown again: copy them now. Under API keys it is “first agent”.</p>;
  if (!mayAdmin)
    return (
      <p>
        <code>{NO_KEY}</code> stands for a key, such as the one that Cairn printed at its first start.
      </p>
    );
  return <Form submit="Create a key and fill it in" onSubmit={fill} />;
}
