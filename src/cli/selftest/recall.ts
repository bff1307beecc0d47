/**
 * Everyday questions find the memory that answers them, though they share hardly a word with it.
 *
 * @module
 */
import { OwnServer } from "./own-server.ts";

const USER = "selftest reader";
/** A question, and the memory that answers it. */
const QUESTIONS: readonly (readonly [question: string, memory: string])[] = [
  ["Does she have any pets?", "Lives in Lisbon with two dogs."],
  ["What can't he eat?", "Peanuts give him a rash."],
  ["How does she get to work?", "Cycles to the office unless it snows."],
  ["What is his job?", "Repairs violins in a small workshop."],
  ["When is her birthday?", "Was born on the 3rd of May 1988."],
  ["Which languages does she speak?", "Grew up with Portuguese and learned Danish later."],
  ["What does he do for exercise?", "Swims two kilometres every Tuesday."],
  ["Who is her husband?", "Is married to Tomás, a baker."],
  ["Where do they go on holiday?", "The family spends August at a lake in Finland."],
  ["What car does he drive?", "Bought an old Volvo estate last year."],
  ["Does he drink alcohol?", "Gave up wine and beer in January."],
  ["What music does she like?", "Goes to every jazz concert in town."],
  ["How should I send her the invoice?", "Wants bills as PDF by e-mail, never on paper."],
  ["What was wrong with the delivery?", "The parcel arrived with a broken lamp."],
  ["Does he have children?", "His twins started school in autumn."],
  ["What is the deadline of the project?", "The prototype has to be finished by the end of June."],
  ["Wie heißt ihre Katze?", "Her cat is called Miso."],
  ["¿Dónde estudió?", "Took a degree in chemistry at Leiden."],
  ["Pourquoi a-t-il déménagé ?", "Left Berlin because the rent had doubled."],
  ["彼女の好きな飲み物は何ですか", "Always orders green tea."],
];
/** Few enough to be a sign of a broken encoder, and not of a processor that rounds otherwise: 18 are found. Asked without a threshold. */
const WANTED = 15;

export async function checkRecall(directory: string, key: string): Promise<string> {
  await using server = await OwnServer.start(directory, key);
  const { cairn } = server;
  for (const [, content] of QUESTIONS) await cairn.memories.add({ user_id: USER, content });
  let first = 0;
  let found = 0;
  for (const [query, memory] of QUESTIONS) {
    const { data } = await cairn.memories.search({ user_id: USER, query, limit: 3, threshold: 0 });
    if (data[0]?.content === memory) first++;
    if (data.some(({ content }) => content === memory)) found++;
  }
  const said = `of ${QUESTIONS.length} questions ${first} have the memory that answers them first, ${found} among three`;
  if (found < WANTED) throw new Error(`${said}; at least ${WANTED} should`);
  return said;
}
