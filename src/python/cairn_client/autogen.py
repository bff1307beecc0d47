"""A memory of AutoGen: the memories of a user or an agent, found by meaning and by words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

from ._async import AsyncCairn
from ._core import Steps
from ._given import OMIT, Omit
from ._memories import Memories
from ._stored import stored, unstored
from ._sync import Cairn
from ._types import Memory as Record

try:
    from autogen_core import CancellationToken
    from autogen_core.memory import Memory, MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
    from autogen_core.model_context import ChatCompletionContext
    from autogen_core.models import SystemMessage, UserMessage
except ImportError as cause:
    raise ImportError("CairnMemory needs AutoGen: pip install 'cairn-client[autogen]'") from cause

Json = dict[str, Any]
T = TypeVar("T")

KIND = "$autogen"
"""The member of a memory's metadata that says what its content is, where that is no plain text."""
PROMPT = "Relevant memory content:"


class CairnMemory(Memory):
    """A memory of AutoGen: the memories of a user or an agent.

    Example:
        agent = AssistantAgent("support", model_client, memory=[CairnMemory(AsyncCairn("crn_…"), user_id="user-42")])
    """

    def __init__(
        self,
        cairn: Cairn | AsyncCairn,
        *,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        limit: int | None = None,
        prompt: str = PROMPT,
    ) -> None:
        """Makes a memory.

        Args:
            cairn: Either client.
            user_id: Whose memories they are; they, `agent_id` or both are needed.
            agent_id: The agent whose memories they are.
            limit: How many a query finds at most, 10 unless given.
            prompt: Stands before what a model is told.

        Raises:
            TypeError: There is no owner, or one of the ids is None.
        """
        self._memories = Memories(cairn, user_id, agent_id)
        self._limit = limit
        self._prompt = prompt

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Tells the model the memories that are about what the user said last."""
        said = [one for one in await model_context.get_messages() if isinstance(one, UserMessage)]
        text = text_of(said[-1]) if said else ""
        found = await self.query(text) if text.strip() else MemoryQueryResult(results=[])
        if found.results:
            # A memory is one line, so that none looks like another, or like the end of them.
            lines = [f"{i}. {' '.join(shown(one).split())}" for i, one in enumerate(found.results, 1)]
            await model_context.add_message(SystemMessage(content="\n".join([self._prompt, *lines])))
        return UpdateContextResult(memories=found)

    async def query(
        self, query: str | MemoryContent = "", cancellation_token: CancellationToken | None = None, **kwargs: Any
    ) -> MemoryQueryResult:
        """Returns the memories that are about a query, the best first, with `id` and `score` in their metadata.

        Without a text it returns all, the oldest first, with their `id`.
        """
        text = query if isinstance(query, str) else stored_content(query)
        found = await self._run(self._found(text) if text.strip() else self._all(), cancellation_token)
        return MemoryQueryResult(results=found)

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Adds a memory; one that says the same as another of its owner is that one.

        Raises:
            TypeError: The content is an image or bytes.
            CairnError: It is empty, or has more than 10,000 characters.
        """
        text, metadata = stored_content(content), dict(content.metadata or {})
        if KIND in metadata:
            raise ValueError(f"Metadata of a memory has no member {KIND}, which says what its content is.")
        kind = kind_of(content)
        more = {**stored(metadata), **({} if kind is None else {KIND: kind})}
        await self._run(self._memories.add(text, metadata=more), cancellation_token)

    async def clear(self) -> None:
        """Deletes all memories of the owner, also those that others have added."""
        await self._run(self._memories.forget(), None)

    async def close(self) -> None:
        """Does nothing: the client is the caller's."""

    async def _run(self, steps: Steps[T], cancellation_token: CancellationToken | None) -> T:
        running = asyncio.ensure_future(self._memories.client.arun(steps))
        if cancellation_token is not None:
            cancellation_token.link_future(running)
        return await running

    def _found(self, query: str) -> Steps[list[MemoryContent]]:
        found = yield from self._memories.found(query, limit=self._limit)
        return [content_of(memory, score=result.score) for result, memory in found]

    def _all(self) -> Steps[list[MemoryContent]]:
        memories = yield from self._memories.everything()
        return [content_of(memory) for memory in reversed(memories)]


def text_of(message: UserMessage) -> str:
    parts = [message.content] if isinstance(message.content, str) else message.content
    return "\n".join(part for part in parts if isinstance(part, str))


def stored_content(content: MemoryContent) -> str:
    match content.content:
        case str(text):
            return text
        case dict(value):
            return json.dumps(value, ensure_ascii=False)
        case other:
            raise TypeError(f"CairnMemory keeps text and JSON, and no {type(other).__name__}.")


def kind_of(content: MemoryContent) -> Json | None:
    """Returns what tells the content from plain text; None where nothing does."""
    mime_type = content.mime_type.value if isinstance(content.mime_type, MemoryMimeType) else content.mime_type
    is_json = not isinstance(content.content, str)
    return None if (mime_type, is_json) == (MemoryMimeType.TEXT.value, False) else {"mime_type": mime_type, "json": is_json}


def content_of(memory: Record, **more: Any) -> MemoryContent:
    metadata = dict(memory.metadata)
    kind: Mapping[str, Any] = metadata.pop(KIND, {})
    mime_type: str = kind.get("mime_type", MemoryMimeType.TEXT.value)
    content: str | Json = memory.content
    if kind.get("json"):
        # Whoever edited it may have written something else instead.
        with suppress(ValueError):
            read: Any = json.loads(memory.content)
            content = cast("Json", read) if isinstance(read, dict) else memory.content
    known: dict[str, MemoryMimeType] = {one.value: one for one in MemoryMimeType}
    return MemoryContent(
        content=content,
        mime_type=known.get(mime_type, mime_type),
        metadata={**unstored(metadata), "id": memory.id, **more},
    )


def shown(content: MemoryContent) -> str:
    return content.content if isinstance(content.content, str) else json.dumps(content.content, ensure_ascii=False)
