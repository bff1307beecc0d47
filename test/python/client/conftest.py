"""Each test runs for every colour: blocking, awaited with asyncio, awaited with trio. It is written once, awaiting."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest

from cairn_client import AsyncCairn, Cairn

COLOURS = {"blocking": Cairn, "asyncio": AsyncCairn, "trio": AsyncCairn}


class Colour:
    """Calls of one colour as if they were all awaited."""

    def __init__(self, name: str) -> None:
        self.name = name

    def client(self, *args: Any, **options: Any) -> Any:
        return COLOURS[self.name](*args, **options)

    async def result(self, call: Any) -> Any:
        return await call if inspect.isawaitable(call) else call

    async def each(self, listing: Any) -> AsyncIterator[Any]:
        if self.name == "blocking":
            for item in listing:
                yield item
        else:
            async for item in listing:
                yield item

    async def everything(self, listing: Any) -> list[Any]:
        return [item async for item in self.each(listing)]

    def run(self, test: Callable[[], Awaitable[Any]]) -> None:
        anyio.run(test, backend="trio" if self.name == "trio" else "asyncio")


@pytest.fixture(params=list(COLOURS))
def colour(request: pytest.FixtureRequest) -> Colour:
    return Colour(request.param)
