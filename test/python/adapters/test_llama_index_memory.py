"""CairnMemoryBlock against the block that LlamaIndex keeps in a vector store, and an agent that is told in another process."""

from __future__ import annotations

import asyncio
import os
import random
import re
import uuid
from typing import Any

import pytest
from adapter_programs import run_program
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.bridge.pydantic import Field
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.memory import Memory, VectorMemoryBlock
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery, VectorStoreQueryResult

from cairn_client import AsyncCairn, Cairn
from cairn_client.llama_index import CairnMemoryBlock

OPERATIONS = 500
THINGS = ["order", "invoice", "parcel", "refund", "voucher", "complaint"]
PLACES = ["Lisbon", "Oslo", "Quito", "Nairobi", "Hanoi"]


class Kept(BasePydanticVectorStore):
    """Finds all that was ever added."""

    stores_text: bool = True
    nodes: list[BaseNode] = Field(default_factory=list)

    @property
    def client(self) -> None: ...

    def add(self, nodes: Any, **more: Any) -> list[str]:
        self.nodes += nodes
        return []

    def delete(self, ref_doc_id: str, **more: Any) -> None: ...

    def query(self, query: VectorStoreQuery, **more: Any) -> VectorStoreQueryResult:
        return VectorStoreQueryResult(nodes=self.nodes, similarities=[1.0] * len(self.nodes))


def test_operations_by_chance_keep_what_the_block_of_llama_index_keeps() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    users = [f"llama {uuid.uuid4().hex}" for _ in range(2)]
    accepts = [True, False]
    ours = [
        CairnMemoryBlock(client, user_id=user, accept_short_term_memory=accept)
        for client, user, accept in zip((Cairn(), AsyncCairn()), users, accepts, strict=True)
    ]
    theirs = [
        VectorMemoryBlock(vector_store=Kept(), embed_model=MockEmbedding(2), accept_short_term_memory=accept, retrieval_context_window=1)
        for accept in accepts
    ]
    told = 0

    async def all_of() -> None:
        nonlocal told
        for _ in range(OPERATIONS):
            i = chance.randrange(2)
            if chance.random() < 0.4:
                messages = [message_by(chance) for _ in range(chance.randrange(5))]
                session, is_short = chance.choice([None, "s"]), chance.random() < 0.5
                for block in (ours[i], theirs[i]):
                    copies = [one.model_copy(deep=True) for one in messages]
                    await block.aput(copies, from_short_term_memory=is_short, session_id=session)
                continue
            question = chance.choice([[], [message_by(chance)], [ChatMessage(text_by(chance))]])
            held = said_in(await theirs[i].aget(question))
            lines = [line.removeprefix("- ") for line in (await ours[i].aget(question)).splitlines()]
            assert {*lines} <= {" ".join(text.split()) for text in held}
            asked = question[-1].content if question and question[-1].role == MessageRole.USER else None
            if asked in held:
                assert lines[0] == asked
                told += 1

    asyncio.run(all_of())
    for user, block in zip(users, theirs, strict=True):
        kept = list(Cairn().memories.list(user_id=user))
        assert sorted(one.content for one in kept) == sorted({*said_in(asyncio.run(block.aget([ChatMessage("all")])))})
    assert told > 0


def said_in(found: str) -> list[str]:
    return re.findall(r"<message role='\w+'>(.*?)</message>", found, re.DOTALL)


def text_by(chance: random.Random) -> str:
    return f"The {chance.choice(THINGS)} goes to {chance.choice(PLACES)}."


def message_by(chance: random.Random) -> ChatMessage:
    image = ImageBlock(image=b"GIF89a", image_mimetype="image/gif")
    return chance.choice(
        [
            lambda: ChatMessage(text_by(chance)),
            lambda: ChatMessage(role=MessageRole.ASSISTANT, blocks=[TextBlock(text=f"ü😀\n{text_by(chance)}"), image]),
            lambda: ChatMessage(role=MessageRole.TOOL, content=f"found: {text_by(chance)}"),
            lambda: ChatMessage(role=MessageRole.USER, blocks=[image]),
            lambda: ChatMessage(role=MessageRole.SYSTEM),
        ]
    )()


