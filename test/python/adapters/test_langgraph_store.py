"""CairnStore against LangGraph's store in memory, by its own operations, and an agent that remembers what another process stored."""

from __future__ import annotations

import asyncio
import json
import os
import random
import uuid
from datetime import datetime
from typing import Any

import httpx2
import pytest
from adapter_programs import run_program
from langgraph.store.base import GetOp, InvalidNamespaceError, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from cairn_client import AsyncCairn, Cairn
from cairn_client.langgraph import CairnStore

LABELS = ["a", "b", "ü", "users"]
ALL = 10_000


def new_store(**options: Any) -> CairnStore:
    return CairnStore(Cairn().documents, namespace=["store", uuid.uuid4().hex], **options)


def test_operations_by_chance_give_what_the_store_in_memory_gives() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    name = uuid.uuid4().hex
    store = CairnStore(AsyncCairn().documents, namespace=["store", name])
    memory = InMemoryStore()

    async def all_of() -> None:
        for _ in range(170):
            ops: list[Any] = [operation(chance) for _ in range(chance.randrange(1, 7))]
            expected = [expectation(memory, op) for op in ops]
            memory.batch([op for op in ops if isinstance(op, PutOp)])
            # Both colours read what the other one has written.
            results = store.batch(ops) if chance.random() < 0.5 else await store.abatch(ops)
            assert [shown(op, result) for op, result in zip(ops, results, strict=True)] == expected

    asyncio.run(all_of())


def namespace_by(chance: random.Random, least: int = 1) -> tuple[str, ...]:
    return tuple(chance.choice(LABELS) for _ in range(chance.randrange(least, 4)))


def operation(chance: random.Random) -> Any:
    key = chance.choice(["k", "l", "10", "ü.x"])
    match chance.randrange(8):
        case 0 | 1 | 2:
            return PutOp(namespace_by(chance), key, value_by(chance))
        case 3:
            return PutOp(namespace_by(chance), key, None)
        case 4:
            return GetOp(namespace_by(chance), key)
        case 5 | 6:
            wanted: Any = chance.choice(FILTERS)
            return SearchOp(
                namespace_by(chance, 0), wanted, chance.choice([0, 1, 3, ALL]), chance.choice([0, 0, 2]), chance.choice([None, "x"])
            )
        case _:
            conditions = [
                MatchCondition(kind, tuple(chance.choice([*LABELS, "*"]) for _ in range(chance.randrange(1, 3))))
                for kind in chance.sample(["prefix", "suffix"], chance.randrange(3))
            ]
            return ListNamespacesOp(tuple(conditions) or None, chance.choice([None, 1, 2]), chance.choice([1, ALL]), chance.choice([0, 1]))


FILTERS: list[Any] = [
    None,
    {},
    {"kind": "x"},
    {"kind": {"$eq": "y"}},
    {"kind": {"$ne": "x"}},
    {"kind": None},
    {"n": 1},
    {"n": True},
    {"n": {"$gte": 2, "$lt": 4}},
    {"inner": {"a": 1}},
    {"inner": {"a": {"$gt": 0}}},
    {"tags": ["t", {"u": 1}]},
    {"10": "digits"},
    {"with.dot": "x"},
    {"kind": "x", "n": 2.0},
]


def value_by(chance: random.Random) -> dict[str, Any]:
    value: dict[str, Any] = {"n": chance.choice([0, 1, 1.0, 2, 2.5, 3, 5])}
    members: dict[str, Any] = {
        "kind": chance.choice(["x", "y", None]),
        "inner": chance.choice([{"a": 1}, {"a": 1, "b": 2}, {"a": -0.0}]),
        "tags": chance.choice([["t", {"u": 1}], ["t", {"u": 1, "v": 2}], []]),
        "10": "digits",
        "2": "other",
        "with.dot": "x",
        "large": 2**60,
        "half": "\ud800",
        "$json": "mine",
    }
    for name in chance.sample(list(members), chance.randrange(4)):
        value[name] = members[name]
    return value


def expectation(memory: InMemoryStore, op: Any) -> Any:
    """Returns what a batch is to give, in an order that does not tell when something was put."""
    match op:
        case SearchOp():
            [items] = memory.batch([op._replace(limit=ALL, offset=0)])
            assert isinstance(items, list)
            ordered = sorted((shown_item(item) for item in items), key=lambda one: (one[0], one[1]))
            return sorted_of_page(ordered, op)
        case ListNamespacesOp():
            # A namespace whose items are deleted stays in memory.
            used = {item.namespace for item in memory.search((), limit=ALL)}
            fresh = InMemoryStore()
            fresh.batch([PutOp(namespace, "k", {}) for namespace in used])
            return fresh.batch([op])[0]
        case GetOp():
            return shown_item(memory.batch([op])[0])
        case _:
            return None


def sorted_of_page(ordered: list[Any], op: SearchOp) -> list[Any]:
    return ordered[op.offset : op.offset + op.limit]


def shown(op: Any, result: Any) -> Any:
    if isinstance(op, GetOp):
        return shown_item(result)
    if isinstance(op, SearchOp):
        return [shown_item(item) for item in result]
    return result


