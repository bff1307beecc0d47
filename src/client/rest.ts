/**
 * The methods of HTTP, as the operations of the client use them.
 *
 * @module
 */
import { checkFilters, checkGiven } from "./filters.ts";
import type { CallOptions, Http } from "./http.ts";
import { listing, type Listing } from "./page.ts";

interface IdList {
  readonly data: readonly unknown[];
  readonly has_more: boolean;
  readonly last_id: string | null;
}

/** As many as a page can have: for pages that are only read to iterate. */
const PAGE_MAX = 100;

const CONDITIONS = ["expected_version"];

export class Rest {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  get<Answer>(path: string, query: object = {}, options?: CallOptions): Promise<Answer> {
    checkFilters(query);
    return this.#http.call({ method: "GET", path, query }, options);
  }

  post<Answer>(path: string, body: object, options?: CallOptions): Promise<Answer> {
    checkGiven(body, CONDITIONS);
    return this.#http.call({ method: "POST", path, body }, options);
  }

  patch<Answer>(path: string, body: object, options?: CallOptions): Promise<Answer> {
    checkGiven(body, CONDITIONS);
    return this.#http.call({ method: "PATCH", path, body }, options);
  }

  /** @param gone - the answer when the first one was lost, and the next one says that there is nothing to delete */
  delete<Answer>(path: string, query: object, gone: Answer | undefined, options?: CallOptions): Promise<Answer> {
    return this.#http.call({ method: "DELETE", path, query, gone }, options);
  }

  list<Answer extends IdList>(path: string, query: { limit?: number | undefined } = {}, options?: CallOptions): Listing<Answer> {
    const read = (at: object) => this.get<Answer>(path, { ...query, ...at }, options);
    return listing(read({}), ({ has_more, last_id }) =>
      has_more && last_id !== null ? read({ limit: query.limit ?? PAGE_MAX, starting_after: last_id }) : undefined,
    );
  }
}

/** Returns a path with its ids escaped. @throws {TypeError} for an id with which it would be the path of something else */
export function path(parts: TemplateStringsArray, ...ids: readonly (string | number)[]): string {
  const escaped = ids.map((id) => {
    const text = String(id);
    if (id === undefined || id === null || text === "" || text === "." || text === "..")
      throw new TypeError(`An id in ${parts.join("…")} must be a text other than "", "." and ".."; got ${JSON.stringify(id)}.`);
    return Array.from(text, escapedPoint).join("");
  });
  return String.raw({ raw: parts }, ...escaped);
}

/** Half of a surrogate pair as generalized UTF-8 has it: UTF-8 has none, and a user's id can. */
function escapedPoint(point: string): string {
  const half = point.charCodeAt(0);
  if (!/\p{Surrogate}/u.test(point)) return encodeURIComponent(point);
  return `%ED%${(0x80 | ((half >> 6) & 0x3f)).toString(16)}%${(0x80 | (half & 0x3f)).toString(16)}`;
}
