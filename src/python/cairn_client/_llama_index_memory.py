"""A memory block of LlamaIndex: what was said becomes memories of a user or an agent, which a model is told when they matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory import BaseMemoryBlock

from ._async import AsyncCairn
from ._given import OMIT, Omit
from ._memories import LENGTH_MAX, Memories
from ._stored import stored
from ._sync import Cairn

Json = dict[str, Any]

SESSION = "session_id"
"""Where LlamaIndex puts the session of a message: a member of its `additional_kwargs`."""
SOURCES = {MessageRole.USER: "user", MessageRole.TOOL: "tool", MessageRole.FUNCTION: "tool"}


class CairnMemoryBlock(BaseMemoryBlock[str]):
    """A memory block of LlamaIndex: the memories of a user or an agent.

    Example:
        memory = Memory.from_defaults(memory_blocks=[CairnMemoryBlock(AsyncCairn("crn_…"), user_id="user-42")])
        await agent.run("Hello", memory=memory)
    """

    _memories: Memories = PrivateAttr()
    _limit: int | None = PrivateAttr()

    def __init__(
        self,
        cairn: Cairn | AsyncCairn,
        *,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        limit: int | None = None,
        name: str = "Memories",
        description: str | None = None,
        priority: int = 0,
        accept_short_term_memory: bool = True,
    ) -> None:
        """Makes a memory block.

        Args:
            cairn: Either client.
            user_id: Whose memories they are; they, `agent_id` or both are needed.
            agent_id: The agent whose memories they are.
            limit: How many a model is told at most, 10 unless given.
            name: Names the block among others, and to the model.
            description: As LlamaIndex has it.
            priority: As LlamaIndex has it: 0 is never left out.
            accept_short_term_memory: Whether messages that a chat has no more room for become memories.

        Raises:
            TypeError: There is no owner, or one of the ids is None.
        """
        memories = Memories(cairn, user_id, agent_id)
        super().__init__(name=name, description=description, priority=priority, accept_short_term_memory=accept_short_term_memory)
        self._memories = memories
        self._limit = limit

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """Returns the memories that are about what the user said last, the best first, each in one line; of all sessions."""
        said = [text for one in messages or [] if one.role == MessageRole.USER and (text := text_of(one)).strip()]
        if not said:
            return ""
        found = await self._memories.client.arun(self._memories.search(said[-1], limit=self._limit))
        # A memory is one line, so that none looks like another, or like the end of them.
        return "\n".join(f"- {' '.join(one.content.split())}" for one in found.data)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Adds what was said as memories; what says the same as another of their owner is that one."""
        await self._memories.client.arun(self._memories.add_all([memory for one in messages for memory in memories_of(one)]))


def text_of(message: ChatMessage) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))


def memories_of(message: ChatMessage) -> Sequence[Json]:
    """Returns the text of a message as a memory, or as several where it is too long for one."""
    text = text_of(message)
    session = message.additional_kwargs.get(SESSION)
    metadata = stored({"role": message.role.value, **({} if session is None else {SESSION: session})})
    more: Json = {"metadata": metadata, "source": SOURCES.get(message.role, "agent")}
    pieces = [text[start : start + LENGTH_MAX] for start in range(0, len(text), LENGTH_MAX)]
    return [{"content": piece, **more} for piece in pieces if piece.strip()]
