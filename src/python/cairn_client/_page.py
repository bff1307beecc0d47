"""Lists: a page, or everything when it is iterated."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from ._client import Client
from ._core import Call, Emit, Options, Steps, attempts
from ._record import Record, record

T = TypeVar("T")

PAGE_MAX = 100
"""As many as a page can have: for pages that are only read to iterate."""


class Found(NamedTuple):
    """A page without colour, and how the one after it is read."""

    data: list[Any]
    answer: Mapping[str, Any]
    next: Callable[[], Steps[Found]] | None


def listed(call: Call, options: Options, kind: type[Record]) -> Steps[Found]:
    """Reads a page of a list that continues after the last id."""
    answer = yield from attempts(call, options)
    data = [record(kind, item) for item in answer["data"]]
    last = answer["last_id"] if answer["has_more"] else None
    if last is None:
        return Found(data, answer, None)
    query = {**call.query, "limit": call.query.get("limit", PAGE_MAX), "starting_after": last}
    return Found(data, answer, lambda: listed(call._replace(query=query), options, kind))


def everything(page: Found) -> Steps[None]:
    """Emits the items of a page and of all after it."""
    while True:
        yield Emit(page.data)
        if page.next is None:
            return
        page = yield from page.next()


def all_of(first: Steps[Found]) -> Steps[None]:
    yield from everything((yield from first))


class _Page(Generic[T]):
    def __init__(self, client: Client, found: Found) -> None:
        self._client = client
        self._found = found

    @property
    def data(self) -> list[T]:
        """The records of this page."""
        return self._found.data

    @property
    def has_more(self) -> bool:
        """Whether there may be more after this page, which can be short or empty."""
        return bool(self._found.answer["has_more"])

    @property
    def first_id(self) -> str | None:
        """The id of the first record, if it has one."""
        return self._found.answer.get("first_id")

    @property
    def last_id(self) -> str | None:
        """Where the next page begins: its `starting_after`; None for lists of documents."""
        return self._found.answer.get("last_id")

    @property
    def next_cursor(self) -> str | None:
        """Where the next page of documents begins: its `cursor`; None for other lists."""
        return self._found.answer.get("next_cursor")

    def __len__(self) -> int:
        return len(self._found.data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(data={self.data!r}, has_more={self.has_more})"


class Page(_Page[T]):
    """A page of a list. Iterated, it gives its records and those of all pages after it."""

    def __iter__(self) -> Generator[T, None, None]:
        return self._client.iterate(everything(self._found))


class AsyncPage(_Page[T]):
    """A page of a list. Iterated by `async for`, it gives its records and those of all pages after it."""

    def __aiter__(self) -> AsyncGenerator[T, None]:
        return self._client.aiterate(everything(self._found))


class Listing(Generic[T]):
    """A list that is not read yet: `await` gives its first page, `async for` everything."""

    def __init__(self, client: Client, first: Callable[[], Steps[Found]]) -> None:
        self._client = client
        self._first = first

    async def _page(self) -> AsyncPage[T]:
        return AsyncPage(self._client, await self._client.arun(self._first()))

    def __await__(self) -> Generator[Any, Any, AsyncPage[T]]:
        return self._page().__await__()

    def __aiter__(self) -> AsyncGenerator[T, None]:
        return self._client.aiterate(all_of(self._first()))
