/**
 * Forms of the text that a row is stored as, and what a store does with rows of a table besides keeping them.
 *
 * @module
 */
import type { BareId } from "../../lib/ids.ts";
import type { JsonText } from "../../lib/json.ts";
import { memoize } from "../../lib/memoize.ts";
import type { Codec, Traits } from "./table.ts";

export const json = <Row>(): Codec<Row> => ({
  encode: (row) => JSON.stringify(row),
  decode: (value) => JSON.parse(value) as Row,
  toExport: (stored) => stored,
  fromExport: (value) => JSON.stringify(value),
});
/**
 * For rows that every request reads and nothing changes in place, and other processes write: a text that was parsed before is not parsed
 * again, which saves 3 % of a GET.
 */
export const parsedOnce = <Row>(codec: Codec<Row>): Codec<Row> => ({ ...codec, decode: memoize((stored: string) => codec.decode(stored)) });
/** Rows of this form, of which a store does more than keep them. */
export const having = <Row>(codec: Codec<Row>, traits: Traits<NoInfer<Row>>): Codec<Row> => ({ ...codec, ...traits });
export const changedAt = ({ updatedAt }: { updatedAt?: number }) => updatedAt;
export const takenUntil = ({ until }: { until: BareId }) => until;
export const text: Codec<string> = {
  encode: (row) => row,
  decode: (value) => value,
  toExport: (stored) => JSON.stringify(stored),
  fromExport: (value) => value as string,
};
/** A row that is JSON text of its own. */
export const jsonText: Codec<string> = { ...text, toExport: (stored) => stored, fromExport: (value) => JSON.stringify(value) };
/**
 * A row of which a part is ready JSON: first line the rest of the row, then that part as it is; in an export the part is a member
 * `body`. `JSON.stringify` writes no line feed.
 */
export const withBody = <Row extends { body: JsonText }>(): Codec<Row> => ({
  encode: ({ body, ...head }) => `${JSON.stringify(head)}\n${body}`,
  decode: (value) => {
    const body = bodyOf(value);
    return { ...JSON.parse(value.slice(0, value.length - body.length)), body } as Row;
  },
  toExport: (stored) => {
    const end = stored.indexOf("\n");
    return `${stored.slice(0, end - 1)},"body":${stored.slice(end + 1)}}`;
  },
  fromExport: (value) => {
    const { body, ...head } = value as { body: unknown };
    return `${JSON.stringify(head)}\n${JSON.stringify(body)}`;
  },
});
/** The part of such a row that is answered as it is. */
export function bodyOf(stored: string): JsonText {
  const body = stored.slice(stored.indexOf("\n") + 1);
  assertObject(body);
  return body as JsonText;
}
/** Looks at both ends alone, where a text that is cut off or is another one shows it. */
export function assertObject(stored: string): void {
  if ((!stored.startsWith("{") || !stored.endsWith("}")) && stored !== "null") throw new Error("the text is no object");
}
