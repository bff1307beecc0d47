/**
 * States of what is read, as every screen shows them: loading, refused, empty, there, and where a list ends. A screen that goes
 * through here forgets none of these.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import type { QueryObserverResult } from "@tanstack/query-core";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { CairnError } from "../api.ts";
import type { Pages } from "../query.ts";
import { counted } from "../words.ts";
import { withLocalTimes } from "./time.tsx";

export function Loading() {
  return (
    <p class="quiet loading" role="status">
      Loading …
    </p>
  );
}

/** An error: what was wrong, the request to look for in the log, and another try. */
export function Problem({ error, again }: { error: Error; again?: (() => void) | undefined }) {
  const requestId = error instanceof CairnError ? error.requestId : undefined;
  return (
    <div class="problem" role="alert">
      <p>{withLocalTimes(error.message)}</p>
      {(requestId !== undefined || again !== undefined) && (
        <p class="row">
          {again && <button onClick={again}>Try again</button>}
          {requestId !== undefined && (
            <span class="quiet">
              Request <code>{requestId}</code>
            </span>
          )}
        </p>
      )}
    </div>
  );
}

interface LoadedProps<Data> {
  result: QueryObserverResult<Data>;
  children: (data: Data) => ComponentChildren;
  /** Says more where it is not there. */
  missing?: ComponentChildren;
}

/** One record, or anything else that is read at once. What was read before stays when reading it again fails. */
export function Loaded<Data>({ result, children, missing }: LoadedProps<Data>) {
  const isMissing = result.error instanceof CairnError && result.error.status === 404;
  const again = isMissing ? undefined : () => void result.refetch();
  return (
    <>
      {result.error !== null && <Problem error={result.error} again={again} />}
      {isMissing && missing}
      {result.data !== undefined ? children(result.data) : result.error === null && <Loading />}
    </>
  );
}

interface ListedProps<Item> {
  pages: Pages<Item>;
  /** Text of an empty list; it names the request that would change that. */
  empty: ComponentChildren;
  /**
   * Shows one page, which follows `before`. It is called again only when one of these or `dependsOn` has changed, so that a long list
   * stays quick.
   */
  children: (items: readonly Item[], before: Item | undefined) => ComponentChildren;
  dependsOn?: readonly unknown[];
  /** Each page is one of these. */
  element: PageElement;
  class?: string;
  /** Goes around the pages: a table with its head. */
  frame?: (pages: ComponentChildren) => ComponentChildren;
  /** Plural of the records' name. */
  noun: string;
}

type PageElement = "ol" | "ul" | "tbody";

export function Listed<Item>(props: ListedProps<Item>) {
  const { pages, empty, children, dependsOn = [], element, class: name, frame = (pages) => <>{pages}</>, noun } = props;
  return (
    <Loaded result={pages}>
      {({ pages: read, pageParams }) => {
        const count = read.reduce((sum, { data }) => sum + data.length, 0);
        let last: Item | undefined;
        if (count === 0 && !pages.hasNextPage) return <div class="empty">{empty}</div>;
        return (
          <>
            {frame(
              read.map(({ data }, index) => {
                const before = last;
                last = data.at(-1) ?? last;
                const mayLeave = element !== "tbody" && read.length > PAGES_KEPT;
                return (
                  <PageOfList key={pageParams[index]} items={data} {...{ before, dependsOn, show: children, element, name, mayLeave }} />
                );
              }),
            )}
            <End pages={pages} count={count} noun={noun} />
          </>
        );
      }}
    </Loaded>
  );
}

/** Several looks can come together; the last one is how it is now. */
const isInView = (seen: readonly IntersectionObserverEntry[]) => seen.at(-1)?.isIntersecting === true;

/** A longer list has only what is near the window in the document. A shorter one is there as a whole, for the browser's search. */
const PAGES_KEPT = 10;
const NEAR_PX = 2_000;

interface PageProps<Item> {
  items: readonly Item[];
  before: Item | undefined;
  dependsOn: readonly unknown[];
  show: (items: readonly Item[], before: Item | undefined) => ComponentChildren;
  element: PageElement;
  name: string | undefined;
  mayLeave: boolean;
}

/** A page that is far from the window leaves its height behind. */
function PageOfList<Item>({ items, before, dependsOn, show, element: Element, name, mayLeave }: PageProps<Item>) {
  const place = useRef<HTMLElement>(null);
  const height = useSignal<number | null>(null);
  useEffect(() => {
    const page = place.current;
    if (!mayLeave) height.value = null;
    if (!mayLeave || page === null) return undefined;
    const observer = new IntersectionObserver(
      (seen) => {
        const isNear = isInView(seen) || page.contains(document.activeElement);
        height.value = isNear ? null : (height.value ?? page.offsetHeight);
      },
      { rootMargin: `${NEAR_PX}px` },
    );
    observer.observe(page);
    return () => observer.disconnect();
  }, [mayLeave]);
  const isThere = height.value === null;
  const shown = useMemo(() => (isThere ? show(items, before) : null), [isThere, items, before, ...dependsOn]);
  return (
    <Element ref={place as never} class={name} style={isThere ? undefined : { height: `${height.value}px` }}>
      {shown}
    </Element>
  );
}

/** Reads the next page when it comes into view; the button is for those who do not scroll. */
function End<Item>({ pages, count, noun }: { pages: Pages<Item>; count: number; noun: string }) {
  const place = useRef<HTMLDivElement>(null);
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError } = pages;
  const wants = hasNextPage && !isFetchingNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (!wants || place.current === null) return undefined;
    const observer = new IntersectionObserver((seen) => isInView(seen) && void pages.fetchNextPage(), { rootMargin: "600px" });
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
