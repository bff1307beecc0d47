"""The client without I/O.

An operation is a generator. It yields what is to be done, a `Send`, a `Sleep`, an `Open`, a `Read` or an `Emit`, and gets what came of
it. `_client.py` has what drives them, once blocking and once awaiting, so that retries, errors, pages, events and the adapters are
written once and tested without a network. Only the standard library is used.

Every change carries an `Idempotency-Key`, the same in each attempt, so that it is made once even when its answer was lost.
"""

from __future__ import annotations

import json
import random
import re
import secrets
import time
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from ._given import query_string
from ._json import encoded
from ._record import Record, record
from .errors import CairnError

T = TypeVar("T")
R = TypeVar("R", bound=Record)

RETRIED_STATUSES = {None, 408, 429, 502, 503, 504}
LOST_STATUSES = {None, 502, 504}
"""After these the change may have been made."""
BACKOFF_FIRST_SECONDS = 0.25
BACKOFF_MAX_SECONDS = 8.0
COMPRESSED_BYTES_MIN = 64 * 1024
"""Smaller bodies take less time on most networks than their compression does."""
RETRY_AFTER_MAX_SECONDS = 60
"""A caller that would have to wait longer gets the error instead, which says how long."""


class Request(NamedTuple):
    """One request as a transport sends it."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None


class Answer(NamedTuple):
    """An answer that was read to its end. The names of its headers are in lower case, or `get` does not mind."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Lost(Exception):
    """Raised by a transport that got no answer."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Send(NamedTuple):
    """Gives the `Answer`; raises `Lost` in the generator. It may take `timeout` seconds."""

    request: Request
    timeout: float


class Sleep(NamedTuple):
    seconds: float


class Open(NamedTuple):
    """Gives the `Answer` without its content, which `Read` gives."""

    request: Request
    timeout: float


class Read(NamedTuple):
    """Gives the next piece of what was opened; empty at its end."""

    timeout: float


class Close(NamedTuple):
    """Ends what was opened."""


class Emit(NamedTuple):
    """Gives items to a loop."""

    items: Sequence[Any]


Step = Send | Sleep | Open | Read | Close | Emit
Steps = Generator[Step, Any, T]


class Options(NamedTuple):
    """What all calls of a client share."""

    api_key: str
    base_url: str
    timeout: float
    retries: int
    headers: Mapping[str, str]
    random: Callable[[], float] = random.random
    now: Callable[[], float] = time.time


class Call(NamedTuple):
    """A call of the API."""

    method: str
    path: str
    query: Mapping[str, object] = {}
    body: Mapping[str, Any] | None = None
    idempotency_key: str | None = None
    timeout: float | None = None
    accepts: int | None = None
    """A status that counts as success."""
    gone: Mapping[str, Any] | None = None
    """What a DELETE gives when its first answer was lost, and the next one says that there is nothing to delete."""
    is_change: bool = True
    """Whether a POST needs an `Idempotency-Key`; some only read."""


def checked_options(api_key: str, base_url: str, timeout: float, retries: int, headers: Mapping[str, str]) -> Options:
    """Returns the options of a client.

    Raises:
        TypeError: The key or the address is none.
        ValueError: The timeout or the retries are below 0.
    """
    # A header takes nothing else, and an error of the transport would not say which one.
    if not re.fullmatch(r"[\x21-\x7e]+", api_key):
        raise TypeError("api_key must be an API key of Cairn, crn_ and letters and digits.")
    if not re.match(r"https?://", base_url):
        raise TypeError(f"base_url must be an address such as http://127.0.0.1:8700; got {base_url}")
    if retries < 0:
        raise ValueError(f"retries must be at least 0; got {retries}.")
    return Options(api_key, base_url.rstrip("/"), checked_timeout(timeout), retries, dict(headers))


def checked_timeout(seconds: float) -> float:
    if not seconds >= 0:
        raise ValueError(f"timeout must be a number of at least 0; got {seconds}.")
    return seconds


def request_of(call: Call, options: Options, headers: Mapping[str, str] | None = None) -> Request:
    has_body = call.method in ("POST", "PATCH")
    all_headers = {**options.headers, **(headers or {}), "x-api-key": options.api_key}
    if has_body:
        all_headers["content-type"] = "application/json"
        if call.is_change:
            all_headers["idempotency-key"] = call.idempotency_key or secrets.token_hex(16)
    content = encoded(call.body or {}) if has_body else None
    if content is not None and len(content) >= COMPRESSED_BYTES_MIN:
        all_headers["content-encoding"] = "gzip"
        content = gzipped(content)
    return Request(call.method, f"{options.base_url}{call.path}{query_string(call.query)}", all_headers, content)


def gzipped(content: bytes) -> bytes:
    """Compresses at the fastest level, as the server does."""
    compressor = zlib.compressobj(1, wbits=16 + zlib.MAX_WBITS)
    return compressor.compress(content) + compressor.flush()


def attempts(call: Call, options: Options) -> Steps[Any]:
    """Makes a call, again where that can help, and returns the JSON of its answer.

    Raises:
        CairnError: That of the last attempt.
    """
    timeout = options.timeout if call.timeout is None else checked_timeout(call.timeout)
    request = request_of(call, options)
    is_lost = False
    for attempt in range(options.retries + 1):
        try:
            answer: Answer = yield Send(request, timeout)
            if answer.status < 300 or answer.status == call.accepts:
                return parsed(answer, options)
            error = refusal(answer, options)
        except Lost as lost:
            error = no_answer(lost, options)
        if error.status == 404 and is_lost and call.gone is not None:
            return dict(call.gone)
        if attempt == options.retries or not is_temporary(error):
            raise error
        is_lost = is_lost or error.status in LOST_STATUSES
        yield backoff(attempt, error.retry_after, options)
    raise AssertionError("a range is never empty")


def answered(call: Call, options: Options, kind: type[R]) -> Steps[R]:
    """Makes a call and returns its answer as a record."""
    return record(kind, (yield from attempts(call, options)))


def is_temporary(error: CairnError) -> bool:
    """Whether the same request may get another answer later."""
    return error.status in RETRIED_STATUSES and (error.retry_after or 0) <= RETRY_AFTER_MAX_SECONDS


def backoff(attempt: int, retry_after: float | None, options: Options) -> Sleep:
    """Waits before the next attempt: as long as the server asks, then exponential backoff with full jitter."""
    return Sleep((retry_after or 0) + options.random() * min(BACKOFF_MAX_SECONDS, BACKOFF_FIRST_SECONDS * 2**attempt))


def parsed(answer: Answer, options: Options) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError:
        raise unexpected(answer, options) from None


def no_answer(lost: Lost, options: Options) -> CairnError:
    is_late = lost.code == "timeout"
    says = "did not answer in time" if is_late else "cannot be reached"
    error = CairnError(f"{options.base_url} {says}: {lost.reason}.", code="timeout" if is_late else "connection_failed")
    error.__cause__ = lost.__cause__
    return error


def refusal(answer: Answer, options: Options) -> CairnError:
    """Returns the error of an answer that is no success."""
    try:
        error = cast("dict[str, Any]", json.loads(answer.content)["error"])
        return CairnError(
            str(error["message"]),
            code=error["code"],
            status=answer.status,
            param=error.get("param"),
            request_id=answer.headers.get("x-request-id"),
            retry_after=seconds_until(answer.headers.get("retry-after"), options),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return unexpected(answer, options)


def unexpected(answer: Answer, options: Options) -> CairnError:
    """Returns the error for what does not come from Cairn: a proxy's page, another service."""
    kind = answer.headers.get("content-type") or "no content type"
    message = f"{options.base_url} answered {answer.status} with {kind}, which is not Cairn's JSON."
    return CairnError(message, code="unexpected_answer", status=answer.status)


def seconds_until(retry_after: str | None, options: Options) -> float | None:
    """A proxy may name a date instead of seconds."""
    if retry_after is None:
        return None
    if retry_after.isdecimal():
        return float(retry_after)
    from email.utils import parsedate_to_datetime  # costs more to import than all of this module

    try:
        seconds = parsedate_to_datetime(retry_after).timestamp() - options.now()
    except ValueError:
        return None
    return seconds if seconds >= 0 else None
