/**
 * Answer of an operation: JSON, or JSON of a record that was there already where it would have created one.
 *
 * @module
 */
import type { JsonText } from "./json.ts";

/** The answer to a request to create a record that is there: its status is 200, where that of a new one is 201. */
export class Existing {
  readonly json: JsonText;

  constructor(json: JsonText) {
    this.json = json;
  }
}

export type AnswerJson = JsonText | Existing;

/** The status and the JSON of an answer. @param status - unless the record was there */
export function statusAndJson(answer: AnswerJson, status: number): { status: number; json: JsonText } {
  return answer instanceof Existing ? { status: 200, json: answer.json } : { status, json: answer };
}

/** An answer as the commit of its change gives it. */
export interface Answered<Json extends AnswerJson> {
  readonly json: Json;
  /** Hashes of the users whose content it shows: where it is kept for an Idempotency-Key it is erased with theirs. */
  readonly users: readonly string[];
  /**
   * True if keeping it asks for space in a store at its limit: `if large` after a change that makes some, `never` after one that makes as
   * much as the answer takes, or that is done at the limit, too.
   */
  readonly asksForRoom: "always" | "if large" | "never";
}