def test_a_memory_says_who_said_it_in_which_session_and_a_text_of_any_length_is_kept() -> None:
    users = [f"llama {uuid.uuid4().hex}" for _ in range(2)]
    block, other = (CairnMemoryBlock(AsyncCairn(), user_id=user) for user in users)
    long = "".join(f"{i:05}" for i in range(4_000))

    async def all_of() -> None:
        said = [ChatMessage("I prefer e-mail\nto phone calls."), ChatMessage(role=MessageRole.ASSISTANT, content="Noted.")]
        await block.aput([*said, ChatMessage(role=MessageRole.TOOL, content=long)], session_id="s-1")
        asked = [ChatMessage("How do I prefer to be contacted?"), ChatMessage(role=MessageRole.ASSISTANT, content="Let me see.")]
        assert await block.aget(asked) == "- I prefer e-mail to phone calls."
        assert await other.aget(asked) == await block.aget(asked[1:]) == await block.aget() == ""

    asyncio.run(all_of())
    *_, noted, preference = (kept := list(Cairn().memories.list(user_id=users[0])))
    assert {one.metadata["session_id"] for one in kept} == {"s-1"}
    assert sorted((one.source, one.metadata["role"]) for one in (noted, preference)) == [("agent", "assistant"), ("user", "user")]
    assert "".join(sorted(one.content for one in kept if one.source == "tool")) == long
    user: Any = None
    for owner in ({}, {"user_id": user}):
        with pytest.raises(TypeError, match="user_id"):
            CairnMemoryBlock(Cairn(), **owner)


def test_what_a_chat_has_no_room_for_is_told_when_it_matters() -> None:
    block = CairnMemoryBlock(Cairn(), user_id=f"llama {uuid.uuid4().hex}")
    memory = Memory.from_defaults(memory_blocks=[block], token_limit=40, token_flush_size=5, tokenizer_fn=str.split)
    memory.put(ChatMessage("The invoice goes to Lisbon."))
    memory.put(ChatMessage(role=MessageRole.ASSISTANT, content="I have written that down for you."))
    for i in range(5):
        memory.put(ChatMessage(f"The parcel number {i} is green and heavy."))
    told, *chat = memory.get("Where does the invoice go?")
    assert told.role == MessageRole.SYSTEM and "- The invoice goes to Lisbon." in (told.content or "")
    assert "The invoice goes to Lisbon." not in [one.content for one in chat]


AGENT = """
import asyncio, sys
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer, Memory
from cairn_client import AsyncCairn
from cairn_client.llama_index import CairnChatStore, CairnMemoryBlock

def answer(messages, **more):
    return ChatMessage(role="assistant", content=" | ".join(" ".join(one.content.split()) for one in messages if one.role != "assistant"))

async def main():
    cairn, user, said = AsyncCairn(), *sys.argv[1:]
    agent = FunctionAgent(llm=MockFunctionCallingLLM(response_generator=answer), streaming=False)
    block = CairnMemoryBlock(cairn, user_id=user)
    memory = Memory.from_defaults(memory_blocks=[block], tokenizer_fn=str.split)
    told = str(await agent.run(said, memory=memory))
    await block.aput([ChatMessage(said)])
    store = CairnChatStore(cairn.documents)
    chat = ChatMemoryBuffer.from_defaults(chat_store=store, chat_store_key=user, tokenizer_fn=str.split, token_limit=1000)
    print(told, "+", await agent.run(said, memory=chat))

asyncio.run(main())
"""


def test_an_agent_goes_on_in_another_process_and_is_told_what_is_remembered() -> None:
    user = f"llama {uuid.uuid4().hex}"
    first, second = "The invoice of the order goes to Lisbon.", "Where does the invoice of the order go?"
    assert run_program(AGENT, user, first) == f"{first} + {first}"
    told, chat = run_program(AGENT, user, second).split(" + ")
    assert told == f"<memory> <Memories> - {first} </Memories> </memory> | {second}"
    assert chat == f"{first} | {second}"
