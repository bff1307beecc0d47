"""The adapters for the Agent Framework against what it keeps in memory, and an agent that goes on in another process."""

from __future__ import annotations

import asyncio
import copy
import os
import random
import uuid
from typing import Any

import pytest
from adapter_programs import run_program
from agent_framework import AgentSession, Content, InMemoryHistoryProvider, Message, SessionContext, SessionStore, register_state_type

from cairn_client import AsyncCairn, Cairn
from cairn_client.agent_framework import CairnHistoryProvider, CairnMemoryProvider, CairnSessionStore

OPERATIONS = 500
IDS = ["a", "a/b", "ü😀", "", "."]
TEXTS = ["Hello", "Hello", "ü😀", "\ud800", "", "\n", "4"]


def namespace() -> list[str]:
    return ["agent-framework", uuid.uuid4().hex]


class Cart:
    """A type in the state of a session."""

    def __init__(self, items: list[str]) -> None:
        self.items = items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cart) and other.items == self.items


register_state_type(
    Cart, type_id="cairn.tests.cart", encoder=lambda cart: {"items": cart.items}, decoder=lambda value: Cart(list(value["items"]))
)


def message_by(chance: random.Random) -> Message:
    text = "x" * 400_000 if chance.random() < 0.002 else chance.choice(TEXTS)
    contents: list[Any] = (
        [text] if chance.random() < 0.8 else [Content.from_function_call("call", "tool", arguments={"10": 1.0, "2": None})]
    )
    properties = {"_excluded": True} if chance.random() < 0.1 else None
    id_ = uuid.UUID(int=chance.randrange(40)).hex if chance.random() < 0.5 else None
    return Message(chance.choice(["user", "assistant"]), contents, message_id=id_, additional_properties=properties)


def shown(messages: list[Message]) -> str:
    return repr([one.to_dict() for one in messages])


def test_messages_by_chance_are_those_of_the_provider_in_memory() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    at = namespace()
    pairs = [
        (CairnHistoryProvider(AsyncCairn().documents, namespace=at, skip_excluded=skip), InMemoryHistoryProvider(skip_excluded=skip))
        for skip in (False, True)
    ]
    states: dict[str, dict[str, Any]] = {id_: {} for id_ in IDS}

    async def all_of() -> None:
        said: dict[str, list[Message]] = {id_: [] for id_ in IDS}
        for _ in range(OPERATIONS):
            id_ = chance.choice(IDS)
            ours, theirs = chance.choice(pairs)
            if chance.random() < 0.5:
                # What was saved last comes again, as in a transcript that is sent whole.
                again = said[id_][-chance.randrange(6) :] if chance.random() < 0.4 else []
                messages = [*again, *(message_by(chance) for _ in range(chance.randrange(4)))]
                await ours.save_messages(id_, messages)
                await theirs.save_messages(id_, copy.deepcopy(messages), state=states[id_])
                said[id_] = [*said[id_], *messages]
            elif chance.random() < 0.25:
                await ours.delete(id_)
                states[id_], said[id_] = {}, []
            else:
                assert shown(await ours.get_messages(id_)) == shown(await theirs.get_messages(id_, state=states[id_]))
        for id_ in IDS:
            await pairs[0][0].delete(id_)

    asyncio.run(all_of())
    assert Cairn().documents.count(at, deep=True) == 0


def test_sessions_by_chance_are_those_of_the_store_in_memory() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    ours, theirs = CairnSessionStore(Cairn().documents, namespace=namespace()), SessionStore()

    async def all_of() -> None:
        for _ in range(OPERATIONS):
            id_ = chance.choice(IDS)
            match chance.randrange(5):
                case 0 | 1:
                    session = AgentSession(session_id=chance.choice([None, id_]), service_session_id=chance.choice([None, "s", {"a": 1}]))
                    large = "x" * 1_200_000 if chance.random() < 0.02 else 2**70
                    session.state = {
                        "10": 1.0,
                        "2": chance.choice([None, large, "\ud800"]),
                        "cart": Cart(["a", "ü"]),
                        "m": message_by(chance),
                    }
                    outcomes = [await outcome(store.set(id_, session)) for store in (ours, theirs)]
                    session.state["later"] = True
                case 2:
                    outcomes = [await outcome(store.delete(id_)) for store in (ours, theirs)]
                case _:
                    outcomes = [await outcome(store.get(id_)) for store in (ours, theirs)]
            assert outcomes[0] == outcomes[1]
        for id_ in IDS[1:]:
            await outcome(ours.delete(id_))
        await ours.delete("a")

    asyncio.run(all_of())
    assert Cairn().documents.count(ours._store.root, deep=True) == 0


