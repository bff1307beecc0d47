/**
 * Sorting of a list by a column. The server gives records newest first, as its indexes have them; any other order is one of those that
 * were read, so that more pages are read for it, up to a limit that the screen names.
 *
 * @module
 */
import { useEffect, useMemo } from "preact/hooks";
import type { Pages } from "../query.ts";

/** Pages that are read for an order; a longer list is sorted as far as it was read. */
const PAGES_MAX = 20;

export interface Order<Item> {
  readonly of: (item: Item) => string | number;
  readonly descending: boolean;
}

const compare = (a: string | number, b: string | number): number =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

/** All that was read as one page in this order; the pages as they came where there is none. */
export function useSorted<Item>(pages: Pages<Item>, order: Order<Item> | undefined): Pages<Item> {
  const { data, hasNextPage, isFetching, isError } = pages;
  const wantsMore = order !== undefined && hasNextPage && !isFetching && !isError && (data?.pages.length ?? 0) < PAGES_MAX;
  useEffect(() => {
    if (wantsMore) void pages.fetchNextPage();
  }, [wantsMore, data?.pages.length]);
  const sorted = useMemo(() => {
    const last = data?.pages.at(-1);
    if (order === undefined || data === undefined || last === undefined) return data;
    const items = data.pages.flatMap((page) => page.data);
    const inOrder = items.toSorted((a, b) => (order.descending ? compare(order.of(b), order.of(a)) : compare(order.of(a), order.of(b))));
    return { pages: [{ ...last, data: inOrder }], pageParams: [null] };
  }, [data, order]);
  return { ...pages, data: sorted } as Pages<Item>;
}
