/**
 * Jumps within a session: to a turn or a state by its number, or to a time. The address after `#` says where, so that it is a link.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { api, type Session, type Turn } from "../api.ts";
import { idAt, timeOf } from "../ids.ts";
import { toast } from "./toast.tsx";

const PLACES = { turn: "Turn", version: "State", at: "Time" };
type Place = keyof typeof PLACES;

export function Jump({ session }: { session: Session }) {
  const place = useSignal<Place>("turn");
  const text = useSignal("");
  const jump = async (event: Event) => {
    event.preventDefault();
    try {
      const anchor = await anchorFor(session, place.value, text.value);
      if (anchor === null) toast(`There is no such ${PLACES[place.value].toLowerCase()}.`);
      else location.hash = anchor;
    } catch (error) {
      toast((error as Error).message);
    }
  };
  return (
    <form class="jump row" aria-label="Go to" onSubmit={(event) => void jump(event)}>
      <select
        aria-label="Go to a"
        value={place}
        onChange={({ currentTarget }) => {
          place.value = currentTarget.value as Place;
          text.value = "";
        }}
      >
        {Object.entries(PLACES).map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
      <input
        key={place.value}
        type={place.value === "at" ? "datetime-local" : "number"}
        min={place.value === "turn" ? 1 : 0}
        step={1}
        aria-label={`${PLACES[place.value]} to go to`}
        required
        value={text}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
      />
      <button class="small">Go</button>
    </form>
  );
}

/** @returns null where there is no such place */
async function anchorFor(session: Session, place: Place, text: string): Promise<string | null> {
  if (place === "at") return Number.isNaN(Date.parse(text)) ? null : `at-${Date.parse(text)}`;
  const number = Number(text);
  if (place === "version") return number <= session.state_version ? `version-${number}` : null;
  return (await turnNumbered(session, number))?.id ?? null;
}

const PAGE = 100;
/** So near the pages are read one after another; several turns can have one millisecond. */
const NEAR = 5 * PAGE;
/** Halving the life of a session takes fewer, however long it is. */
const TRIES_MAX = 60;

/** Turns have numbers and ids that rise with time: that of a number is searched for between two that are known. */
async function turnNumbered(session: Session, number: number): Promise<Turn | undefined> {
  let from = Date.parse(session.created_at);
  let until = Date.parse(session.updated_at) + 1;
  const guess = number <= PAGE ? 0 : Math.min(1, number / (session.turn_count + 1));
  let after = turnIdAt(from + (until - from) * guess);
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const { data, has_more } = await api.turnsOf(session.id, { order: "asc", status: "all", limit: PAGE, starting_after: after });
    const found = data.find((turn) => turn.turn_number === number);
    const last = data.at(-1);
    if (found !== undefined) return found;
    if (last !== undefined && last.turn_number < number) {
      if (!has_more) return undefined;
      from = timeOf(last.id);
      if (number - last.turn_number <= NEAR) {
        after = last.id;
        continue;
      }
    } else until = timeOf(after);
    if (until <= from) return undefined;
    after = turnIdAt((from + until) / 2);
  }
  return undefined;
}

const turnIdAt = (ms: number) => `turn_${idAt(Math.floor(ms))}`;
