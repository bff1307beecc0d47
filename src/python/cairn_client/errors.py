"""What a call can fail with: one class, whose `code` says what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._types import ErrorCode


class CairnError(Exception):
    """A request that the server refused, or did not answer."""

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode,
        status: int | None = None,
        param: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code: ErrorCode = code
        """`session_not_found`, `version_conflict` …; `connection_failed` and `timeout` without an answer, `unexpected_answer` for
        one that is not Cairn's."""
        self.status = status
        """The HTTP status; None without an answer."""
        self.param = param
        """The field at fault."""
        self.request_id = request_id
        """The id of the request, as in the server's log."""
        self.retry_after = retry_after
        """How many seconds the server asks to wait."""

    def __reduce__(self) -> tuple[object, ...]:
        """An error crosses processes, as of `multiprocessing`; its cause does not."""
        return _error, (self.message, self.code, self.status, self.param, self.request_id, self.retry_after)


def _error(
    message: str, code: ErrorCode, status: int | None, param: str | None, request_id: str | None, retry_after: float | None
) -> CairnError:
    return CairnError(message, code=code, status=status, param=param, request_id=request_id, retry_after=retry_after)
