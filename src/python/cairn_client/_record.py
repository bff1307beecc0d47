"""The records that Cairn answers: their JSON, with its members as attributes.

A record's class is made from the OpenAPI document and has annotations only. Its JSON is its `__dict__`, so that a record costs
little to make, can be pickled, and has the members that a newer server sends.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

R = TypeVar("R", bound="Record")


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """What a server has answered. It cannot be changed; a member that was left out is None."""

    __nested__: ClassVar[Mapping[str, str]] = {}
    """The members that are records, or lists of records, with the names of their classes."""

    def __init__(self, **members: Any) -> None:
        self.__dict__.update(members)

    def to_dict(self) -> dict[str, Any]:
        """Returns it as JSON: dicts, lists, texts, numbers, booleans and None."""
        return {name: _plain(value) for name, value in self.__dict__.items()}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


def _plain(value: object) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    return [_plain(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def _records(of: type[Record], items: list[object]) -> list[object]:
    return [record(of, cast("dict[str, Any]", item)) if isinstance(item, dict) else item for item in items]


def record(of: type[R], members: dict[str, Any]) -> R:
    """Returns the JSON of an answer as a record. It takes the dict over."""
    if of.__nested__:
        module = sys.modules[of.__module__]
        for name, kind in of.__nested__.items():
            value: Any = members.get(name)
            cls: type[Record] = getattr(module, kind)
            if isinstance(value, dict):
                members[name] = record(cls, cast("dict[str, Any]", value))
            elif isinstance(value, list):
                members[name] = _records(cls, cast("list[object]", value))
    made = of.__new__(of)
    made.__dict__.update(members)
    return made
