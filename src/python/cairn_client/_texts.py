"""Texts of frameworks as documents, of any length: what is larger than a request has its parts in a namespace of their own.

Messages and transcripts are kept as text: numbers, the order of members and halves of surrogate pairs come back as they were.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from . import documents
from ._core import Sleep, Steps
from ._stored import OPERATIONS_MAX, PAGE_MAX, Store, requests_of
from ._types import Document
from .errors import CairnError

PIECE_BYTES = 850_000
"""A piece of text as JSON, which fits into a request of 1 MiB."""
TRIES = 20
PAUSE_SECONDS_MAX = 0.5
PLACE_BYTES = 100
PLACE = ("parts", "count")
"""The members of a document that say where its text is, without the text."""

Json = dict[str, Any]
T = TypeVar("T")


class PartMissing(LookupError):
    """Raised when a text was changed or deleted while it was read."""


class TextStore(Store):
    """Documents that have a text, under a namespace."""

    def together(self, operations: Sequence[Mapping[str, Any]]) -> Steps[list[Any]]:
        """Makes changes in one transaction and returns the result of each."""
        return documents.batch(self._scope, operations, self._sent)

    def until_unchanged(self, attempt: Callable[[], Steps[T]]) -> Steps[T]:
        """Makes a change that depends on what is there; when others were faster, again with what is there then."""
        for tries in range(1, TRIES + 1):
            try:
                return (yield from attempt())
            except CairnError as error:
                if error.code != "version_conflict" or tries == TRIES:
                    raise
            yield Sleep(random.random() * min(PAUSE_SECONDS_MAX, 0.002 * 2**tries))
        raise AssertionError("a range is never empty")

    def until_whole(self, attempt: Callable[[], Steps[T]]) -> Steps[T]:
        """Reads what others may put or delete meanwhile; when parts are gone, again with what is there then."""
        for _ in range(TRIES):
            try:
                return (yield from attempt())
            except PartMissing:
                yield Sleep(random.random() * PAUSE_SECONDS_MAX)
        raise PartMissing("A text was changed each time it was read.")

    def first(self, listing: Json, count: int) -> Steps[list[Document]]:
        """Reads the first documents of a list."""
        found: list[Document] = []
        cursor: Json = {}
        while len(found) < count:
            [page] = yield from self.query([{**listing, **cursor, "limit": min(PAGE_MAX, count - len(found))}])
            found += page.data
            if page.next_cursor is None:
                break
            cursor = {"cursor": page.next_cursor}
        return found

    def split(self, parts: Sequence[str], text: str, name: str | None = None) -> tuple[list[Json], Json]:
        """Returns the operations that put the parts of a text, which come first, and the value of its document."""
        [first, *more] = pieces(text)
        if not more:
            return [], {"text": first}
        name = name or secrets.token_hex(8)
        puts: list[Json] = [
            {"op": "put", "namespace": parts, "key": f"{name}/{i:06}", "value": {"text": piece}} for i, piece in enumerate([first, *more])
        ]
        return puts, {"parts": name, "count": len(puts)}

    def text_of(self, parts: Sequence[str], value: Json) -> Steps[str]:
        if "text" in value:
            return str(value["text"])
        found = yield from self.query([{"op": "get", **place} for place in places(parts, value)])
        if None in found:
            raise PartMissing("A part of a text is gone: others have changed or deleted it meanwhile.")
        return "".join(part.value["text"] for part in found)

    def add_texts(
        self,
        texts: Sequence[tuple[Sequence[str], str]],
        change: Callable[[list[Json]], Sequence[Json]],
        make: Callable[[Sequence[Json]], Steps[Any]] | None = None,
    ) -> Steps[None]:
        """Makes a change with the values of new texts, once their parts are there.

        Args:
            texts: Each with the namespace of its parts.
            change: Returns the operations, given the values.
            make: Makes them, in one transaction unless given.

        Raises:
            CairnError: `version_conflict`: that of the change, or all parts of a namespace were deleted meanwhile. None are left.
        """
        name = secrets.token_hex(8)
        split = [self.split(parts, text, f"{name}.{i}") for i, (parts, text) in enumerate(texts)]
        puts = [put for ahead, _ in split for put in ahead]
        # They go with the parts when others delete all of them, and the change without them would be one whose parts are gone.
        marks: list[Json] = [{"namespace": parts, "key": name} for parts in dict.fromkeys(tuple(put["namespace"]) for put in puts)]
        ends = [{"op": "delete", **mark, "if_version": 1} for mark in marks]
        operations = [*ends, *change([value for _, value in split])]
        begins: list[Json] = [{"op": "put", **mark, "value": {}} for mark in marks]
        yield from self.after_parts([*begins, *puts], lambda: (make or self.together)(operations))

    def after_parts(self, puts: Sequence[Json], act: Callable[[], Steps[T]]) -> Steps[T]:
        """Puts parts and does what leads to them; when others were faster, none of them is left."""
        yield from self.change(puts)
        try:
            return (yield from act())
        except CairnError as error:
            if error.code == "version_conflict":
                yield from self.change({"op": "delete", "namespace": put["namespace"], "key": put["key"]} for put in puts)
            raise

    def swept(self, parts: Sequence[str], holders: Callable[[], Steps[Iterable[Document | None]]]) -> Steps[None]:
        """Deletes the parts of a namespace to which no document leads any more.

        Args:
            parts: The namespace.
            holders: Reads all documents that may lead to its parts.
        """
        keys = [head.key for head in (yield from self.everything({"op": "list", "namespace": parts, "values": False}))]
        if not keys:
            return
        # In this order: there is a mark until a document leads to the parts.
        marks = dict.fromkeys(key.partition(".")[0] for key in keys)
        marked = yield from self.query([{"op": "get", "namespace": parts, "key": mark, "values": False} for mark in marks])
        adding = {mark.key for mark in marked if mark is not None}
        held = {one.value.get("parts") for one in (yield from holders()) if one is not None}
        gone = [key for key in keys if key.partition("/")[0] not in held and key.partition(".")[0] not in adding]
        yield from self.change({"op": "delete", "namespace": parts, "key": key} for key in gone)

    def get_text(self, at: Json, parts: Sequence[str]) -> Steps[tuple[Document, str] | None]:
        """Reads a document and its text, whole, whatever others do meanwhile."""
        return (yield from self.until_whole(lambda: self._text_at(at, parts)))

    def _text_at(self, at: Json, parts: Sequence[str]) -> Steps[tuple[Document, str] | None]:
        [found] = yield from self.query([{"op": "get", **at}])
        return None if found is None else (found, (yield from self.text_of(parts, found.value)))

    def put_text(self, at: Json, parts: Sequence[str], text: str, **more: Any) -> Steps[None]:
        """Puts a text, with other members, in the place of what was there. The parts are those of this document alone."""

        def change(values: list[Json]) -> list[Json]:
            return self.replacement(at, parts, {**values[0], **more})

        yield from self.until_unchanged(lambda: self.add_texts([(parts, text)], change))
        if is_large(text):
            yield from self.sweep_after(at, parts)

    def replacement(self, at: Json, parts: Sequence[str], value: Json) -> list[Json]:
        """Returns the operations that put the value of a text in the place of what was there; after one with parts others are swept."""
        put: Json = {"op": "put", **at, "value": value}
        return [put] if "parts" in value else [put, {"op": "delete_all", "namespace": parts}]

    def sweep_after(self, at: Json, parts: Sequence[str]) -> Steps[None]:
        """Deletes the parts of what was in the place of a document."""
        yield from self.swept(parts, lambda: self.query([{"op": "get", **at, "fields": PLACE}]))

    def delete_text(self, at: Json, parts: Sequence[str]) -> Steps[None]:
        """Deletes a document with its text, if there is one. The parts are those of this document alone."""
        yield from self.together([{"op": "delete", **at}, {"op": "delete_all", "namespace": parts}])

    def removals(self, parts: Sequence[str], value: Json) -> list[Json]:
        """Returns the operations that delete the parts of a text."""
        return [{"op": "delete", **place} for place in places(parts, value)]


class TextLog:
    """Texts in the order in which they were added: messages of a conversation.

    […, "items"]   rising key -> a text
    […, "parts"]   a piece of a text that is larger than a request
    """

    def __init__(self, store: TextStore, namespace: Sequence[str]) -> None:
        self._store = store
        self._items = [*namespace, "items"]
        self._parts = [*namespace, "parts"]

    def add(self, texts: Iterable[str]) -> Steps[None]:
        for group in requests_of(texts, item_size, OPERATIONS_MAX - 1):
            yield from self._store.until_unchanged(partial(self._store.add_texts, [(self._parts, text) for text in group], self._puts))

    def _puts(self, values: Sequence[Json]) -> list[Json]:
        return [{"op": "put", "namespace": self._items, "value": value} for value in values]

    def read(self, count: int | None = None) -> Steps[list[str]]:
        """Returns the last texts, or all, the oldest first."""
        return (yield from self._store.until_whole(lambda: self._read(count)))

    def _read(self, count: int | None) -> Steps[list[str]]:
        if count is None:
            found: list[Document] = yield from self._store.everything({"op": "list", "namespace": self._items})
        else:
            found = (yield from self._store.first({"op": "list", "namespace": self._items, "order": "desc"}, count))[::-1]
        texts: list[str] = []
        for document in found:
            texts.append((yield from self._store.text_of(self._parts, document.value)))
        return texts

    def pop(self) -> Steps[str | None]:
        """Takes the last text away and returns it."""
        while True:
            [document] = yield from self._store.together([{"op": "pop", "namespace": self._items}])
            if document is None:
                return None
            try:
                text = yield from self._store.text_of(self._parts, document.value)
            except PartMissing:
                continue  # all were deleted meanwhile
            yield from self._store.change(self._store.removals(self._parts, document.value))
            return text

    def clear(self) -> Steps[None]:
        yield from self._store.together([{"op": "delete_all", "namespace": namespace} for namespace in (self._items, self._parts)])


def item_size(text: str) -> int:
    """Returns how much of a request a text takes, without its parts."""
    return PLACE_BYTES if is_large(text) else len(json.dumps(text))


def is_large(text: str) -> bool:
    return len(text) > PIECE_BYTES or len(json.dumps(text)) > PIECE_BYTES


def places(parts: Sequence[str], value: Json) -> list[Json]:
    return [{"namespace": parts, "key": f"{value['parts']}/{i:06}"} for i in range(value.get("count", 0))]


def pieces(text: str) -> list[str]:
    """Returns a text in ASCII, cut where a request would be too large."""
    cut: list[str] = []
    while text or not cut:
        end = min(len(text), PIECE_BYTES)
        # In the JSON of a request quotes and backslashes are escaped again.
        while len(json.dumps(text[:end])) > PIECE_BYTES:
            end = end * 3 // 4
        cut.append(text[:end])
        text = text[end:]
    return cut
