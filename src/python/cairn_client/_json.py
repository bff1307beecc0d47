"""JSON as Cairn takes it. What has no form of its own in JSON is refused by its path, and not guessed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from ._record import Record


def encoded(body: Mapping[str, Any]) -> bytes:
    """Returns a body as JSON.

    Raises:
        TypeError: It has a value that JSON has not, such as bytes, a datetime or a UUID; the message names its path.
        ValueError: A number is not finite, or a text has half of a surrogate pair.
    """
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=plain).encode()
    except (TypeError, ValueError, RecursionError) as cause:
        raise (fault_in(body, "") or cause) from None


def plain(value: object) -> dict[str, Any]:
    """Returns what json cannot write by itself as a dict."""
    if isinstance(value, Record):
        return vars(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError


def fault_in(value: object, path: str, depth: int = 0) -> Exception | None:
    """Returns the error for the first value that is no JSON."""
    if value is None or isinstance(value, bool | int):
        return None
    if isinstance(value, str):
        return None if is_utf8(value) else ValueError(f"{path or 'The body'} has half of a surrogate pair, which no JSON of Cairn has.")
    if isinstance(value, float):
        return None if math.isfinite(value) else ValueError(f"{path} must be a finite number; got {value}.")
    if depth > 500:
        return ValueError(f"{path[:60]}… is nested too deeply, or holds itself.")
    if isinstance(value, Record):
        value = vars(value)
    if isinstance(value, Mapping):
        for name, member in cast("Mapping[object, object]", value).items():
            if not isinstance(name, str | int | float | bool | None) or (isinstance(name, str) and not is_utf8(name)):
                return TypeError(f"A name in {path or 'the body'} must be a text; got {name!r}.")
            if fault := fault_in(member, f"{path}.{name}" if path else str(name), depth + 1):
                return fault
        return None
    if isinstance(value, list | tuple):
        for i, item in enumerate(cast("list[object]", value)):
            if fault := fault_in(item, f"{path}[{i}]", depth + 1):
                return fault
        return None
    return TypeError(f"{path or 'The body'} must be JSON; got {type(value).__name__}.")


def is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
