"""The memory service for Google's ADK: what was said becomes memories of the app about the user.

[…, "forgotten", app, user]   event id -> nothing: its memory was deleted, and is not added again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Content, Part
from pydantic_core import to_jsonable_python

from ._async import AsyncCairn
from ._core import Steps
from ._memories import LENGTH_MAX, Memories
from ._sync import Cairn
from ._texts import TextStore
from ._types import Memory

Json = dict[str, Any]

NAMESPACE = ("google-adk-python",)


class CairnMemoryService(BaseMemoryService):
    """A memory service of the Agent Development Kit: what was said becomes memories of the app about the user.

    Example:
        runner = Runner(app_name="support", agent=agent, session_service=sessions, memory_service=CairnMemoryService(AsyncCairn("crn_…")))
    """

    def __init__(self, cairn: Cairn | AsyncCairn, *, namespace: Sequence[str] = NAMESPACE, limit: int = 10) -> None:
        """Makes a memory service.

        Args:
            cairn: Either client.
            namespace: Under which it keeps which memories were deleted.
            limit: How many a search finds at most.
        """
        self._cairn = cairn
        self._store = TextStore(cairn.documents, namespace)
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Adds what was said in a session; what was added before is there once, and what was deleted stays so."""
        of = (session.app_name, session.user_id)
        await self._cairn.arun(self._add_events(*of, session.events, {"session_id": session.id}))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Adds what was said in events; what was added before is there once, and what was deleted stays so."""
        metadata = {**(custom_metadata or {}), **({} if session_id is None else {"session_id": session_id})}
        await self._cairn.arun(self._add_events(app_name, user_id, events, metadata))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Adds memories; one that says the same as another of the app about the user is that one."""
        for entry in memories:
            metadata = {**(custom_metadata or {}), **entry.custom_metadata}
            steps = self._add(app_name, user_id, text_of(entry.content), entry.author, entry.timestamp, metadata, entry.id)
            await self._cairn.arun(steps)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Returns the memories that are about a query, the best first."""
        if not query.strip():
            return SearchMemoryResponse()
        found = await self._cairn.arun(self._memories(app_name, user_id).found(query, limit=self._limit))
        return SearchMemoryResponse(memories=[entry_of(memory) for _, memory in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Deletes a memory by its id, if there is one; its event is not added again."""
        if memory_id:
            await self._cairn.arun(self._delete(app_name, user_id, memory_id))

    def _memories(self, app_name: str, user_id: str) -> Memories:
        return Memories(self._cairn, user_id, app_name)

    def _forgotten(self, app_name: str, user_id: str) -> list[str]:
        return [*self._store.root, "forgotten", app_name, user_id]

    def _add_events(self, app_name: str, user_id: str, events: Sequence[Event], metadata: Json) -> Steps[None]:
        said = [(event, text_of(event.content)) for event in events if event.content is not None]
        said = [(event, text) for event, text in said if text.strip()]
        at = self._forgotten(app_name, user_id)
        gone = yield from self._store.query([{"op": "get", "namespace": at, "key": event.id} for event, _ in said])
        for (event, text), is_gone in zip(said, gone, strict=True):
            if is_gone is None:
                time = datetime.fromtimestamp(event.timestamp, UTC).isoformat()
                yield from self._add(app_name, user_id, text, event.author, time, metadata, event.id)

    def _add(
        self, app_name: str, user_id: str, text: str, author: str | None, time: str | None, metadata: Json, id_: str | None
    ) -> Steps[None]:
        """Adds a text as a memory, or as several where it is too long for one."""
        more: Json = {"metadata": to_jsonable_python({**metadata, "author": author, "timestamp": time})}
        if author is not None:
            more["source"] = "user" if author == "user" else "agent"
        for i, start in enumerate(range(0, len(text), LENGTH_MAX)):
            name = {} if not id_ else {"external_id": f"{id_}/{i}", "if_exists": "return"}
            yield from self._memories(app_name, user_id).add(text[start : start + LENGTH_MAX], **more, **name)

    def _delete(self, app_name: str, user_id: str, memory_id: str) -> Steps[None]:
        memory = yield from self._memories(app_name, user_id).get(memory_id)
        if memory is None or (memory.user_id, memory.agent_id) != (user_id, app_name):
            return
        if memory.external_id is not None:
            key = memory.external_id.rsplit("/", 1)[0]
            yield from self._store.together([{"op": "put", "namespace": self._forgotten(app_name, user_id), "key": key, "value": {}}])
        yield from self._memories(app_name, user_id).delete(memory_id)


def text_of(content: Content) -> str:
    return " ".join(part.text for part in content.parts or [] if part.text)


def entry_of(memory: Memory) -> MemoryEntry:
    metadata = dict(memory.metadata)
    author, time = metadata.pop("author", None), metadata.pop("timestamp", None)
    content = Content(role="user" if author == "user" else "model", parts=[Part(text=memory.content)])
    return MemoryEntry(id=memory.id, content=content, author=author, timestamp=time or memory.created_at, custom_metadata=metadata)
