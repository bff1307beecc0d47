"""CairnChatStore against the store that LlamaIndex keeps in memory, and a chat that goes on in another process."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from typing import Any

import pytest
from adapter_programs import run_program
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock, ThinkingBlock, ToolCallBlock
from llama_index.core.storage.chat_store import SimpleChatStore

from cairn_client import AsyncCairn, Cairn
from cairn_client.llama_index import CairnChatStore

OPERATIONS = 500
KEYS = ["a", "a/b", "ü😀", "none"]
CALLS = [
    *["add_message"] * 6,
    *["get_messages"] * 4,
    *["delete_message"] * 3,
    *["set_messages", "delete_last_message", "get_keys"] * 2,
    "delete_messages",
]


def test_operations_by_chance_give_what_the_store_in_memory_gives() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    namespace = ["llama-index", uuid.uuid4().hex]
    stores = [CairnChatStore(documents, namespace=namespace) for documents in (Cairn().documents, AsyncCairn().documents)]
    theirs = SimpleChatStore()

    async def all_of() -> None:
        for _ in range(OPERATIONS):
            ours, name = chance.choice(stores), chance.choice(CALLS)
            arguments = arguments_by(chance, name)
            if chance.random() < 0.5:
                found = await asyncio.to_thread(getattr(ours, name), *arguments)
            else:
                found = await getattr(ours, "async_add_message" if name == "add_message" else f"a{name}")(*arguments)
            assert repr(found) == repr(given(theirs, name, arguments)), (name, arguments)
        for key in KEYS:
            await stores[0].adelete_messages(key)

    asyncio.run(all_of())
    assert Cairn().documents.count(namespace, deep=True) == 0


def given(store: SimpleChatStore, name: str, arguments: list[Any]) -> Any:
    """Returns what the store in memory gives; where it has no message at an index, it says so by None or by an error."""
    copied = [list(one) if isinstance(one, list) else one for one in arguments]
    try:
        return getattr(store, name)(*copied)
    except IndexError:
        return None


def arguments_by(chance: random.Random, name: str) -> list[Any]:
    key = chance.choice(KEYS[:3] if chance.random() < 0.9 else KEYS)
    match name:
        case "get_keys":
            return []
        case "add_message":
            return [key, message_by(chance)]
        case "set_messages":
            return [key, [message_by(chance) for _ in range(chance.choice([0, 1, 2, 3, 4, 5, 120]))]]
        case "delete_message":
            return [key, chance.choice([0, 1, 2, 5, 200, -1, -2, -200])]
        case _:
            return [key]


def message_by(chance: random.Random) -> ChatMessage:
    text = '"' * 500_000 if chance.random() < 0.003 else chance.choice(["Hello", "ü😀", "", "two\nlines"])
    more: dict[str, Any] = {"additional_kwargs": chance.choice([{}, {"10": 1.0, "2": [None, 2**70, True]}])}
    thought = ThinkingBlock(content="Let me see.")
    call = ToolCallBlock(tool_call_id="call-1", tool_name="find", tool_kwargs={"order": "A-17", "n": 1.0})
    return chance.choice(
        [
            lambda: ChatMessage(text, **more),
            lambda: ChatMessage(role=MessageRole.ASSISTANT, blocks=[thought, TextBlock(text=text), call], **more),
            lambda: ChatMessage(role=MessageRole.TOOL, content=text, additional_kwargs={"tool_call_id": "call-1"}),
            lambda: ChatMessage(role=MessageRole.USER, blocks=[ImageBlock(image=b"GIF89a", image_mimetype="image/gif")], **more),
            lambda: ChatMessage(role=MessageRole.SYSTEM),
        ]
    )()


def test_what_could_not_be_read_again_is_refused_and_nothing_is_added() -> None:
    class Own(ChatMessage):
        pass

    store = CairnChatStore(Cairn().documents, namespace=["llama-index", uuid.uuid4().hex])
    for message, named in [(Own("a"), "Own"), (ChatMessage("a", additional_kwargs={"of": object()}), "object")]:
        with pytest.raises(TypeError, match=named):
            store.add_message("a", message)
        with pytest.raises(TypeError, match=named):
            store.set_messages("a", [ChatMessage("Hello"), message])
    assert store.get_keys() == []


def test_of_large_messages_nothing_is_left_when_they_are_replaced_or_deleted() -> None:
    documents, namespace = Cairn().documents, ["llama-index", uuid.uuid4().hex]
    store, large = CairnChatStore(documents, namespace=namespace), ChatMessage('"' * 500_000)
    deletions = [
        lambda: store.set_messages("a", []),
        lambda: store.delete_message("a", 0),
        lambda: store.delete_last_message("a"),
        lambda: store.delete_messages("a"),
    ]
    for delete in deletions:
        store.set_messages("a", [large])
        assert store.get_messages("a") == [large] and documents.count([*namespace, "parts"], deep=True) > 1
        delete()
        assert documents.count([*namespace, "parts"], deep=True) == 0


def test_messages_of_twenty_writers_are_all_there_and_each_is_taken_once() -> None:
    store = CairnChatStore(AsyncCairn().documents, namespace=["llama-index", uuid.uuid4().hex])

    async def write() -> list[ChatMessage | None]:
        await asyncio.gather(*(store.async_add_message("a", ChatMessage(f"{i}")) for i in range(20)))
        assert sorted(int(message.content or "") for message in await store.aget_messages("a")) == list(range(20))
        return await asyncio.gather(
            *(store.adelete_message("a", 0) for _ in range(5)), *(store.adelete_last_message("a") for _ in range(5))
        )

    taken = [message.content for message in asyncio.run(write()) if message is not None]
    left = [message.content for message in store.get_messages("a")]
    assert (len(taken), len(left), len({*taken, *left})) == (10, 10, 20)


CHAT = """
import sys
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from cairn_client import Cairn
from cairn_client.llama_index import CairnChatStore

memory = ChatMemoryBuffer.from_defaults(
    chat_store=CairnChatStore(Cairn().documents), chat_store_key=sys.argv[1], tokenizer_fn=str.split, token_limit=1000
)
print(str(SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory).chat(sys.argv[2])).replace("\\n", " | "))
"""


def test_a_chat_goes_on_in_another_process() -> None:
    name = uuid.uuid4().hex
    assert run_program(CHAT, name, "Where is my order?").count("Where is my order?") == 1
    assert "Where is my order?" in (said := run_program(CHAT, name, "And the invoice?")) and "And the invoice?" in said
