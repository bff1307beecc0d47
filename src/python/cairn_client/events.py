"""Streams: traces as they happen, which continue after the last one when a connection ends, and files piece by piece."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._core import (
    Answer,
    Call,
    Close,
    Emit,
    Lost,
    Open,
    Options,
    Read,
    Steps,
    backoff,
    checked_timeout,
    is_temporary,
    no_answer,
    refusal,
    request_of,
    unexpected,
)
from ._record import record
from ._types import Trace
from .errors import CairnError

SILENCE_SECONDS = 60.0
"""The server sends at least a comment every 20 s: a connection that is silent for longer is dead."""
REMEMBERED_MAX = 10_000
"""More than there are in the few seconds whose traces a server repeats."""


def traces(query: Mapping[str, object], last_event_id: str | None, options: Options) -> Steps[None]:
    """Emits traces as they happen. A connection that ends is made again, and misses and repeats nothing.

    Raises:
        CairnError: It cannot begin, or the server refuses to continue, as after the key was revoked.
    """
    last = last_event_id
    # Servers that share a database continue a little before the last event: what another of them had not committed is there then.
    given: dict[str, None] = {} if last is None else {last: None}
    failures = 0
    has_begun = False
    while True:
        asked: float | None = None
        try:
            yield from opened(Call("GET", "/v1/events", query), options, {} if last is None else {"last-event-id": last}, SILENCE_SECONDS)
            rest = b""
            while piece := (yield from read(SILENCE_SECONDS, options)):
                *messages, rest = (rest + piece).split(b"\n\n")
                for message in messages:
                    has_begun, failures = True, 0
                    lines = message.decode().split("\n")
                    last = field(lines, "id: ") or last
                    data = field(lines, "data: ")
                    if data is None:
                        continue
                    trace: Trace = record(Trace, json.loads(data))
                    if trace.id not in given:
                        remember(given, trace.id)
                        yield Emit([trace])
        except CairnError as error:
            if not is_temporary(error) or (not has_begun and failures > 1):
                raise
            asked = error.retry_after
        yield Close()
        yield backoff(failures, asked, options)
        failures += 1


def pieces(call: Call, options: Options) -> Steps[None]:
    """Emits the pieces of a file. Each may take as long as an attempt."""
    timeout = options.timeout if call.timeout is None else checked_timeout(call.timeout)
    yield from opened(call, options, {}, timeout)
    while piece := (yield from read(timeout, options)):
        yield Emit([piece])


def opened(call: Call, options: Options, headers: Mapping[str, str], timeout: float) -> Steps[Answer]:
    """Opens a stream, or raises the error that comes in its place."""
    try:
        answer: Answer = yield Open(request_of(call, options, headers), timeout)
    except Lost as lost:
        raise no_answer(lost, options) from lost
    kind = answer.headers.get("content-type") or ""
    if answer.status >= 300:
        content = b""
        while piece := (yield from read(timeout, options)):
            content += piece
        raise refusal(answer._replace(content=content), options)
    if kind.startswith(("application/json", "text/html")):
        raise unexpected(answer, options)
    return answer


def read(timeout: float, options: Options) -> Steps[bytes]:
    try:
        piece: Any = yield Read(timeout)
    except Lost as lost:
        raise no_answer(lost, options) from lost
    return bytes(piece)


def field(lines: list[str], name: str) -> str | None:
    return next((line[len(name) :] for line in lines if line.startswith(name)), None)


def remember(given: dict[str, None], trace_id: str) -> None:
    given[trace_id] = None
    if len(given) > REMEMBERED_MAX:
        del given[next(iter(given))]
