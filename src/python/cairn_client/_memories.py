"""Memories of a user, of an agent, or of an agent about a user, without colour: what the adapters for memories share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._client import Client
from ._core import Call, Steps, answered
from ._given import Omit, given, path
from ._page import PAGE_MAX, Found, listed
from ._stored import requests_of, size_of
from ._types import AddedMemories, AddedMemory, DeletedMemory, ForgetResult, Memory, MemoryResult, MemoryResults
from .errors import CairnError

LENGTH_MAX = 10_000
"""Of a memory, and of a query, in characters."""
FORGOTTEN_MAX = 1_000
"""In one request."""


class Memories:
    """Memories of one owner."""

    def __init__(self, client: Client, user_id: str | Omit, agent_id: str | Omit) -> None:
        """Makes them.

        Raises:
            TypeError: Neither is given, which would be the memories of all users, or one of them is None.
        """
        self.client = client
        self._owner = given({"user_id": user_id, "agent_id": agent_id})
        if not self._owner:
            raise TypeError("user_id or agent_id is needed: without either these would be the memories of all users.")

    def add(self, content: str, **more: Any) -> Steps[AddedMemory]:
        """Adds a memory; one that says the same as another of its owner is that one."""
        body = {**self._owner, "content": content, "on_duplicate": "return", **more}
        return answered(Call("POST", "/v1/memory", body=given(body)), self.client.options, AddedMemory)

    def add_all(self, memories: Iterable[Mapping[str, Any]]) -> Steps[None]:
        """Adds memories, as `add` does each, in as few transactions as they fit into."""
        bodies = (given({**self._owner, "on_duplicate": "return", **memory}) for memory in memories)
        for part in requests_of(bodies, size_of):
            yield from answered(Call("POST", "/v1/memory/batch", body={"memories": part}), self.client.options, AddedMemories)

    def search(self, query: str, *, limit: int | None, **more: Any) -> Steps[MemoryResults]:
        """Finds memories, the best first."""
        body = given({**self._owner, "query": query[:LENGTH_MAX], "limit": limit, **more})
        return answered(Call("POST", "/v1/memory/search", body=body, is_change=False), self.client.options, MemoryResults)

    def found(self, query: str, *, limit: int | None) -> Steps[list[tuple[MemoryResult, Memory]]]:
        """Finds memories with their metadata, the best first; without those that were deleted meanwhile."""
        results = yield from self.search(query, limit=limit)
        found: list[tuple[MemoryResult, Memory]] = []
        for result in results.data:
            memory = yield from self.get(result.id)
            found += [] if memory is None else [(result, memory)]
        return found

    def get(self, memory_id: str) -> Steps[Memory | None]:
        try:
            return (yield from answered(Call("GET", path("/v1/memory/{}", memory_id)), self.client.options, Memory))
        except CairnError as error:
            if error.code != "memory_not_found":
                raise
            return None

    def everything(self) -> Steps[list[Memory]]:
        """Returns all memories, the newest first."""
        query = {**self._owner, "limit": PAGE_MAX}
        page: Found | None = yield from listed(Call("GET", "/v1/memory", query=query), self.client.options, Memory)
        memories: list[Memory] = []
        while page is not None:
            memories += page.data
            page = None if page.next is None else (yield from page.next())
        return memories

    def forget(self) -> Steps[None]:
        """Deletes all memories, those too that are not current."""
        body = {"filter": self._owner, "dry_run": False, "limit": FORGOTTEN_MAX}
        while (yield from answered(Call("POST", "/v1/memory/forget", body=body), self.client.options, ForgetResult)).has_more:
            pass

    def delete(self, memory_id: str) -> Steps[DeletedMemory]:
        gone: Mapping[str, Any] = {"object": "memory", "id": memory_id, "deleted": True}
        return answered(Call("DELETE", path("/v1/memory/{}", memory_id), gone=gone), self.client.options, DeletedMemory)
