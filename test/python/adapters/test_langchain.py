"""CairnChatMessageHistory against the history that LangChain keeps in memory, and a chain that goes on in another process."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from typing import Any

import pytest
from adapter_programs import run_program
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from cairn_client import AsyncCairn, Cairn
from cairn_client.langchain import CairnChatMessageHistory

OPERATIONS = 500
IDS = ["a", "a/b", "ü😀"]


def test_operations_by_chance_give_what_the_history_in_memory_gives() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    namespace = ["langchain", uuid.uuid4().hex]
    documents = [Cairn().documents, AsyncCairn().documents]
    theirs = {id_: InMemoryChatMessageHistory() for id_ in IDS}

    async def all_of() -> None:
        for _ in range(OPERATIONS):
            id_ = chance.choice(IDS)
            ours, is_blocking = CairnChatMessageHistory(chance.choice(documents), id_, namespace=namespace), chance.random() < 0.5
            match chance.randrange(10):
                case 0 | 1 | 2 | 3 | 4:
                    messages = [message_by(chance) for _ in range(chance.randrange(4))]
                    if is_blocking:
                        await asyncio.to_thread(ours.add_messages, messages)
                    else:
                        await ours.aadd_messages(messages)
                    theirs[id_].add_messages(messages)
                case 5 | 6 | 7 | 8:
                    found = await asyncio.to_thread(getattr, ours, "messages") if is_blocking else await ours.aget_messages()
                    assert repr(found) == repr(theirs[id_].messages)
                case _ if chance.random() < 0.3:
                    await (asyncio.to_thread(ours.clear) if is_blocking else ours.aclear())
                    theirs[id_].clear()
                case _:
                    pass
        for id_ in IDS:
            await CairnChatMessageHistory(documents[0], id_, namespace=namespace).aclear()

    asyncio.run(all_of())
    assert Cairn().documents.count(namespace, deep=True) == 0


def message_by(chance: random.Random) -> BaseMessage:
    small: Any = chance.choice(["Hello", "ü😀", "\ud800", "", [{"type": "text", "text": "Hello"}, "and"]])
    content = '"' * 500_000 if chance.random() < 0.003 else small
    more: dict[str, Any] = {"id": chance.choice([None, "1"]), "response_metadata": {"10": 1.0, "2": [None, 2**70, True]}}
    call = {"name": "find", "args": {"order": "A-17", "n": 1.0}, "id": "call-1"}
    return chance.choice(
        [
            lambda: HumanMessage(content, name=chance.choice([None, "Ada"]), **more),
            lambda: AIMessage(
                content, tool_calls=[call], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}, **more
            ),
            lambda: AIMessageChunk(content, **more),
            lambda: SystemMessage(content, additional_kwargs={"a": "b"}),
            lambda: ToolMessage(content, tool_call_id="call-1", artifact={"rows": [1, 2]}, status="error"),
            lambda: ChatMessage(content, role="critic"),
        ]
    )()


def test_what_could_not_be_read_again_is_refused_and_nothing_is_added() -> None:
    class Own(HumanMessage):
        pass

    class Unknown(HumanMessage):
        type: Any = "own"

    history = CairnChatMessageHistory(Cairn().documents, uuid.uuid4().hex)
    for message, named in [(Own("a"), "Own"), (Unknown("a"), "Unknown"), (ToolMessage("a", tool_call_id="1", artifact=object()), "object")]:
        with pytest.raises(TypeError, match=named):
            history.add_messages([HumanMessage("Hello"), message])
    assert history.messages == []


def test_messages_of_two_writers_are_all_there_each_in_its_order() -> None:
    history = CairnChatMessageHistory(AsyncCairn().documents, uuid.uuid4().hex)

    async def write() -> None:
        await asyncio.gather(*(history.aadd_messages([HumanMessage(f"{i}"), AIMessage(f"{i}")]) for i in range(20)))

    asyncio.run(write())
    contents = [str(message.content) for message in history.messages]
    assert contents[::2] == contents[1::2] and sorted(contents[::2], key=int) == [str(i) for i in range(20)]


CHAIN = """
import sys
from langchain_core.language_models import SimpleChatModel
from langchain_core.runnables.history import RunnableWithMessageHistory
from cairn_client import Cairn
from cairn_client.langchain import CairnChatMessageHistory

class Fake(SimpleChatModel):
    @property
    def _llm_type(self):
        return "fake"

    def _call(self, messages, stop=None, run_manager=None, **more):
        return " | ".join(message.content for message in messages if message.type == "human")

documents = Cairn().documents
chain = RunnableWithMessageHistory(Fake(), lambda session_id: CairnChatMessageHistory(documents, session_id))
print(chain.invoke(sys.argv[2], {"configurable": {"session_id": sys.argv[1]}}).content)
"""


def test_a_chain_goes_on_in_another_process() -> None:
    name = uuid.uuid4().hex
    assert run_program(CHAIN, name, "Where is my order?") == "Where is my order?"
    assert run_program(CHAIN, name, "And the invoice?") == "Where is my order? | And the invoice?"
