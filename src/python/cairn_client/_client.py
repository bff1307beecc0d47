"""What runs operations: a driver that blocks and one that awaits, and the client that both colours share.

Adapters that a framework calls in both colours use `run` and `arun` of the client they are given, whichever it is.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

from . import _core
from ._core import Answer, Close, Emit, Lost, Open, Options, Read, Request, Send, Sleep, Step, Steps

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

TIMEOUT_SECONDS = 30.0
RETRIES = 2


class Stream(Protocol):
    """An answer whose content has not been read."""

    answer: Answer

    def read(self, timeout: float) -> bytes: ...
    def close(self) -> None: ...


class Transport(Protocol):
    """Sends requests; what takes longer than a timeout, or fails, is `Lost`."""

    def send(self, request: Request, timeout: float) -> Answer: ...
    def open(self, request: Request, timeout: float) -> Stream: ...
    def sleep(self, seconds: float) -> None: ...
    def close(self) -> None: ...


class AsyncStream(Protocol):
    answer: Answer

    async def read(self, timeout: float) -> bytes: ...
    async def close(self) -> None: ...


class AsyncTransport(Protocol):
    async def send(self, request: Request, timeout: float) -> Answer: ...
    async def open(self, request: Request, timeout: float) -> AsyncStream: ...
    async def sleep(self, seconds: float) -> None: ...
    async def close(self) -> None: ...


def drive(steps: Steps[T], transport: Transport) -> Generator[Any, None, T]:
    """Runs an operation, blocking. It gives what the operation emits, and returns what that returns."""
    stream: Stream | None = None
    result: Any = None
    lost: Lost | None = None
    try:
        while True:
            step: Step = steps.send(result) if lost is None else steps.throw(lost)
            result, lost = None, None
            try:
                match step:
                    case Send(request, timeout):
                        result = transport.send(request, timeout)
                    case Emit(items):
                        yield from items
                    case Sleep(seconds):
                        transport.sleep(seconds)
                    case Open(request, timeout):
                        stream = transport.open(request, timeout)
                        result = stream.answer
                    case Read(timeout):
                        result = b"" if stream is None else stream.read(timeout)
                    case Close():
                        if stream is not None:
                            stream.close()
                        stream = None
            except Lost as error:
                lost = error
    except StopIteration as stop:
        return cast("T", stop.value)
    finally:
        steps.close()
        if stream is not None:
            stream.close()


async def adrive(steps: Steps[T], transport: AsyncTransport, ended: list[T]) -> AsyncGenerator[Any, None]:
    """Runs an operation, awaiting. What it returns is appended to `ended`."""
    stream: AsyncStream | None = None
    result: Any = None
    lost: Lost | None = None
    try:
        while True:
            step: Step = steps.send(result) if lost is None else steps.throw(lost)
            result, lost = None, None
            try:
                match step:
                    case Send(request, timeout):
                        result = await transport.send(request, timeout)
                    case Emit(items):
                        for item in items:
                            yield item
                    case Sleep(seconds):
                        await transport.sleep(seconds)
                    case Open(request, timeout):
                        stream = await transport.open(request, timeout)
                        result = stream.answer
                    case Read(timeout):
                        result = b"" if stream is None else await stream.read(timeout)
                    case Close():
                        if stream is not None:
                            await stream.close()
                        stream = None
            except Lost as error:
                lost = error
    except StopIteration as stop:
        ended.append(stop.value)
    finally:
        steps.close()
        if stream is not None:
            await stream.close()


class Client:
    """The base of `Cairn` and `AsyncCairn`. It can be used by threads, by several event loops and after a fork."""

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        headers: Mapping[str, str] | None = None,
        http_client: httpx2.Client | httpx2.AsyncClient | Transport | AsyncTransport | None = None,
    ) -> None:
        """Makes a client, which connects once it is used.

        Args:
            api_key: The API key, `crn_…`; that in the environment variable `CAIRN_API_KEY` unless given.
            base_url: Where the server is; `CAIRN_URL` in the environment, or `http://127.0.0.1:8700`, unless given.
            timeout: How many seconds an attempt may take; `math.inf` for no limit.
            retries: How often a failed request is sent again, if that can help.
            headers: Sent with every request.
            http_client: Used instead of a client of httpx2 that is made for it, as for a proxy or certificates of your own. It is
                not closed with this client.
        """
        key = os.environ.get("CAIRN_API_KEY", "") if api_key is None else api_key
        url = os.environ.get("CAIRN_URL", "http://127.0.0.1:8700") if base_url is None else base_url
        self.options: Options = _core.checked_options(key, url, timeout, retries, headers or {})
        self._connections = Connections(http_client)
        self._bind()

    def with_options(self, *, timeout: float | None = None, retries: int | None = None) -> Self:
        """Returns a client with the same connections, and another timeout or number of retries."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        options = self.options
        other.options = options._replace(
            timeout=options.timeout if timeout is None else _core.checked_timeout(timeout),
            retries=options.retries if retries is None else retries,
        )
        other._bind()
        return other

    def _bind(self) -> None:
        """Makes the parts of the client."""

    def run(self, steps: Steps[T]) -> T:
        """Runs an operation of this package, blocking."""
        driver = drive(steps, self._connections.blocking())
        try:
            while True:
                next(driver)
        except StopIteration as stop:
            return cast("T", stop.value)

    async def arun(self, steps: Steps[T]) -> T:
        """Runs an operation of this package, awaiting."""
        ended: list[T] = []
        async for _ in adrive(steps, self._connections.awaiting(), ended):
            pass
        return ended[0]

    def iterate(self, steps: Steps[None]) -> Generator[Any, None, None]:
        """Gives what an operation emits, blocking."""
        yield from drive(steps, self._connections.blocking())

    async def aiterate(self, steps: Steps[None]) -> AsyncGenerator[Any, None]:
        """Gives what an operation emits, awaiting."""
        driver = adrive(steps, self._connections.awaiting(), [])
        try:
            async for item in driver:
                yield item
        finally:
            await driver.aclose()

    def close(self) -> None:
        """Closes the connections of blocking calls. That is not required: they close with the process."""
        self._connections.close()

    async def aclose(self) -> None:
        """Closes the connections of this event loop. That is not required: they close with the loop."""
        await self._connections.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.options.base_url!r})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError(f"{type(self).__name__} cannot be pickled: make one in each process.")


