/**
 * Messages of a conversation as turns (pure): those of one side after another are one text, and a text that is too long has turns of
 * its own.
 *
 * @module
 */
import { TEXT_LENGTH_MAX } from "../hook/transcript.ts";
import type { SourceTurn } from "./found.ts";
import { boundedName, occurredAt, piecesOf } from "./values.ts";

export interface Message {
  readonly id: string;
  readonly side: "user" | "assistant";
  readonly text: string;
  /** Unix milliseconds. */
  readonly at: number | undefined;
  readonly model?: string | undefined;
}

const MODEL_LENGTH_MAX = 200;
const PART_DIGITS = 8;
const NAME_LENGTH_MAX = 256 - ":answer".length - PART_DIGITS;

/** @param now - Unix milliseconds; @param since - turns of before, and of no time, are left out */
export function turnsOfMessages(messages: Iterable<Message>, now: number, since: number | undefined): readonly SourceTurn[] {
  const joined: { first: Message; inputs: string[]; outputs: string[]; model?: string | undefined }[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    const isSame = last !== undefined && (message.side === "assistant" || last.outputs.length === 0);
    const turn = isSame ? last : { first: message, inputs: [], outputs: [], model: undefined };
    if (!isSame) joined.push(turn);
    (message.side === "user" ? turn.inputs : turn.outputs).push(message.text);
    turn.model ??= message.model;
  }
  const chosen = since === undefined ? joined : joined.filter(({ first: { at } }) => at !== undefined && at >= since);
  return chosen.flatMap(({ first, inputs, outputs, model }) => partsOf(first, inputs.join("\n\n"), outputs.join("\n\n"), model, now));
}

/** Parts of a turn: the answer begins where the question ends. */
function partsOf({ id, at }: Message, input: string, output: string, model: string | undefined, now: number): SourceTurn[] {
  const inputs = piecesOf(input.toWellFormed(), TEXT_LENGTH_MAX);
  const outputs = piecesOf(output.toWellFormed(), TEXT_LENGTH_MAX);
  const parts = inputs.length + outputs.length - 1;
  const name = boundedName(id, NAME_LENGTH_MAX);
  return Array.from({ length: parts }, (_, i) => ({
    external_id: i === 0 ? name : `${name}:${i + 1}`,
    input: { type: "text", content: inputs[i] ?? "" },
    output: { type: "text", content: outputs[i - inputs.length + 1] ?? "" },
    ...occurredAt(at, now),
    metadata: {
      ...(model === undefined ? {} : { model: model.slice(0, MODEL_LENGTH_MAX).toWellFormed() }),
      ...(parts === 1 ? {} : { part: i + 1, parts }),
    },
  }));
}
