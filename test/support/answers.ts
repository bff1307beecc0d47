/**
 * What tests compare of an answer when its wording does not matter.
 *
 * @module
 */
import type { Answer, Cairn, RequestOptions } from "./cairn.ts";

export interface Refusal {
  status: number;
  code: string;
  param?: string | undefined;
}

/** An error without its text; an answer of success fails the comparison, since it has no code. */
export function refusal({ status, body }: Answer): Refusal {
  return { status, code: body.error?.code, param: body.error?.param };
}

/** An error with its text, as a client shows it. */
export function errorOf(answer: Answer): Refusal & { message: string } {
  return { ...refusal(answer), message: answer.body.error?.message };
}

export function idsOf(records: readonly { id: string }[]): string[] {
  return records.map(({ id }) => id);
}

/** In the order of lists. What is made at once is not made in the order in which it was asked for. */
export function newestFirst<Item extends { id: string }>(records: readonly Item[]): Item[] {
  return records.toSorted((a, b) => (a.id < b.id ? 1 : -1));
}

/** Every page of a list, fetched as a client would: each after the last id of the one before. */
export async function pagesOf(cairn: Cairn, path: string, options?: RequestOptions): Promise<any[]> {
  const pages: any[] = [];
  for (let after = ""; ;) {
    const page = await cairn.ok(cairn.get(`${path}${path.includes("?") ? "&" : "?"}${after}`, options));
    pages.push(page);
    if (page.has_more !== true) return pages;
    after = `starting_after=${page.last_id}`;
  }
}

/** A JSON object that nests this many levels. */
export function nested(levels: number): Record<string, unknown> {
  let value: Record<string, unknown> = {};
  for (let level = 1; level < levels; level++) value = { in: value };
  return value;
}

/** An id of a record that was never made, but could have been. */
export function unknownId(prefix: string): string {
  return `${prefix}_0VQk3aB4x1Zq`;
}