class Connections:
    """The connections of a client: one pool for blocking calls, and one for each event loop, in each process."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self._pid = os.getpid()
        self._blocking: Transport | None = None
        self._loops: Any = None

    def _check_process(self) -> None:
        # Two processes on one connection would get each other's answers. What the parent has opened is left to it.
        if self._pid != os.getpid():
            self._pid, self._blocking, self._loops = os.getpid(), None, None

    def blocking(self) -> Transport:
        self._check_process()
        if self._blocking is None:
            if _is_transport(self._given):
                return cast("Transport", self._given)
            from . import _transport

            self._blocking = _transport.blocking(self._given)
        return self._blocking

    def awaiting(self) -> AsyncTransport:
        self._check_process()
        if _is_transport(self._given):
            return cast("AsyncTransport", self._given)
        if self._loops is None:
            from . import _transport

            self._loops = _transport.Loops(self._given)
        return cast("AsyncTransport", self._loops.current())

    def close(self) -> None:
        if self._blocking is not None and self._pid == os.getpid():
            self._blocking.close()
            self._blocking = None

    async def aclose(self) -> None:
        if self._loops is not None and self._pid == os.getpid():
            await self._loops.close_current()


def _is_transport(given: Any) -> bool:
    return given is not None and not type(given).__module__.startswith("httpx")


class Blocking(Client):
    """The base of `Cairn`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Awaiting(Client):
    """The base of `AsyncCairn`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()
