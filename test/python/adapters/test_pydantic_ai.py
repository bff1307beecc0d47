"""CairnConversationStore against the store in memory of Pydantic AI, and an agent that goes on in another process."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import uuid
from typing import Any

import pytest
from adapter_programs import run_program
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart

from cairn_client import AsyncCairn, Cairn
from cairn_client.pydantic_ai import CairnConversationStore

OPERATIONS = 500
IDS = [f"conversation {i}" for i in range(4)]
SCOPES = [None, "ada", "bo"]


def new_store() -> CairnConversationStore:
    return CairnConversationStore(AsyncCairn().documents, namespace=["pydantic", uuid.uuid4().hex])


def test_operations_by_chance_give_what_the_store_in_memory_gives() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)

    async def all_of() -> None:
        pair = Pair(chance)
        for _ in range(OPERATIONS):
            await pair.operate()
        for id_ in IDS:
            await pair.same(lambda store, id_=id_: store.delete(id_))
        assert Cairn().documents.count(pair.ours._store.root, deep=True) == 0

    asyncio.run(all_of())


class Pair:
    """Both stores, and what each has given, by conversation."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.ours = new_store()
        self._stores: list[ConversationStore] = [self.ours, InMemoryConversationStore()]
        self._loaded: list[dict[str, Conversation]] = [{}, {}]

    async def same(self, act: Any) -> list[Any]:
        """Does the same with both stores, which give the same or raise the same."""
        results: list[Any] = []
        for store in self._stores:
            try:
                results.append(await act(store))
            except (UserError, LookupError) as error:
                results.append(type(error))
        assert shown(results[0]) == shown(results[1])
        return results

    async def operate(self) -> None:
        chance, id_ = self._chance, self._chance.choice(IDS)
        scope = chance.choice(SCOPES)
        limit = chance.choice([None, None, 1, 3])
        match chance.randrange(10):
            case 0 | 1 | 2 | 3:
                await self._save(id_, scope)
            case 4:
                await self._load(id_, await self.same(lambda store: store.load(id_, limit=limit, scope=scope)))
            case 5:
                await self.same(lambda store: store.list_conversations(scope=scope, limit=limit))
            case 6:
                new = chance.choice(IDS)
                at = chance.choice([None, 0, 1, 2])
                await self._load(new, await self.same(lambda store: store.fork(id_, at=at, new_conversation_id=new, scope=scope)))
            case 7:
                at = chance.randrange(3)
                records = [await store.read_record(id_) for store in self._stores]
                revisions = iter([record and record.revision for record in records])
                await self._load(id_, await self.same(lambda store: store.branch(id_, at=at, expected_revision=next(revisions))))
            case 8:
                await self.same(lambda store: store.load_entries(id_, limit=limit))
            case _ if chance.random() < 0.4:
                await self.same(lambda store: store.delete(id_, scope=scope))
            case _:
                pass

    async def _load(self, id_: str, found: list[Any]) -> None:
        for loaded, one in zip(self._loaded, found, strict=True):
            if isinstance(one, Conversation):
                loaded[id_] = one

    async def _save(self, id_: str, scope: str | None) -> None:
        """Saves what was loaded, possibly long ago, with more messages or rewritten."""
        more = [message_by(self._chance) for _ in range(self._chance.randrange(4))]
        is_rewritten = self._chance.random() < 0.2
        saved: list[Conversation] = []
        for loaded in self._loaded:
            conversation = loaded.get(id_) or Conversation(conversation_id=id_)
            messages = [*(conversation.messages[: len(conversation.messages) // 2] if is_rewritten else conversation.messages), *more]
            index = None if is_rewritten else conversation.new_message_index
            saved.append(dataclasses.replace(conversation, messages=messages, new_message_index=index))
        given = iter(saved)
        results = await self.same(lambda store: store.save(next(given), scope=scope))
        for loaded, one, result in zip(self._loaded, saved, results, strict=True):
            if isinstance(result, list):
                loaded[id_] = one
            else:
                loaded.pop(id_, None)


def message_by(chance: random.Random) -> ModelMessage:
    text = chance.choice(["Hello", "ü😀", "", "x" * 1_500_000 if chance.random() < 0.01 else "short"])
    if chance.random() < 0.5:
        return ModelRequest(parts=[UserPromptPart(content=[text, BinaryContent(data=b"\x00\xff", media_type="application/pdf")])])
    return ModelResponse(parts=[TextPart(content=text), ToolCallPart(tool_name="find", args={"10": 1.0, "2": 2**70})])


def shown(result: Any) -> Any:
    """Returns what both stores are to give, without what is chosen by chance."""
    if isinstance(result, list):
        return [shown(one) for one in result]
    if isinstance(result, Conversation):
        return [result.conversation_id, result.messages, result.usage, result.new_message_index]
    if dataclasses.is_dataclass(result):
        members = {
            name: value for name, value in vars(result).items() if name in ("conversation_id", "scope", "forked_from", "message", "usage")
        }
        return [members, len(getattr(result, "branches", []))]
    return result


def test_of_writers_that_race_one_saves_and_the_others_are_told() -> None:
    store = new_store()

    async def all_of() -> None:
        first = Conversation(conversation_id="c", messages=[ModelRequest(parts=[UserPromptPart(content="Hello")])])
        await store.save(first)
        loaded = [await store.load("c") for _ in range(5)]
        for i, one in enumerate(loaded):
            assert one is not None
            one.messages.append(ModelRequest(parts=[UserPromptPart(content=str(i))]))
        results = await asyncio.gather(*(store.save(one) for one in loaded if one), return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == [*["ConversationConflict"] * 4, "list"]
        # Forks of one conversation count on their log together, and all succeed.
        forks = await asyncio.gather(*(store.fork("c") for _ in range(5)))
        await store.delete("c")
        for fork in forks:
            assert len((await store.load(fork.conversation_id) or first).messages) == 2
        with pytest.raises(ConversationConflict):
            await store.delete_record("c", expected_revision="gone")
        with pytest.raises(LookupError):
            await store.read_entry("gone")

    asyncio.run(all_of())


AGENT = """
import asyncio, sys
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel
from cairn_client import AsyncCairn
from cairn_client.pydantic_ai import CairnConversationStore

def answer(messages, info):
    said = [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return ModelResponse(parts=[TextPart(" | ".join(said))])

async def main():
    store = CairnConversationStore(AsyncCairn().documents, namespace=["pydantic", sys.argv[1]])
    conversation = await store.load("c") or Conversation(conversation_id="c")
    result = await Agent(FunctionModel(answer)).run(sys.argv[2], conversation=conversation)
    await store.save(result)
    print(result.output)

asyncio.run(main())
"""


def test_an_agent_goes_on_in_another_process() -> None:
    name = uuid.uuid4().hex
    assert run_program(AGENT, name, "Where is my order?") == "Where is my order?"
    assert run_program(AGENT, name, "And the invoice?") == "Where is my order? | And the invoice?"