def shown_item(item: Any) -> Any:
    # The order of members and 1 or 1.0 are seen in its text, too.
    return None if item is None else (item.namespace, item.key, repr(item.value))


def test_items_end_when_their_time_is_over_counted_from_their_last_read() -> None:
    sent: list[Any] = []
    http = httpx2.Client(event_hooks={"request": [lambda request: sent.append(json.loads(request.content))]})
    documents = Cairn(http_client=http).documents
    root = ["store", uuid.uuid4().hex]
    store = CairnStore(documents, namespace=root, ttl={"default_ttl": 60})

    def touched() -> list[str]:
        found = [one["key"] for body in sent for one in body["operations"] if one["op"] == "touch"]
        sent.clear()
        return found

    store.put(("a",), "default", {"n": 1})
    store.put(("a",), "own", {"n": 2}, ttl=0.5)
    store.put(("a",), "endless", {"n": 3}, ttl=None)
    store.put(("a",), "over", {"n": 4}, ttl=0)
    lives: dict[str, float | None] = {}
    for document in documents.list([*root, "a"]):
        end = document.expires_at and datetime.fromisoformat(document.expires_at)
        lives[document.key] = (end - datetime.fromisoformat(document.updated_at)).total_seconds() if end else None
    # What has no time left is gone as soon as the clock of the server goes on.
    assert lives == {"default": 3600, "endless": None, "own": 30} | ({"over": 0.001} if "over" in lives else {})
    store.delete(("a",), "over")
    store.get(("a",), "own", refresh_ttl=False)
    store.search(("a",), refresh_ttl=False)
    assert touched() == []
    store.get(("a",), "own")
    store.get(("a",), "endless")
    assert touched() == ["own"]
    store.search(("a",), filter={"n": {"$lt": 3}})
    store.batch([GetOp(("a",), "default"), SearchOp(("a",)), GetOp(("a",), "own", refresh_ttl=False)])
    assert touched() == ["default", "own", "default", "own"]
    quiet = CairnStore(documents, namespace=root, ttl={"refresh_on_read": False})
    quiet.get(("a",), "own")
    assert touched() == []


def test_a_query_orders_by_meaning_what_is_indexed_and_the_rest_comes_behind() -> None:
    store = new_store(index=["text"])
    store.put(("m",), "tea", {"text": "Ada likes green tea"})
    store.put(("m",), "bicycle", {"text": "She repairs bicycles"})
    store.put(("m",), "hidden", {"text": "green tea with milk"}, index=False)
    store.put(("m",), "title", {"title": "a cup of green tea", "text": "?"}, index=["title"])
    found = store.search(("m",), query="green tea")
    assert {item.key for item in found[:2]} == {"tea", "title"}
    assert (found[-1].key, found[-1].score) == ("hidden", None)
    scores = [item.score for item in found if item.score is not None]
    assert scores == sorted(scores, reverse=True) and len(scores) == 3
    assert [item.key for item in store.search(("m",), query="green tea", filter={"title": {"$ne": None}})] == ["title"]
    assert new_store().search(("m",), query="green tea") == []


def test_the_time_of_creation_stays_and_that_of_the_last_put_follows() -> None:
    store = new_store()
    store.put(("a",), "k", {"n": 1})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"n": 2})
    second = store.get(("a",), "k")
    assert isinstance(first, Item) and isinstance(second, Item)
    assert first.created_at == second.created_at and first.updated_at <= second.updated_at and first.created_at.tzinfo is not None


def test_what_no_store_of_langgraph_takes_is_refused() -> None:
    store = new_store()
    for namespace in [("a.b",), ("",), ()]:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "k", {})])
    store.put(("a",), "k", {"n": "much"})
    assert store.search(("a",), filter={"n": {"$gt": 1}}) == []
    with pytest.raises(ValueError, match="near"):
        store.search(("a",), filter={"n": {"$near": 1}})


AGENT = """
import sys
from typing import TypedDict
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from cairn_client import Cairn
from cairn_client.langgraph import CairnSaver, CairnStore

class State(TypedDict):
    asked: str
    answer: str

model = FakeListChatModel(responses=["Noted."])

def remember(state: State, *, store: BaseStore) -> dict[str, str]:
    known = [item.value["text"] for item in store.search(("ada",), query=state["asked"], limit=1)]
    store.put(("ada",), state["asked"], {"text": state["asked"]})
    return {"answer": f"{model.invoke(state['asked']).content} {known}"}

documents = Cairn().documents
graph = StateGraph(State).add_node("remember", remember).add_edge(START, "remember").compile(
    store=CairnStore(documents, namespace=["store", sys.argv[1]], index=["text"]),
    checkpointer=CairnSaver(documents, namespace=["saver", sys.argv[1]]),
)
print(graph.invoke({"asked": sys.argv[2]}, {"configurable": {"thread_id": sys.argv[2]}})["answer"])
"""


def test_an_agent_finds_in_another_process_and_thread_what_one_has_stored() -> None:
    name = uuid.uuid4().hex
    assert run_program(AGENT, name, "I like green tea.") == "Noted. []"
    assert run_program(AGENT, name, "What tea do I like?") == "Noted. ['I like green tea.']"
