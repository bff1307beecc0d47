"""CairnStorage against the storage in memory of Strands, memories, and an agent that goes on in another process."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from typing import Any

import pytest
from adapter_programs import run_program
from strands.storage import InMemoryStorage
from strands.types.exceptions import StorageError

from cairn_client import AsyncCairn, Cairn
from cairn_client.strands import CairnMemoryStore, CairnStorage

OPERATIONS = 500
KEYS = ["a", "a/b", "a/b/c.json", "ab", "/b//c/", "ü😀", "z/dark mode.md", "", "a\\b", "a/../b"]
PREFIXES = ["", "a", "a/", "/a//b", "ü", "z/dark", "..", "none"]
VALUES = [b"", b"{}", b"dark mode", "ü😀".encode(), b"\xff\x00", b"\x00", bytes(range(256))]


def new_storage(client: Any = None) -> CairnStorage:
    return CairnStorage((client or AsyncCairn()).documents, namespace=["strands", uuid.uuid4().hex])


def test_operations_by_chance_give_what_the_storage_in_memory_gives() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    ours = new_storage()
    whole: list[Any] = [ours, InMemoryStorage()]

    async def act(storage: Any, what: int, key: str, prefix: str, data: bytes) -> Any:
        try:
            match what:
                case 0 | 1 | 2:
                    return await storage.write(key, data)
                case 3 | 4:
                    return await storage.read(key)
                case 5:
                    return await storage.delete(key)
                case 6 | 7:
                    return await storage.list(prefix)
                case _:
                    found = await storage.search(f"{prefix} dark b")
                    return sorted((one.key, one.score, one.data) for one in found)
        except StorageError as error:
            return str(error)

    async def all_of() -> None:
        for _ in range(OPERATIONS):
            scope = chance.choice([None, None, "a", "a/b/", "//z"])
            data = chance.choice(VALUES) if chance.random() > 0.005 else chance.randbytes(20) * 50_000
            given = (chance.choice([0, 1, 2, 0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8]), chance.choice(KEYS), chance.choice(PREFIXES), data)
            given_to = [one if scope is None else one.namespace(scope) for one in whole]
            mine, theirs = [await act(one, *given) for one in given_to]
            if not (isinstance(mine, str) and isinstance(theirs, str)):
                assert mine == theirs, given[:3]
        for key in await ours.list():
            await ours.delete(key)

    asyncio.run(all_of())
    assert Cairn().documents.count(ours._store.root, deep=True) == 0


def test_of_values_that_are_written_at_the_same_time_one_is_there_whole_and_a_failure_is_the_error_of_the_sdk() -> None:
    storage = new_storage()

    async def all_of() -> None:
        values = [bytes([65 + i]) * 1_500_000 for i in range(3)]
        await storage.write("k", values[0])
        reads = asyncio.gather(*(storage.read("k") for _ in range(5)))
        await asyncio.gather(*(storage.write("k", value) for value in values))
        assert all(read in values for read in [*await reads, await storage.read("k")])
        with pytest.raises(StorageError, match="900"):
            await storage.write("k" * 1_000, b"")
        with pytest.raises(StorageError, match="cannot be reached"):
            await CairnStorage(Cairn("crn_none", "http://127.0.0.1:9", retries=0).documents).read("k")
        await storage.delete("k")

    asyncio.run(all_of())
    assert Cairn().documents.count(storage._store.root, deep=True) == 0


def test_memories_are_those_of_their_owner_and_one_that_is_added_twice_is_one() -> None:
    store, other = (CairnMemoryStore(Cairn(), user_id=f"strands {uuid.uuid4().hex}") for _ in range(2))

    async def all_of() -> None:
        first = await store.add("The customer prefers e-mail to phone calls.", {"from": "a form"})
        assert await store.add("The customer prefers e-mail to phone calls.") == first
        [found] = await store.search("How does the customer prefer to be contacted?", {"max_search_results": 3})
        assert found.content == "The customer prefers e-mail to phone calls."
        assert found.metadata is not None and found.metadata["id"] == first
        assert Cairn().memories.get(first).metadata == {"from": "a form"}
        assert await other.search("How does the customer prefer to be contacted?") == []
        assert await store.search(" ") == []

    asyncio.run(all_of())
    user: Any = None
    for owner in ({}, {"user_id": user}):
        with pytest.raises(TypeError, match="user_id"):
            CairnMemoryStore(Cairn(), **owner)


AGENT = """
import sys
from strands import Agent
from strands.memory import MemoryManager
from strands.models import Model
from strands.session import SnapshotSessionManager
from cairn_client import Cairn
from cairn_client.strands import CairnMemoryStore, CairnStorage

class Fake(Model):
    def update_config(self, **config): ...
    def get_config(self): return {}
    def structured_output(self, *args, **more): raise NotImplementedError
    async def stream(self, messages, *args, **more):
        said = [block["text"] for message in messages if message["role"] == "user" for block in message["content"] if "text" in block]
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": " | ".join(said)}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}

cairn = Cairn()
storage = CairnStorage(cairn.documents, namespace=["strands", sys.argv[1]])
memories = MemoryManager(stores=[CairnMemoryStore(cairn, user_id=sys.argv[1])])
agent = Agent(model=Fake(), callback_handler=None, session_manager=SnapshotSessionManager("s", storage=storage), memory_manager=memories)
print(str(agent(sys.argv[2])).strip().replace("\\n", " "))
"""


def test_an_agent_goes_on_in_another_process_and_is_told_what_is_remembered() -> None:
    name = uuid.uuid4().hex
    assert run_program(AGENT, name, "Where is my order?") == "Where is my order?"
    Cairn().memories.add(user_id=name, content="The invoice of the order goes to Lisbon.")
    said = run_program(AGENT, name, "Where does the invoice of the order go?")
    assert said.startswith("Where is my order? | ") and "The invoice of the order goes to Lisbon." in said
