/**
 * What is being read, as every screen shows it: loading, refused, empty, there, and where a list ends. A screen that goes
 * through here forgets none of these.
 *
 * @module
 */
import type { QueryObserverResult } from "@tanstack/query-core";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Refused } from "../api.ts";
import type { Pages } from "../query.ts";
import { counted } from "../words.ts";

export function Loading() {
  return (
    <p class="quiet loading" role="status">
      Loading …
    </p>
  );
}

/** An error: what was wrong, the request to look for in the log, and another try. */
export function Problem({ error, again }: { error: Error; again?: () => void }) {
  const requestId = error instanceof Refused ? error.requestId : null;
  return (
    <div class="problem" role="alert">
      <p>{error.message}</p>
      {(requestId !== null || again !== undefined) && (
        <p class="row">
          {again && <button onClick={again}>Try again</button>}
          {requestId !== null && (
            <span class="quiet">
              Request <code>{requestId}</code>
            </span>
          )}
        </p>
      )}
    </div>
  );
}

/** One record, or anything else that is read at once. What was read before stays when reading it again fails. */
export function Loaded<Data>({ result, children }: { result: QueryObserverResult<Data>; children: (data: Data) => ComponentChildren }) {
  const again = () => void result.refetch();
  return (
    <>
      {result.error !== null && <Problem error={result.error} again={again} />}
      {result.data !== undefined ? children(result.data) : result.error === null && <Loading />}
    </>
  );
}

interface ListedProps<Item> {
  pages: Pages<Item>;
  /** What stands there when there is nothing; it names the request that would change that. */
  empty: ComponentChildren;
  /** Shows one page. It is called again only when the page or `dependsOn` has changed, so that a long list stays quick. */
  children: (items: readonly Item[], page: number) => ComponentChildren;
  dependsOn?: readonly unknown[];
  /** Goes around the pages: a table with its head, an ordered list. */
  frame: (pages: ComponentChildren) => ComponentChildren;
  /** What the records are called, several of them. */
  noun: string;
}

export function Listed<Item>({ pages, empty, children, dependsOn = [], frame, noun }: ListedProps<Item>) {
  return (
    <Loaded result={pages}>
      {({ pages: read }) => {
        const count = read.reduce((sum, { data }) => sum + data.length, 0);
        if (count === 0 && !pages.hasNextPage) return <div class="empty">{empty}</div>;
        return (
          <>
            {frame(
              read.map(({ data }, index) => <PageOfList key={index} items={data} page={index} dependsOn={dependsOn} show={children} />),
            )}
            <End pages={pages} count={count} noun={noun} />
          </>
        );
      }}
    </Loaded>
  );
}

interface PageProps<Item> {
  items: readonly Item[];
  page: number;
  dependsOn: readonly unknown[];
  show: (items: readonly Item[], page: number) => ComponentChildren;
}

function PageOfList<Item>({ items, page, dependsOn, show }: PageProps<Item>) {
  return useMemo(() => <>{show(items, page)}</>, [items, page, ...dependsOn]);
}

/** Reads the next page when it comes into view; the button is for those who do not scroll. */
function End<Item>({ pages, count, noun }: { pages: Pages<Item>; count: number; noun: string }) {
  const place = useRef<HTMLDivElement>(null);
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError } = pages;
  const wants = hasNextPage && !isFetchingNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (!wants || place.current === null) return undefined;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting === true && void pages.fetchNextPage(), {
      rootMargin: "600px",
    });
    observer.observe(place.current);
    return () => observer.disconnect();
    // After every draw: an observer says nothing again of a place that stays in view, and the page that it asked for may not have come.
  });
  return (
    <div class="end quiet" ref={place}>
      {hasNextPage ? (
        <button class="small" disabled={isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          {isFetchingNextPage ? "Loading …" : `More ${noun}`}
        </button>
      ) : (
        <span>{counted(count, noun)}, no more</span>
      )}
    </div>
  );
}