async def outcome(call: Any) -> str:
    try:
        session = await call
    except ValueError as error:
        return str(error)
    return repr(None if session is None else (session.session_id, session.service_session_id, repr_of(session.state)))


def repr_of(state: dict[str, Any]) -> str:
    kinds = {
        name: value.items if isinstance(value, Cart) else value.to_dict() if isinstance(value, Message) else value
        for name, value in state.items()
    }
    return repr(kinds)


def test_what_is_no_json_is_refused_and_messages_that_are_saved_at_once_are_all_there_once() -> None:
    at = namespace()
    store = CairnSessionStore(AsyncCairn().documents, namespace=at)
    histories = [CairnHistoryProvider(AsyncCairn().documents, namespace=at) for _ in range(4)]

    async def all_of() -> None:
        for value, error in ((object(), TypeError), (float("nan"), ValueError)):
            session = AgentSession(session_id="s")
            session.state = {"value": value}
            with pytest.raises(error):
                await store.set("s", session)
        messages = [Message("user", [f"{i}"], message_id=f"{i}") for i in range(120)]
        await asyncio.gather(*(history.save_messages("s", messages[i * 30 : i * 30 + 30]) for i, history in enumerate(histories)))
        found = [one.text for one in await histories[0].get_messages("s")]
        assert len(found) == 120 and {*found} == {one.text for one in messages}
        await histories[0].save_messages("more", messages)
        await histories[1].save_messages("more", messages)
        assert [one.text for one in await histories[2].get_messages("more")] == [one.text for one in messages]

    asyncio.run(all_of())


def test_a_provider_of_memories_tells_those_of_its_user_that_are_about_the_question() -> None:
    user = f"framework {uuid.uuid4().hex}"
    cairn = Cairn()
    cairn.memories.add(user_id=user, content="The customer prefers e-mail\nto phone calls.")
    provider = CairnMemoryProvider(AsyncCairn(), user_id=user, prompt="Known:")

    async def told(*said: str) -> list[str]:
        context = SessionContext(input_messages=[Message("user", [text]) for text in said])
        await provider.before_run(agent=None, session=AgentSession(), context=context, state={})
        return [one.text for one in context.get_messages()]

    assert asyncio.run(told("How does the customer prefer to be contacted?")) == ["Known:\n- The customer prefers e-mail to phone calls."]
    assert asyncio.run(told("")) == []
    nobody: Any = None
    with pytest.raises(TypeError, match="user_id"):
        CairnMemoryProvider(cairn, user_id=nobody)


AGENT = """
import asyncio, sys
from agent_framework import Agent, BaseChatClient, ChatResponse, Message
from cairn_client import AsyncCairn
from cairn_client.agent_framework import CairnHistoryProvider, CairnMemoryProvider, CairnSessionStore

class Fake(BaseChatClient):
    async def _inner_get_response(self, *, messages, stream, options, **more):
        return ChatResponse(messages=[Message("assistant", [" | ".join(one.text for one in messages if one.role == "user")])])

async def main():
    cairn, name = AsyncCairn(), sys.argv[1]
    store = CairnSessionStore(cairn.documents, namespace=["agent-framework", name])
    providers = [CairnHistoryProvider(cairn.documents, namespace=["agent-framework", name]), CairnMemoryProvider(cairn, user_id=name)]
    agent = Agent(Fake(), context_providers=providers)
    session = await store.get("s") or agent.create_session(session_id="s")
    session.state["runs"] = session.state.get("runs", 0) + 1
    said = await agent.run(sys.argv[2], session=session)
    await store.set("s", session)
    print(session.state["runs"], said.text.replace("\\n", " "))

asyncio.run(main())
"""


def test_an_agent_goes_on_in_another_process_and_is_told_what_is_remembered() -> None:
    name = uuid.uuid4().hex
    assert run_program(AGENT, name, "Where is my order?") == "1 Where is my order?"
    Cairn().memories.add(user_id=name, content="The invoice of the order goes to Lisbon.")
    said = run_program(AGENT, name, "Where does the invoice of the order go?")
    assert said.startswith("2 Where is my order? | ") and "- The invoice of the order goes to Lisbon." in said
