"""Requests with httpx2, which nothing else imports."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.lowlevel
import httpx2

from ._core import Answer, Lost, Request

LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0)
"""The server closes connections that are idle for longer than 30 s."""
CLIENT: dict[str, Any] = {"limits": LIMITS, "follow_redirects": False, "timeout": None}
"""A redirection that is followed would take the API key wherever it leads."""


@contextmanager
def losses() -> Generator[None]:
    """Turns what httpx2 raises into `Lost`."""
    try:
        yield
    except httpx2.PoolTimeout as cause:
        raise Lost("timeout", "no connection became free, all are in use") from cause
    except (httpx2.TimeoutException, TimeoutError) as cause:
        raise Lost("timeout", "the time for an attempt is over") from cause
    except (httpx2.TransportError, httpx2.DecodingError) as cause:
        raise Lost("connection_failed", str(cause) or type(cause).__name__) from cause


def answer_of(response: httpx2.Response, content: bytes = b"") -> Answer:
    return Answer(response.status_code, response.headers, content)


def limit(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(None if seconds == math.inf else seconds)


def blocking(given: Any) -> BlockingHttp:
    if given is not None and not isinstance(given, httpx2.Client):
        raise TypeError(f"Blocking calls need an httpx2.Client as http_client; this client was given {type(given).__name__}.")
    return BlockingHttp(given)


class BlockingHttp:
    def __init__(self, given: httpx2.Client | None) -> None:
        self._is_own = given is None
        self._http = httpx2.Client(**CLIENT) if given is None else given

    def send(self, request: Request, timeout: float) -> Answer:
        end = time.monotonic() + timeout
        stream = self.open(request, timeout)
        try:
            pieces: list[bytes] = []
            # httpx2 limits each read: the whole is limited between them.
            while piece := stream.read(end - time.monotonic()):
                pieces.append(piece)
            return stream.answer._replace(content=b"".join(pieces))
        finally:
            stream.close()

    def open(self, request: Request, timeout: float) -> BlockingStream:
        with losses():
            built = self._http.build_request(
                request.method, request.url, headers=request.headers, content=request.content, timeout=limit(timeout)
            )
            return BlockingStream(self._http.send(built, stream=True, follow_redirects=False))

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        if self._is_own:
            self._http.close()


class BlockingStream:
    def __init__(self, response: httpx2.Response) -> None:
        self.answer = answer_of(response)
        self._response = response
        self._pieces = response.iter_bytes()

    def read(self, timeout: float) -> bytes:
        if timeout <= 0:
            raise Lost("timeout", "the time for an attempt is over")
        with losses():
            # Empty pieces are left out by httpx2.
            return next(self._pieces, b"")

    def close(self) -> None:
        self._response.close()


class Loops:
    """A pool of connections for each event loop: a connection belongs to the loop that made it, and `asyncio.run` twice is two."""

    def __init__(self, given: Any) -> None:
        if given is not None and not isinstance(given, httpx2.AsyncClient):
            raise TypeError(f"Awaited calls need an httpx2.AsyncClient as http_client; this client was given {type(given).__name__}.")
        self._given = given
        self._pools: weakref.WeakKeyDictionary[Any, AwaitingHttp] = weakref.WeakKeyDictionary()

    def current(self) -> AwaitingHttp:
        loop = current_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = AwaitingHttp(self._given)
        return pool

    async def close_current(self) -> None:
        pool = self._pools.pop(current_loop(), None)
        if pool is not None:
            await pool.close()


def current_loop() -> Any:
    """Returns the event loop of asyncio, or what stands for that of trio."""
    token: Any = anyio.lowlevel.current_token()
    return getattr(token, "native_token", token)


class AwaitingHttp:
    def __init__(self, given: httpx2.AsyncClient | None) -> None:
        self._is_own = given is None
        self._http = httpx2.AsyncClient(**CLIENT) if given is None else given

    async def send(self, request: Request, timeout: float) -> Answer:
        with losses(), anyio.fail_after(timeout):
            response = await self._open(request, timeout)
            try:
                return answer_of(response, await response.aread())
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()

    async def open(self, request: Request, timeout: float) -> AwaitingStream:
        with losses(), anyio.fail_after(timeout):
            return AwaitingStream(await self._open(request, timeout))

    async def _open(self, request: Request, timeout: float) -> httpx2.Response:
        built = self._http.build_request(
            request.method, request.url, headers=request.headers, content=request.content, timeout=limit(timeout)
        )
        return await self._http.send(built, stream=True, follow_redirects=False)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)

    async def close(self) -> None:
        if self._is_own:
            await self._http.aclose()


class AwaitingStream:
    def __init__(self, response: httpx2.Response) -> None:
        self.answer = answer_of(response)
        self._response = response
        self._pieces: AsyncIterator[bytes] = response.aiter_bytes()

    async def read(self, timeout: float) -> bytes:
        with losses(), anyio.fail_after(timeout):
            return await anext(self._pieces, b"")

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._response.aclose()
