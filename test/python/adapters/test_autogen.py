"""CairnMemory against the memory that AutoGen keeps in a list, and an agent that is told in another process what is remembered."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from typing import Any

import pytest
from adapter_programs import run_program
from autogen_core import CancellationToken, Image
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType, MemoryQueryResult
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import SystemMessage, UserMessage
from PIL import Image as Pillow

from cairn_client import AsyncCairn, Cairn, CairnError
from cairn_client.autogen import CairnMemory

OPERATIONS = 500


def shown(found: MemoryQueryResult) -> str:
    """What was added: ours has its id besides."""
    without = [{**(one.metadata or {})} for one in found.results]
    for metadata in without:
        metadata.pop("id", None)
    return repr([(one.content, one.mime_type, metadata) for one, metadata in zip(found.results, without, strict=True)])


def test_operations_by_chance_give_what_the_list_gives() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    users = [f"autogen {uuid.uuid4().hex}" for _ in range(2)]
    ours = [CairnMemory(client, user_id=user) for client, user in zip((Cairn(), AsyncCairn()), users, strict=True)]
    theirs = [ListMemory() for _ in users]

    async def all_of() -> None:
        for _ in range(OPERATIONS):
            i = chance.randrange(2)
            match chance.randrange(12):
                case 0 | 1 | 2 | 3:
                    content = content_by(chance)
                    await ours[i].add(content)
                    # One that says the same as another is that one.
                    if repr(content.content) not in [repr(one.content) for one in theirs[i].content]:
                        await theirs[i].add(content)
                case 4 if chance.random() < 0.5:
                    for memory in (ours[i], theirs[i]):
                        await memory.clear()
                case _:
                    assert shown(await ours[i].query()) == shown(await theirs[i].query())
        for memory in ours:
            await memory.clear()

    asyncio.run(all_of())
    assert [Cairn().memories.list(user_id=user, status="all").data for user in users] == [[], []]


def content_by(chance: random.Random) -> MemoryContent:
    numbers = {"10": 1.0, "2": [None, 2**70, True]}
    number = chance.randrange(30)
    metadata: Any = chance.choice([None, {}, {"from": "a form"}, numbers])
    if chance.random() < 0.3:
        return MemoryContent(content={"n": number, **numbers}, mime_type=MemoryMimeType.JSON, metadata=metadata)
    mime_type: Any = chance.choice([MemoryMimeType.TEXT, MemoryMimeType.MARKDOWN, MemoryMimeType.JSON, "text/x-own"])
    return MemoryContent(content=f"Wish {number}: ü😀\nbe *quick*", mime_type=mime_type, metadata=metadata)


def test_a_query_and_a_context_have_what_is_about_it_and_of_its_owner() -> None:
    memory, other = (CairnMemory(AsyncCairn(), user_id=f"autogen {uuid.uuid4().hex}") for _ in range(2))

    async def all_of() -> None:
        text = "The customer prefers e-mail\n2. to phone calls."
        await memory.add(MemoryContent(content=text, mime_type=MemoryMimeType.TEXT))
        await memory.add(MemoryContent(content={"colour": "green"}, mime_type=MemoryMimeType.JSON))
        question = "How does the customer prefer to be contacted?"
        [found] = (await memory.query(question)).results
        assert found.content == text and (found.metadata or {})["score"] >= 0.7
        assert (await other.query(MemoryContent(content=question, mime_type=MemoryMimeType.TEXT))).results == []
        context = BufferedChatCompletionContext(buffer_size=10)
        assert (await memory.update_context(context)).memories.results == []
        await context.add_message(UserMessage(content=[question, Image(Pillow.new("RGB", (1, 1)))], source="user"))
        assert (await memory.update_context(context)).memories.results == [found]
        assert (await context.get_messages())[1:] == [
            SystemMessage(content="Relevant memory content:\n1. The customer prefers e-mail 2. to phone calls.")
        ]
        cancelled = CancellationToken()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await memory.query(question, cancelled)
        for content, named in [(b"\x00", "bytes"), (Image(Pillow.new("RGB", (1, 1))), "Image")]:
            with pytest.raises(TypeError, match=named):
                await memory.add(MemoryContent(content=content, mime_type=MemoryMimeType.BINARY))
        with pytest.raises(CairnError, match="content"):
            await memory.add(MemoryContent(content="", mime_type=MemoryMimeType.TEXT))
        await memory.close()
        await memory.clear()

    asyncio.run(all_of())
    user: Any = None
    for owner in ({}, {"user_id": user}):
        with pytest.raises(TypeError, match="user_id"):
            CairnMemory(Cairn(), **owner)


AGENT = """
import asyncio, sys
from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import MemoryContent
from autogen_core.models import ChatCompletionClient, CreateResult, RequestUsage
from cairn_client import AsyncCairn
from cairn_client.autogen import CairnMemory

class Fake(ChatCompletionClient):
    model_info = {"vision": False, "function_calling": False, "json_output": False, "family": "fake", "structured_output": False}
    capabilities = model_info
    async def create(self, messages, **more):
        said = " | ".join(message.content.replace("\\n", " ") for message in messages if message.type in ("UserMessage", "SystemMessage"))
        return CreateResult(finish_reason="stop", content=said, usage=RequestUsage(1, 1), cached=False)
    def create_stream(self, *args, **more): raise NotImplementedError
    async def close(self): ...
    def actual_usage(self): return RequestUsage(1, 1)
    def total_usage(self): return RequestUsage(1, 1)
    def count_tokens(self, messages, **more): return 1
    def remaining_tokens(self, messages, **more): return 1

async def main():
    memory = CairnMemory(AsyncCairn(), user_id=sys.argv[1])
    agent = AssistantAgent("support", Fake(), memory=[memory], system_message=None)
    result = await agent.run(task=sys.argv[2])
    await memory.add(MemoryContent(content=sys.argv[2], mime_type="text/plain"))
    print(result.messages[-1].content)

asyncio.run(main())
"""


def test_an_agent_is_told_in_another_process_what_is_remembered() -> None:
    user = f"autogen {uuid.uuid4().hex}"
    assert run_program(AGENT, user, "The invoice of the order goes to Lisbon.") == "The invoice of the order goes to Lisbon."
    said = run_program(AGENT, user, "Where does the invoice of the order go?")
    assert said == "Where does the invoice of the order go? | Relevant memory content: 1. The invoice of the order goes to Lisbon."
