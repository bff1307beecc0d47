"""CairnSaver by the suite of LangGraph, and an agent of it that is interrupted in one process and goes on in another."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from collections.abc import AsyncIterator
from typing import Any

from adapter_programs import run_program
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver

from cairn_client import AsyncCairn, Cairn
from cairn_client.langgraph import CairnSaver


def test_the_conformance_suite_of_langgraph_passes_whole_for_either_client() -> None:
    for client in (Cairn(), AsyncCairn()):

        @checkpointer_test(name="CairnSaver")
        async def saver(client: Any = client) -> AsyncIterator[CairnSaver]:
            yield CairnSaver(client.documents, namespace=["conformance", uuid.uuid4().hex])

        report = asyncio.run(validate(saver))
        failures = {name: result.failures for name, result in report.results.items() if not result.passed}
        assert (failures, sum(result.tests_passed for result in report.results.values())) == ({}, 81)


def test_operations_by_chance_give_what_the_checkpointer_in_memory_gives() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    for _ in range(4):
        saver = CairnSaver(Cairn().documents, namespace=["random", uuid.uuid4().hex])
        memory = InMemorySaver()
        made: list[RunnableConfig] = []
        for step in range(130):
            operate(chance, step, saver, memory, made)


def operate(chance: random.Random, step: int, saver: CairnSaver, memory: InMemorySaver, made: list[RunnableConfig]) -> None:
    """Does one thing to both, and compares what each gives."""
    thread, ns = f"thread-{chance.randrange(3)}", chance.choice(["", "child|1"])
    config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ns}}
    both = (saver, memory)
    match chance.choice(["put", "put", "put", "writes", "writes", "get", "get", "list", "list", "delete"]):
        case "put":
            before = memory.get_tuple(config)
            checkpoint = empty_checkpoint()
            version = f"{step + 1:032}.{chance.random():.16f}"
            checkpoint["channel_versions"] = {**(before.checkpoint["channel_versions"] if before else {}), "a": version}
            checkpoint["channel_values"] = {**(before.checkpoint["channel_values"] if before else {}), "a": value_by(chance)}
            parent = before.config if before else config
            metadata: Any = {"source": "loop", "step": step, "kind": chance.choice(["x", "y"])}
            puts = [one.put(parent, checkpoint, metadata, {"a": version}) for one in both]
            assert puts[0] == puts[1]
            made.append(puts[0])
        case "writes" if made:
            at = chance.choice(made)
            writes = [(chance.choice(["a", "b", "__interrupt__", "__error__"]), value_by(chance)) for _ in range(chance.randrange(1, 4))]
            task = f"task-{chance.randrange(3)}"
            # Some have no checkpoint any more.
            if memory.get_tuple(at) is not None:
                for one in both:
                    one.put_writes(at, writes, task)
        case "get":
            at = chance.choice([config, *made])
            assert shown(saver.get_tuple(at)) == shown(memory.get_tuple(at))
        case "list":
            wanted = chance.choice([None, {"kind": "x"}, {"step": step - 1}, {"kind": "y", "source": "loop"}])
            at_end = chance.choice([None, *made])
            limit = chance.choice([None, 1, 3, 30])
            ours, theirs = ([shown(one) for one in it.list(config, filter=wanted, before=at_end, limit=limit)] for it in both)
            assert ours == theirs
        case "delete" if chance.random() < 0.2:
            for one in both:
                one.delete_thread(thread)
        case _:
            pass


def value_by(chance: random.Random) -> Any:
    text = "x" * chance.choice([10] * 7 + [900_000])
    return chance.choice([None, 1.0, 2**60, "ü😀", b"\x00\xff", {"10": [1], "2": (1, 2)}, [{"a": {3}}], text])


def shown(found: CheckpointTuple | None) -> Any:
    if found is None:
        return None
    writes = sorted(found.pending_writes or [], key=repr)
    return [found.config, found.checkpoint, found.metadata, found.parent_config, writes]


AGENT = """
import sys
from typing import TypedDict
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from cairn_client import Cairn
from cairn_client.langgraph import CairnSaver

class State(TypedDict):
    said: list[str]

model = FakeListChatModel(responses=["Shall I refund it?"])

def ask(state: State) -> State:
    return {"said": [*state["said"], str(model.invoke("hello").content)]}

def approve(state: State) -> State:
    return {"said": [*state["said"], interrupt("refund?")]}

builder = StateGraph(State).add_node("ask", ask).add_node("approve", approve)
graph = builder.add_edge(START, "ask").add_edge("ask", "approve").add_edge("approve", END).compile(
    checkpointer=CairnSaver(Cairn().documents, namespace=["agent", sys.argv[1]])
)
config = {"configurable": {"thread_id": "t"}}
answer = graph.invoke({"said": []} if sys.argv[2] == "begin" else Command(resume="yes"), config)
print(answer["said"], [one.value for one in answer.get("__interrupt__", [])])
"""


def test_an_agent_that_waits_for_a_person_goes_on_in_another_process() -> None:
    name = uuid.uuid4().hex
    assert run_program(AGENT, name, "begin") == "['Shall I refund it?'] ['refund?']"
    assert run_program(AGENT, name, "resume") == "['Shall I refund it?', 'yes'] []"
