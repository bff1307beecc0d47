/**
 * A turn that was found by its words: where the first of them stands, and the way to it.
 *
 * @module
 */
import type { Turn } from "../api.ts";
import { number } from "../words.ts";
import { Time } from "./time.tsx";

/** Characters around the word that was found. */
const BEFORE = 60;
const LENGTH = 220;

export function FoundTurn({ turn, words }: { turn: Turn; words: string }) {
  const { id, session_id: session, turn_number, occurred_at, created_at } = turn;
  const { side, text } = excerptOf(turn, words);
  return (
    <li data-row tabIndex={-1} class="found-turn">
      <a href={`/dashboard/sessions/${session}#${id}`} dir="auto">
        {text}
      </a>
      <span class="quiet">
        <span class="kind">{side}</span> turn {number(turn_number)} of <code>{session}</code> · <Time at={occurred_at ?? created_at} />
      </span>
    </li>
  );
}

/** The part of a turn that has one of the words as it was written, or else its beginning: words are found whatever their endings. */
function excerptOf({ input, output, reasoning = "" }: Turn, words: string): { side: string; text: string } {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const sides = { in: input.content, out: output.content, reasoning };
  for (const [side, content] of Object.entries(sides)) {
    const lower = content.toLowerCase();
    const places = wanted.map((word) => lower.indexOf(word)).filter((place) => place !== -1);
    if (places.length > 0) return { side, text: partOf(content, Math.max(0, Math.min(...places) - BEFORE)) };
  }
  return { side: "in", text: partOf(input.content, 0) };
}

function partOf(text: string, from: number): string {
  const part = text.slice(from, from + LENGTH);
  return `${from > 0 ? "… " : ""}${part}${from + LENGTH < text.length ? " …" : ""}`;
}
