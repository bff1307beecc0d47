/**
 * Lists: a page to await, or everything to iterate.
 *
 * @module
 */

interface ListAnswer {
  readonly data: readonly unknown[];
  readonly has_more: boolean;
}

type ItemOf<Answer extends ListAnswer> = Answer["data"][number];

/** A page as the API has it; `for await` gives its items and those of all pages after it. */
export type Page<Answer extends ListAnswer> = Answer & AsyncIterable<ItemOf<Answer>>;

/** `await` gives the first page, `for await` the items of all pages. */
export type Listing<Answer extends ListAnswer> = Promise<Page<Answer>> & AsyncIterable<ItemOf<Answer>>;

/** Reads the next page; undefined after the last. */
export type ReadNext<Answer> = (page: Answer) => Promise<Answer> | undefined;

export function listing<Answer extends ListAnswer>(first: Promise<Answer>, next: ReadNext<Answer>): Listing<Answer> {
  const page = first.then((answer) =>
    Object.assign(
      answer,
      iterable(() => everythingFrom(answer, next)),
    ),
  );
  return Object.assign(
    page,
    iterable(async function* () {
      yield* await page;
    }),
  );
}

function iterable<Item>(items: () => AsyncIterator<Item>): AsyncIterable<Item> {
  return { [Symbol.asyncIterator]: items } as AsyncIterable<Item>;
}

async function* everythingFrom<Answer extends ListAnswer>(first: Answer, next: ReadNext<Answer>): AsyncGenerator<ItemOf<Answer>, void> {
  for (let page: Answer | undefined = first; page !== undefined; page = await next(page)) yield* page.data as readonly ItemOf<Answer>[];
}
