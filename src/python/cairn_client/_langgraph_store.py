"""LangGraph's store as documents of Cairn: an item is one document, which the adapter for TypeScript reads too.

As with LangGraph's own stores the reads of a batch see what was there before its writes, and of several writes to one item the last counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from ._async import AsyncDocuments
from ._core import Steps
from ._json import is_utf8
from ._stored import Store, is_plain_name, stored, unstored
from ._sync import Documents
from ._types import Document, DocumentMatch

Json = dict[str, Any]

PAGE = 100
MATCHES_MAX = 200
"""How far a search by meaning goes; the items behind come without a score."""
TTL_SECONDS_MIN = 0.001
OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")


class CairnStore(BaseStore):
    """A store for both colours of LangGraph.

    Example:
        graph = builder.compile(store=CairnStore(Cairn("crn_…").documents, index=["text"]))
    """

    supports_ttl = True

    def __init__(
        self,
        documents: Documents | AsyncDocuments,
        *,
        namespace: Sequence[str] = ("langgraph-store",),
        index: bool | Sequence[str] = False,
        ttl: TTLConfig | None = None,
    ) -> None:
        """Makes a store.

        Args:
            documents: `cairn.documents`, or those of a user, of either client.
            namespace: Under which the items are.
            index: Lets `search` order items by a `query`: True by all of an item, or by what these paths lead to, such as `text` or
                `lines[*].text`. Cairn makes the vectors itself. Without it a `query` changes nothing.
            ttl: LangGraph's settings: `default_ttl` in minutes, and `refresh_on_read`. Items end by themselves; nothing is to be swept.
        """
        self.ttl_config = ttl
        self._store = Store(documents, namespace)
        self._index: bool | list[str] = index if isinstance(index, bool) else list(index)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._store.client.run(self._batch(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self._store.client.arun(self._batch(list(ops)))

    def _batch(self, ops: list[Op]) -> Steps[list[Result]]:
        for op in ops:
            validate_op_namespace(op)
        results: list[Result] = [None] * len(ops)
        renewed: dict[tuple[str, ...], Json] = {}
        gets = [(i, op) for i, op in enumerate(ops) if isinstance(op, GetOp)]
        found = yield from self._store.query([{"op": "get", "namespace": self._under(op.namespace), "key": op.key} for _, op in gets])
        for (i, op), document in zip(gets, found, strict=True):
            if document is not None:
                results[i] = self._item(document)
                self._renew(renewed, op, [document])
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for i, op in enumerate(ops):
            if isinstance(op, SearchOp):
                matches = yield from self._search(op)
                results[i] = [self._match(document) for document in matches]
                self._renew(renewed, op, matches)
            elif isinstance(op, ListNamespacesOp):
                results[i] = yield from self._namespaces(op)
            elif isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
        yield from self._store.change([*renewed.values(), *(self._put(op) for op in puts.values())])
        return results

    def _renew(self, renewed: dict[tuple[str, ...], Json], op: GetOp | SearchOp, found: Iterable[Document | DocumentMatch]) -> None:
        for document in found:
            if op.refresh_ttl and document.expires_at is not None:
                touch = {"op": "touch", "namespace": document.namespace, "key": document.key}
                renewed[(*document.namespace, document.key)] = touch

    def _put(self, op: PutOp) -> Json:
        at = {"namespace": self._under(op.namespace), "key": op.key}
        if op.value is None:
            return {"op": "delete", **at}
        index = self._index if op.index is None else op.index
        lifetime = {} if op.ttl is None else {"ttl_seconds": max(TTL_SECONDS_MIN, op.ttl * 60)}
        return {"op": "put", **at, "value": stored(op.value), **({"index": index} if index else {}), **lifetime}

    def _search(self, op: SearchOp) -> Steps[list[Any]]:
        """Returns documents that have a score, best first, and behind them those that have none."""
        wanted = op.filter or {}
        at: Json = {"namespace": self._under(op.namespace_prefix)}
        if of_server := {name: value for name, value in wanted.items() if _is_of_server(name, value)}:
            at["filter"] = of_server
        end = op.offset + op.limit
        if op.limit <= 0:
            return []
        scored: dict[tuple[str, ...], Any] = {}
        if op.query and self._index:
            count = min(MATCHES_MAX, end if len(of_server) == len(wanted) else MATCHES_MAX)
            scored = yield from self._scored(at, op.query, count)
        found = [one for one in scored.values() if _passes(one, wanted)]
        listing: Json = {"op": "list", **at, "deep": True, "limit": min(PAGE, end)}
        while len(found) < end:
            [page] = yield from self._store.query([listing])
            found += [one for one in page.data if (*one.namespace, one.key) not in scored and _passes(one, wanted)]
            if page.next_cursor is None:
                break
            listing["cursor"] = page.next_cursor
        return found[op.offset : end]

    def _scored(self, at: Json, query: str, count: int) -> Steps[dict[tuple[str, ...], Any]]:
        """Returns the documents that a query is about, best first. One page has less than was asked for where they are large."""
        scored: dict[tuple[str, ...], Any] = {}
        offset = 0
        while offset < count:
            [page] = yield from self._store.query([{"op": "search", **at, "query": query, "limit": count - offset, "offset": offset}])
            scored |= {(*one.namespace, one.key): one for one in page.data}
            offset += len(page.data)
            if not page.has_more or not page.data:
                break
        return scored

    def _namespaces(self, op: ListNamespacesOp) -> Steps[list[tuple[str, ...]]]:
        conditions = op.match_conditions or ()
        prefix = next((condition.path for condition in conditions if condition.match_type == "prefix"), ())
        listing: Json = {"op": "namespaces", "prefix": self._under(prefix), "limit": PAGE}
        depth = len(self._store.root)
        end = op.offset + op.limit
        found: dict[tuple[str, ...], None] = {}
        while len(found) < end:
            [page] = yield from self._store.query([listing])
            for parts in page.data:
                namespace = tuple(parts[depth:])
                # To the server a part that is a star is any, in the root of this store too.
                if parts[:depth] == self._store.root and all(_matches(condition, namespace) for condition in conditions):
                    found[namespace[: op.max_depth]] = None
            if page.next_cursor is None:
                break
            listing["cursor"] = page.next_cursor
        return list(found)[op.offset : end]

    def _under(self, namespace: Sequence[str]) -> list[str]:
        return [*self._store.root, *namespace]

    def _members(self, document: Document | DocumentMatch) -> Json:
        return {
            "namespace": tuple(document.namespace[len(self._store.root) :]),
            "key": document.key,
            "value": unstored(document.value),
            "created_at": datetime.fromisoformat(document.created_at),
            "updated_at": datetime.fromisoformat(document.updated_at),
        }

    def _item(self, document: Document) -> Item:
        return Item(**self._members(document))

    def _match(self, document: Document | DocumentMatch) -> SearchItem:
        return SearchItem(**self._members(document), score=getattr(document, "score", None))


def _is_of_server(name: str, wanted: object) -> bool:
    """Whether the server compares as LangGraph does: a dot in a name is a path to it, and 1 is not 1.0 or True, as it is in Python."""
    is_member = is_plain_name(name) and name != "" and "." not in name and not name.startswith("$")
    return is_member and isinstance(wanted, str) and is_utf8(wanted)


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", one) for wanted, one in zip(path, part, strict=True))


def _passes(document: Document | DocumentMatch, wanted: Mapping[str, Any]) -> bool:
    if not wanted:
        return True
    value = unstored(document.value)
    return all(_equals(value.get(name), one) for name, one in wanted.items())


def _equals(value: object, wanted: object) -> bool:
    """Compares as LangGraph's stores do: an object has at least the members that are wanted, and what is missing is None."""
    if isinstance(wanted, Mapping):
        members = cast("Mapping[str, Any]", wanted)
        if any(name.startswith("$") for name in members):
            return all(_compares(value, name, operand) for name, operand in members.items())
        return isinstance(value, dict) and all(_equals(cast("Json", value).get(name), one) for name, one in members.items())
    if isinstance(wanted, list | tuple):
        items = cast("Sequence[Any]", wanted)
        if not isinstance(value, list):
            return False
        found = cast("list[object]", value)
        return len(found) == len(items) and all(_equals(one, item) for one, item in zip(found, items, strict=True))
    return bool(value == wanted)


def _compares(value: Any, operator: str, operand: Any) -> bool:
    if operator not in OPERATORS:
        raise ValueError(f"A filter knows {', '.join(OPERATORS)}; got {operator!r}.")
    if operator in ("$eq", "$ne"):
        return (value == operand) is (operator == "$eq")
    try:
        left, right = float(value), float(operand)
    except (TypeError, ValueError):
        return False  # No number is before or after what is none.
    match operator:
        case "$gt":
            return left > right
        case "$gte":
            return left >= right
        case "$lt":
            return left < right
        case _:
            return left <= right
