"""What a caller gives: fields that are left out, ids in paths, parameters of a query string.

What narrows a read or a change must be there once it is named. None, as of a variable that was not set, would be no filter and no
condition: the records of all users instead of those of one, a change whatever the version.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast, final
from urllib.parse import quote, urlencode

from ._json import encoded
from ._types import OPEN


@final
class Omit:
    """The type of `OMIT`, which stands for a field that is left out."""

    def __repr__(self) -> str:
        return "OMIT"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "OMIT"


OMIT: Final = Omit()
"""Leaves a field out: `user_id=user.id if user else OMIT` are the records of all users where there is no user."""


def given(fields: Mapping[str, object], *, nullable: Collection[str] = ()) -> dict[str, Any]:
    """Returns the fields without those that are left out.

    Raises:
        TypeError: A field is None that is neither open nor one that null changes.
    """
    sent: dict[str, Any] = {}
    for name, value in fields.items():
        if value is OMIT or (value is None and name in OPEN):
            continue
        if value is None and name not in nullable:
            raise is_none(name)
        sent[name] = value
    return sent


def is_none(name: str) -> TypeError:
    return TypeError(f"{name} must not be None, which would be none at all: leave it out where that is meant.")


def check_given(fields: Mapping[str, object], names: Collection[str]) -> None:
    """Raises a `TypeError` for one of these fields that is there, and None."""
    for name in names:
        if name in fields and fields[name] is None:
            raise is_none(name)


def texts(name: str, value: object) -> list[str]:
    """Returns a sequence of texts as a list.

    Raises:
        TypeError: It is one text, which would be its letters.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise TypeError(f"{name} must be a list of texts; got {value!r}.")
    return list(cast("Sequence[str]", value))


def path(template: str, *ids: object) -> str:
    """Returns a path with its ids escaped.

    Raises:
        TypeError: An id is missing, or the path would be that of something else.
    """
    for each in ids:
        if not isinstance(each, str | int) or each in ("", ".", ".."):
            raise TypeError(f'An id in {template} must be a text other than "", "." and ".."; got {each!r}.')
    # UTF-8 has no halves of surrogate pairs, and the id of a user can.
    return template.format(*(quote(str(each), safe="", errors="surrogatepass") for each in ids))


def query_string(query: Mapping[str, object]) -> str:
    """Returns a query string with its `?`; a list is sent once for each item, a mapping as JSON."""
    parameters: list[tuple[str, str]] = []
    for name, value in query.items():
        if isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            parameters += [(name, parameter(name, item)) for item in items]
            # A single text with commas would be read as several.
            if len(items) == 1:
                parameters.append((name, ""))
        else:
            parameters.append((name, parameter(name, value)))
    return f"?{urlencode(parameters, errors='surrogatepass')}" if parameters else ""


def parameter(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, Mapping):
        return encoded(cast("Mapping[str, Any]", value)).decode()
    raise TypeError(f"{name} must be a text, a number or a mapping; got {value!r}.")
