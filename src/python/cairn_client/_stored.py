"""Values of frameworks as documents: what an adapter reads and changes in one step, however much it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import documents
from ._async import AsyncDocuments
from ._core import Steps
from ._sync import Documents
from .errors import CairnError

OPERATIONS_MAX = 100
CHANGE_BYTES_MAX = 900_000
"""A request takes 1 MiB."""
PAGE_MAX = 1_000


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

    def change(self, operations: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Makes changes in their order, in as few transactions as they fit into."""
        part: list[Mapping[str, Any]] = []
        total = 0
        for operation in operations:
            size = len(json.dumps(operation, ensure_ascii=False))
            if part and (len(part) == OPERATIONS_MAX or total + size > CHANGE_BYTES_MAX):
                yield from documents.batch(self._scope, part, self._sent)
                part, total = [], 0
            part.append(operation)
            total += size
        if part:
            yield from documents.batch(self._scope, part, self._sent)
