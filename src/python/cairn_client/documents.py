"""Documents without colour: operations in one transaction or one request, and lists that continue after a cursor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from . import _types
from ._core import Call, Options, Steps, attempts
from ._given import OMIT, check_given
from ._page import Found
from ._record import Record, record

CONDITIONS = ("key", "if_version", "if_exists", "session_id", "ttl_seconds", "filter")
"""Without one of these a change is another one: of another document, of whatever is there, for ever."""

RESULTS: Mapping[str, type[Record]] = {
    "put": _types.DocumentWritten,
    "touch": _types.DocumentTouched,
    "delete": _types.DocumentsDeleted,
    "delete_all": _types.DocumentsDeleted,
    "copy_all": _types.DocumentsCopied,
    "pop": _types.Document,
    "get": _types.Document,
    "list": _types.DocumentPage,
    "search": _types.DocumentSearchPage,
    "count": _types.DocumentCount,
    "namespaces": _types.NamespacePage,
}


class Scope(NamedTuple):
    """Whose documents are used, and of which session those are that are put."""

    owner: Mapping[str, str] = {}
    session_id: str | None = None


class Sent(NamedTuple):
    """What a call of documents is sent with."""

    options: Options
    timeout: float | None = None
    idempotency_key: str | None = None


def batch(scope: Scope, operations: Iterable[Mapping[str, Any]], sent: Sent) -> Steps[list[Any]]:
    """Makes changes in one transaction and returns the result of each."""
    owned: list[dict[str, Any]] = []
    for operation in operations:
        check_given(operation, CONDITIONS)
        is_put = operation.get("op") == "put" and scope.session_id is not None
        owned.append({**({"session_id": scope.session_id} if is_put else {}), **without_omitted(operation)})
    return (yield from results("batch", scope, owned, sent))


def query(scope: Scope, operations: Iterable[Mapping[str, Any]], sent: Sent) -> Steps[list[Any]]:
    """Runs reads in one request and returns the result of each."""
    asked = [without_omitted(operation) for operation in operations]
    for operation in asked:
        check_given(operation, operation.keys() - _types.OPEN)
    return (yield from results("query", scope, asked, sent))


def results(kind: str, scope: Scope, operations: Sequence[Mapping[str, Any]], sent: Sent) -> Steps[list[Any]]:
    body = {**scope.owner, "operations": operations}
    call = Call(
        "POST",
        f"/v1/documents/{kind}",
        body=body,
        idempotency_key=sent.idempotency_key,
        timeout=sent.timeout,
        is_change=kind == "batch",
    )
    answer = yield from attempts(call, sent.options)
    return [result_of(operation, result) for operation, result in zip(operations, answer["data"], strict=True)]


def result_of(operation: Mapping[str, Any], result: Any) -> Any:
    kind = RESULTS.get(operation["op"])
    return result if result is None or kind is None else record(kind, result)


def without_omitted(operation: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in operation.items() if value is not OMIT and not (value is None and name in _types.OPEN)}


def change(scope: Scope, operation: Mapping[str, Any], sent: Sent) -> Steps[Any]:
    """Makes one change and returns its result."""
    [result] = yield from batch(scope, [operation], sent)
    return result


def read(scope: Scope, operation: Mapping[str, Any], sent: Sent) -> Steps[Any]:
    """Runs one read and returns its result."""
    [result] = yield from query(scope, [operation], sent)
    return result


def pages(scope: Scope, operation: Mapping[str, Any], sent: Sent) -> Steps[Found]:
    """Reads a page of documents or namespaces."""
    page = yield from read(scope, operation, sent)
    if page.next_cursor is None:
        return Found(page.data, vars(page), None)
    # The rest of an offset that a page has not left out yet is in its cursor.
    further = {**operation, "cursor": page.next_cursor, "offset": 0}
    return Found(page.data, vars(page), lambda: pages(scope, further, sent))
