"""Transports without a package: one that answers what a test says, and one of the standard library."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from cairn_client import Cairn
from cairn_client._core import Answer, Lost, Request


def answer(status: int, body: object, **headers: str) -> Answer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(
        status, {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}, content
    )


def refused(status: int, code: str, **headers: str) -> Answer:
    error = {"code": code, "message": f"It is {code}.", "type": "api_error", "request_id": "req_1"}
    return answer(status, {"error": error}, x_request_id="req_1", **headers)


class Fake:
    """Gives these answers one after another, the last one again and again, and keeps what was asked and waited."""

    def __init__(self, answers: Sequence[Answer | Lost | list[bytes | Lost]]) -> None:
        self.answers = answers
        self.requests: list[Request] = []
        self.waits: list[float] = []
        self.timeouts: list[float] = []
        self.closed = 0

    def _next(self, request: Request, timeout: float) -> Answer | list[bytes | Lost]:
        self.requests.append(request)
        self.timeouts.append(timeout)
        found = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(found, Lost):
            raise found
        return found

    def send(self, request: Request, timeout: float) -> Answer:
        found = self._next(request, timeout)
        assert isinstance(found, Answer)
        return found

    def open(self, request: Request, timeout: float) -> FakeStream:
        return FakeStream(self, self._next(request, timeout))

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def close(self) -> None: ...


class FakeStream:
    def __init__(self, fake: Fake, found: Answer | list[bytes | Lost]) -> None:
        self._fake = fake
        self._pieces: list[bytes | Lost] = [found.content] if isinstance(found, Answer) else list(found)
        self.answer = found if isinstance(found, Answer) else Answer(200, {"content-type": "text/event-stream"}, b"")

    def read(self, timeout: float) -> bytes:
        piece = self._pieces.pop(0) if self._pieces else b""
        if isinstance(piece, Lost):
            raise piece
        return piece

    def close(self) -> None:
        self._fake.closed += 1


def client(*answers: Answer | Lost | list[bytes | Lost], random: Callable[[], float] = lambda: 1.0, **options: Any) -> tuple[Cairn, Fake]:
    fake = Fake(answers)
    cairn = Cairn("crn_test", "http://cairn.test", http_client=fake, **options)
    cairn.options = cairn.options._replace(random=random, now=lambda: 1_778_140_800.0)
    return cairn, fake


def body(request: Request) -> Any:
    return json.loads(request.content or b"null")


class HttpClient:
    """A transport on `http.client`, with a connection for each request."""

    def send(self, request: Request, timeout: float) -> Answer:
        stream = self.open(request, timeout)
        try:
            return stream.answer._replace(content=stream.response.read())
        finally:
            stream.close()

    def open(self, request: Request, timeout: float) -> HttpStream:
        url = urlsplit(request.url)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout)
        try:
            connection.request(request.method, f"{url.path}?{url.query}", request.content, dict(request.headers))
            return HttpStream(connection)
        except TimeoutError as cause:
            raise Lost("timeout", "late") from cause
        except (OSError, http.client.HTTPException) as cause:
            raise Lost("connection_failed", str(cause)) from cause

    def sleep(self, seconds: float) -> None: ...
    def close(self) -> None: ...


class HttpStream:
    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self.response = connection.getresponse()
        headers: Mapping[str, str] = {name.lower(): value for name, value in self.response.getheaders()}
        self.answer = Answer(self.response.status, headers, b"")

    def read(self, timeout: float) -> bytes:
        return self.response.read1(65_536)

    def close(self) -> None:
        self.response.close()
        self._connection.close()
