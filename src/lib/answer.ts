/**
 * What an operation answers: JSON, or JSON of a record that was there already where it would have created one.
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
