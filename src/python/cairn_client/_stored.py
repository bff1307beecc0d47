"""Values of frameworks as documents: what an adapter reads and changes in one step, however much it is."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from . import documents
from ._async import AsyncDocuments
from ._core import Steps
from ._json import is_utf8
from ._sync import Documents
from .errors import CairnError

T = TypeVar("T")

OPERATIONS_MAX = 100
CHANGE_BYTES_MAX = 900_000
"""A request takes 1 MiB."""
PAGE_MAX = 1_000
WHOLE_MAX = 2**53 - 1
DEPTH_MAX = 50
AS_TEXT = "$json"
"""The member of a document that has a value as text, where JSON of the server would change it."""


class Store:
    """The documents under a namespace, without colour."""

    def __init__(self, given: Documents | AsyncDocuments, namespace: Sequence[str]) -> None:
        self.client = given.client
        self.root = list(namespace)
        self._scope = given.scope

    @property
    def _sent(self) -> documents.Sent:
        return documents.Sent(self.client.options)

    def query(self, operations: Sequence[Mapping[str, Any]]) -> Steps[list[Any]]:
        """Runs any number of reads; those whose answers are too large together run in several requests."""
        found: list[Any] = []
        count = OPERATIONS_MAX
        while len(found) < len(operations):
            part = operations[len(found) : len(found) + count]
            try:
                found += yield from documents.query(self._scope, part, self._sent)
            except CairnError as error:
                if error.code != "payload_too_large" or len(part) == 1:
                    raise
                count = (len(part) + 1) // 2
        return found

    def everything(self, operation: Mapping[str, Any]) -> Steps[list[Any]]:
        """Reads all pages of a list."""
        found: list[Any] = []
        limit = PAGE_MAX
        cursor: dict[str, str] = {}
        while True:
            try:
                [page] = yield from documents.query(self._scope, [{**operation, "limit": limit, **cursor}], self._sent)
            except CairnError as error:
                if error.code != "payload_too_large" or limit == 1:
                    raise
                limit = (limit + 1) // 2
                continue
            found += page.data
            if page.next_cursor is None:
                return found
            cursor = {"cursor": page.next_cursor}

    def copy_all(self, namespace: Sequence[str], to: Sequence[str]) -> Steps[None]:
        """Copies all documents of a namespace, and below it, piece by piece."""
        copy = {"op": "copy_all", "namespace": namespace, "to": to}
        cursor: dict[str, str] = {}
        while True:
            copied = yield from documents.change(self._scope, {**copy, **cursor}, self._sent)
            if copied.next_cursor is None:
                return
            cursor = {"cursor": copied.next_cursor}

    def change(self, operations: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Makes changes in their order, in as few transactions as they fit into."""
        for part in requests_of(operations, size_of):
            yield from documents.batch(self._scope, part, self._sent)


def requests_of(items: Iterable[T], size: Callable[[T], int], most: int = OPERATIONS_MAX) -> Iterator[list[T]]:
    """Cuts items into as few lists as requests take, in their order, each of so many at most."""
    part: list[T] = []
    total = 0
    for item in items:
        more = size(item)
        if part and (len(part) == most or total + more > CHANGE_BYTES_MAX):
            yield part
            part, total = [], 0
        part.append(item)
        total += more
    if part:
        yield part


def size_of(value: object) -> int:
    """Returns the bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))


def stored(value: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a value as it is put: as JSON where that comes back equal and of the same types, otherwise also as text."""
    plain = {name: member for name, member in value.items() if is_plain_name(name) and is_plain(member)}
    return plain if len(plain) == len(value) else {**plain, AS_TEXT: json.dumps(value)}


def unstored(value: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the value that was stored."""
    return cast("dict[str, Any]", json.loads(value[AS_TEXT]) if AS_TEXT in value else value)


def is_plain_name(name: object) -> bool:
    # Names that are numbers change their order.
    return isinstance(name, str) and is_utf8(name) and name != AS_TEXT and re.fullmatch(r"\d+", name) is None


def is_plain(value: object, depth: int = 0) -> bool:
    """Whether a value comes back from the server equal and of the same type: 1.0 would be 1, and large numbers are refused."""
    match value:
        case None | bool():
            return True
        case str():
            return is_utf8(value)
        case int():
            return abs(value) <= WHOLE_MAX
        case float():
            return math.isfinite(value) and not value.is_integer()
        case list() if depth < DEPTH_MAX:
            return all(is_plain(item, depth + 1) for item in cast("list[object]", value))
        case dict() if depth < DEPTH_MAX:
            members = cast("dict[object, object]", value)
            return all(is_plain_name(name) and is_plain(member, depth + 1) for name, member in members.items())
        case _:
            return False
