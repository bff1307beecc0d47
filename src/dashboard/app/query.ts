/**
 * TanStack Query for Preact 11, which its own adapter does not know: what was read is shared between screens, read again when
 * it is stale or changed, and kept while it is.
 *
 * @module
 */
import { effect } from "@preact/signals";
import {
  InfiniteQueryObserver,
  QueryClient,
  QueryObserver,
  type InfiniteData,
  type InfiniteQueryObserverOptions,
  type InfiniteQueryObserverResult,
  type QueryKey,
  type QueryObserverOptions,
  type QueryObserverResult,
} from "@tanstack/query-core";
import { useLayoutEffect, useReducer, useState } from "preact/hooks";
import { CairnError, type List } from "./api.ts";
import { key } from "./session.ts";

const RETRIES = 2;

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // Cairn can be on this machine: a browser without a network reaches it.
      networkMode: "always",
      retry: (failures, error) => failures < RETRIES && !(error instanceof CairnError && error.status !== undefined),
    },
  },
});

// Records that one key may read are not for the next one.
effect(() => {
  if (key.value === null) client.clear();
});

export function useQuery<Data>(options: QueryObserverOptions<Data>): QueryObserverResult<Data> {
  const defaulted = client.defaultQueryOptions(options);
  return useObserver(() => new QueryObserver<Data>(client, defaulted), defaulted);
}

export type Pages<Item> = InfiniteQueryObserverResult<InfiniteData<List<Item>>>;

/** Reads a list page by page. `read` gets the cursor of a page, null for the first. */
export function usePages<Item>(
  queryKey: QueryKey,
  read: (after: string | null, signal: AbortSignal) => Promise<List<Item>>,
  options: { enabled?: boolean; refetchInterval?: number; staleTime?: number; gcTime?: number } = {},
): Pages<Item> {
  const defaulted = client.defaultQueryOptions({
    ...options,
    queryKey,
    queryFn: ({ pageParam, signal }: { pageParam: string | null; signal: AbortSignal }) => read(pageParam, signal),
    initialPageParam: null,
    getNextPageParam: (last: List<Item>) => (last.has_more ? last.last_id : null),
  } as never) as unknown as InfiniteQueryObserverOptions<List<Item>, Error, InfiniteData<List<Item>>, QueryKey, string | null>;
  return useObserver(
    () => new InfiniteQueryObserver<List<Item>, Error, InfiniteData<List<Item>>, QueryKey, string | null>(client, defaulted),
    defaulted,
  );
}

interface Observer<Options, Result> {
  subscribe(listener: () => void): () => void;
  setOptions(options: Options): void;
  getOptimisticResult(options: never): unknown;
  getCurrentResult(): Result;
}

/** The result is that of the options of this render, so that a screen never shows the records of the last one. */
function useObserver<Options, Result>(create: () => Observer<Options, Result>, options: Options): Result {
  const [observer] = useState(create);
  const [, update] = useReducer((count: number) => count + 1, 0);
  useLayoutEffect(() => observer.subscribe(() => update(undefined)), [observer]);
  // Before anybody can click on what is drawn, which would ask for more of what was there before.
  useLayoutEffect(() => observer.setOptions(options));
  return observer.getOptimisticResult(options as never) as Result;
}

/** Has everything that begins with one of these keys read again where it is shown. */
export function changed(...keys: QueryKey[]): Promise<unknown> {
  return Promise.all(keys.map((queryKey) => client.invalidateQueries({ queryKey })));
}
