/**
 * Small benchmarks, of this project's own texts, in the forms in which others publish theirs.
 *
 * @module
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const FACTS = [
  "The lighthouse keeper painted the boat green.",
  "My accordion is in the workshop of Ilse.",
  "We planted forty tulips behind the greenhouse.",
  "The ferry to Rauma leaves at noon.",
];
const ASKED = [
  "Which colour did the lighthouse keeper paint the boat?",
  "Where is the accordion?",
  "How many tulips did we plant behind the greenhouse?",
  "When does the ferry to Rauma leave?",
];

export const longMemEval = () =>
  [0, 1].map((i) => ({
    question_id: i === 0 ? "gpt_1" : "gpt_2_abs",
    question_type: "single-session-user",
    question: i === 0 ? ASKED[0] : "What is the name of the dentist?",
    answer: i === 0 ? "green" : 0,
    question_date: "2023/05/30 (Tue) 23:40",
    haystack_session_ids: ["answer_1", "ultrachat_2"],
    haystack_dates: ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 08:11"],
    haystack_sessions: [
      [
        { role: "user", content: FACTS[0], has_answer: true },
        { role: "assistant", content: "A fine colour.", has_answer: false },
      ],
      [
        { role: "user", content: FACTS[1] },
        { role: "assistant", content: "" },
      ],
    ],
    answer_session_ids: ["answer_1"],
  }));

const qa = (question: unknown, evidence: unknown, category: unknown) => ({ question, answer: "…", evidence, category });

export const locomo = () => [
  {
    sample_id: "conv-1",
    conversation: {
      speaker_a: "Ada",
      speaker_b: "Ilse",
      session_1_date_time: "1:56 pm on 8 May, 2023",
      session_1: [
        { speaker: "Ada", dia_id: "D1:1", text: FACTS[0] },
        {
          speaker: "Ilse",
          dia_id: "D1:2",
          img_url: ["x"],
          blip_caption: "a photo of an accordion in a workshop",
          query: "x",
          text: "Look!",
        },
      ],
      session_2_date_time: "1:14 pm on 25 May, 2023",
      session_2: [
        { speaker: "Ada", dia_id: "D2:1", text: FACTS[2] },
        { speaker: "Ilse", dia_id: "D2:2", text: FACTS[3] },
      ],
    },
    event_summary: {},
    observation: {},
    session_summary: {},
    qa: [
      qa(ASKED[0], ["D1:1"], 4),
      qa(ASKED[1], ["D1:02; D9:9"], 1),
      qa(ASKED[2], ["D2:1 D2:2"], 2),
      qa(ASKED[3], ["D:2"], 3),
      { question: "Which colour did Ilse paint the boat?", adversarial_answer: "green", evidence: ["D1:1"], category: 5 },
    ],
  },
];

export const realTalk = () => ({
  name: { speaker_1: "Ada", speaker_2: "Ilse" },
  session_1_date_time: "29.12.2023, 11:23:21",
  session_1: [0, 1, 2].map((i) => ({
    clean_text: FACTS[i],
    speaker: i % 2 === 0 ? "Ada" : "Ilse",
    date_time: "29.12.2023, 11:23:21",
    dia_id: `D1:${i + 1}`,
    img_file: [],
    img_url: [],
  })),
  events_session_1: { agent_a: [], agent_b: [] },
  qa: [qa(ASKED[0], ["D1:1"], 1), qa(ASKED[1], ["D1:2."], 3), qa(ASKED[2], ["D1:1-D1:3"], 2)],
});

export const beamChat = () => [
  {
    batch_number: 1,
    time_anchor: "March-15-2024",
    turns: [
      [
        { role: "user", id: 0, time_anchor: "March-15-2024", index: "1,1", question_type: "main_question", content: FACTS[0] },
        { role: "assistant", id: 1, content: FACTS[1] },
      ],
    ],
  },
  { batch_number: 2, time_anchor: "March-20-2024", turns: [[{ role: "user", id: 2, content: FACTS[2] }]] },
];

export const beamQuestions = () => ({
  abstention: [{ question: "What is the name of the dentist?", ideal_response: "…", rubric: [] }],
  information_extraction: [{ question: ASKED[0], answer: "green", source_chat_ids: [0], rubric: [] }],
  knowledge_update: [{ question: ASKED[2], answer: "forty", source_chat_ids: { original_info: [2], updated_info: [7] }, rubric: [] }],
});

export const plain = () => ({
  kind: "retrieval",
  corpora: [
    {
      language: "en",
      memories: FACTS.map((text, i) => ({ id: `m${i}`, text })),
      queries: ASKED.map((text, i) => ({ text, category: i < 2 ? "direct" : "other", relevant: [`m${i}`] })),
    },
    {
      id: "talk",
      language: "de",
      conversations: [{ id: "c1", messages: [{ id: 1, text: "Die Fähre fährt mittags." }] }],
      queries: [
        { id: "q1", text: "Wann fährt die Fähre?", relevant: [1] },
        { text: "Wie heißt der Zahnarzt?", relevant: [] },
      ],
    },
  ],
});

export function writeJson(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(value));
}
