/**
 * A small story in a Cairn, told through the API: an agent that moves a delivery, with turns, states, memories, a rollback and a
 * fork. A second one holds text that would be markup to a careless page, in every field that takes text.
 *
 * @module
 */
import type { CairnProcess } from "./process.ts";

export const HOSTILE = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;

export interface MainStory {
  main: string;
  fork: string;
}

export interface Story extends MainStory {
  hostile: string;
}

const text = (content: string) => ({ type: "text", content });

export async function tellStory(cairn: CairnProcess): Promise<Story> {
  return { ...(await tellMainStory(cairn)), hostile: await tellHostileStory(cairn) };
}

export async function tellMainStory(cairn: CairnProcess): Promise<MainStory> {
  const call = (path: string, body: object) => cairn.ok(cairn.post(`/v1/${path}`, body));
  const { id: main } = await call("sessions", {
    agent_id: "support-bot",
    user_id: "user-42",
    initial_state: { step: "greeting", order: null },
    metadata: { channel: "chat", language: "en" },
  });
  const turn = (input: object, output: object, more: object = {}) => call(`sessions/${main}/turns`, { input, output, ...more });
  const state = (state: object, reasoning: string) => call(`sessions/${main}/state`, { state, reasoning });
  const remember = (content: string, type: string, ...tags: string[]) => call("memory", { session_id: main, content, type, tags });

  await turn(text("Hi, where is my order A-17?"), text("It left the warehouse this morning and should be with you tomorrow."), {
    reasoning: "The carrier's page says “in transit”, expected delivery tomorrow before noon.",
    metadata: { model: "small", tokens: 412 },
  });
  const order = {
    id: "A-17",
    items: [
      { id: "lamp", qty: 1 },
      { id: "bulb", qty: 2 },
    ],
    address: { city: "Lyon", street: "quai Rambaud 3" },
  };
  await state({ step: "order_found", order }, "The order number was given.");
  await remember("The customer prefers e-mail to phone calls.", "preference", "contact");
  await turn(
    text("One more bulb please, and send it all to my office, rue Garibaldi 12."),
    text("Done: three bulbs, to rue Garibaldi 12."),
  );
  const changed = {
    id: "A-17",
    items: [
      { id: "bulb", qty: 3 },
      { id: "lamp", qty: 1 },
    ],
    address: { city: "Lyon", street: "rue Garibaldi 12" },
  };
  await state({ step: "order_changed", order: changed }, "Another bulb, and the office instead of the home address.");
  await remember("Her office is at rue Garibaldi 12 in Lyon.", "fact", "address");
  await turn(
    { type: "tool_call", content: "carrier.redirect(order: A-17, street: rue Garibaldi 12)" },
    { type: "error", content: "409 The parcel is out for delivery." },
  );
  const { id: fork } = await call(`sessions/${main}/fork`, { version: 2 });
  await call(`sessions/${fork}/state`, {
    state: { step: "second_parcel", order: changed, parcel: { items: ["bulb"] } },
    reasoning: "Send the third bulb on its own.",
  });
  await call(`sessions/${main}/rollback`, { version: 1, reason: "The carrier refused the new address." });
  await turn(text("Did it work?"), text("The parcel is on its way to your home already. I will send the third bulb separately."));
  await remember("She is allergic to peanuts and must not eat satay.", "fact", "health");
  return { main, fork };
}

async function tellHostileStory(cairn: CairnProcess): Promise<string> {
  const call = (path: string, body: object) => cairn.ok(cairn.post(`/v1/${path}`, body));
  const { id } = await call("sessions", {
    agent_id: HOSTILE,
    user_id: HOSTILE,
    initial_state: { [HOSTILE]: HOSTILE },
    metadata: { [HOSTILE]: HOSTILE },
  });
  const snapshot = { [HOSTILE]: HOSTILE };
  await call(`sessions/${id}/turns`, {
    input: text(HOSTILE),
    output: text(HOSTILE),
    reasoning: HOSTILE,
    metadata: snapshot,
    state_before: snapshot,
    state_after: snapshot,
  });
  await call(`sessions/${id}/state`, { state: { [HOSTILE]: "changed" }, reasoning: HOSTILE });
  await call("memory", { session_id: id, content: HOSTILE, type: HOSTILE.slice(0, 50), tags: [HOSTILE.slice(0, 50)], metadata: snapshot });
  return id;
}
