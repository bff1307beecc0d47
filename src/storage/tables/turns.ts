/**
 * Table of turns.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { timeKey, turnNameKey } from "../keys.ts";
import { AnyObject, IdText, Instant, IsoTime, Text, Whole } from "../row-types.ts";
import { type Codec, lastId, sessionOf, table, TWO_IDS } from "./table.ts";

/** Two halves of one JSON object, each without its braces, and perhaps JSON of more; a line each. */
const halves: Codec<TurnRow> = {
  encode: ({ shown, rest, more }) => `${shown}\n${rest}${more === undefined ? "" : `\n${JSON.stringify(more)}`}`,
  decode: (value) => {
    const [shown, rest, more] = value.split("\n", 3);
    if (shown === undefined || rest === undefined) throw new Error("the text is no turn");
    return { shown, rest, ...(more === undefined ? {} : { more: JSON.parse(more) as NonNullable<TurnRow["more"]> }) };
  },
  toExport: (stored) => {
    const [shown, rest, more] = stored.split("\n", 3);
    return `{"shown":{${shown}},"rest":{${rest}}${more === undefined ? "" : `,"more":${more}`}}`;
  },
  fromExport: (value) => {
    const { shown, rest, more } = value as { shown: object; rest: object; more?: object };
    const halves = `${JSON.stringify(shown).slice(1, -1)}\n${JSON.stringify(rest).slice(1, -1)}`;
    return more === undefined ? halves : `${halves}\n${JSON.stringify(more)}`;
  },
};

/** The key of the turn that an entry is of. */
const turnOf = (entry: string): string => sessionOf(entry) + lastId(entry);

const TurnMore = Type.Object({
  /** The version of the state that was current; rows of before are without it. */
  stateVersion: Type.Optional(Whole),
  externalId: Type.Optional(Text),
  /** Time at which it happened, in a session that has turns of other times than those of their ids. */
  time: Type.Optional(Instant),
  /** Tokens of input and output in a context (`token-count.ts`). */
  tokens: Type.Optional(Whole),
  /** Kinds of secrets in it, where it was to be marked with them. */
  secrets: Type.Optional(Type.Array(Text)),
});

/** A turn never changes: it is kept as the two halves of its JSON object, because the context shows only the first. */
export interface TurnRow {
  /** `"id":…,"input":…,"output":…,"created_at":…` */
  shown: string;
  /** `"session_id":…` and all other members, but those that depend on who looks, or that indexes need. */
  rest: string;
  more?: Static<typeof TurnMore>;
}
export const turns = table(
  "turns",
  TWO_IDS,
  Type.Object({
    shown: Type.Object({ id: IdText("turn"), input: AnyObject, output: AnyObject, created_at: IsoTime }),
    rest: Type.Object({ session_id: IdText("sess"), turn_number: Whole }),
    more: Type.Optional(TurnMore),
  }),
  halves,
  {
    byExternalId: {
      of: (key, { more }) => (more?.externalId === undefined ? undefined : turnNameKey(sessionOf(key), more.externalId) + lastId(key)),
      record: turnOf,
    },
    byTime: {
      of: (key, { more }) => (more?.time === undefined ? undefined : sessionOf(key) + timeKey(more.time) + lastId(key)),
      record: turnOf,
    },
  },
);
