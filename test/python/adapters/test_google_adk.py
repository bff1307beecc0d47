"""The adapters for Google's ADK against what it keeps in memory, and an agent that goes on in another process."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from typing import Any

import pytest
from adapter_programs import run_program
from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.genai.types import Content, Part

from cairn_client import AsyncCairn, Cairn
from cairn_client.google_adk import CairnMemoryService, CairnSessionService

OPERATIONS = 500
APPS = ["app", "ü😀"]
USERS = ["ada", "b/o"]
SESSIONS = ["s", " s ", "t/u", "", "🙂"]
NAMES = ["a", "app:a", "user:a", "temp:a", "10", "user:", "user:2"]
VALUES: list[Any] = [None, 1.0, 2**70, "ü😀", {"10": 1, "2": [True]}, [], "\ud800"]


def service() -> CairnSessionService:
    return CairnSessionService(AsyncCairn().documents, namespace=["adk", uuid.uuid4().hex])


def state_by(chance: random.Random) -> dict[str, Any]:
    large = {"large": "x" * 1_000_000} if chance.random() < 0.003 else {}
    return {**large, **{name: chance.choice(VALUES[:-1]) for name in NAMES if chance.random() < 0.3}}


def event_by(chance: random.Random, time: float) -> Event:
    said = Content(role="user", parts=[Part(text=chance.choice(["Hello", "ü😀", "", "\n"])), Part(function_call=None, text="2")])
    actions = EventActions(state_delta=state_by(chance) if chance.random() < 0.5 else {})
    content = chance.choice([said, None])
    id_ = chance.choice([uuid.UUID(int=chance.randrange(2**64)).hex, "same"])
    return Event(
        id=id_, author=chance.choice(["user", "agent"]), timestamp=time, content=content, actions=actions, partial=chance.random() < 0.1
    )


def shown(given: Any) -> str:
    """Shows what is compared: sessions without the time of those to which nothing was appended, which is the clock's."""
    if isinstance(given, Session):
        time = given.last_update_time if given.last_update_time < 1e9 else None
        state = sorted(given.state.items(), key=lambda one: one[0])
        return repr((given.app_name, given.user_id, given.id, state, time, [one.model_dump(exclude_none=True) for one in given.events]))
    return repr(sorted(given.items()) if isinstance(given, dict) else given)


def test_operations_by_chance_give_what_the_service_in_memory_gives() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    ours = service()
    both: list[Any] = [ours, InMemorySessionService()]

    async def outcome(call: Any) -> Any:
        try:
            return await call
        except (AlreadyExistsError, SessionNotFoundError) as error:
            return str(error)

    async def all_of() -> None:
        last: Event | None = None
        for i in range(OPERATIONS):
            of = {"app_name": chance.choice(APPS), "user_id": chance.choice(USERS)}
            name = chance.choice(SESSIONS)
            match chance.randrange(10):
                case 0 | 1 if name.strip():
                    state = state_by(chance)
                    results = [await outcome(one.create_session(**of, session_id=name, state=state)) for one in both]
                case 2 if chance.random() < 0.3:
                    results = [await one.delete_session(**of, session_id=name) for one in both]
                case 3:
                    results = [await one.get_user_state(**of) for one in both]
                case 4:
                    which = of if chance.random() < 0.7 else {"app_name": of["app_name"]}
                    results = [sorted(shown(found) for found in (await one.list_sessions(**which)).sessions) for one in both]
                case 5 | 6:
                    config = GetSessionConfig(
                        num_recent_events=chance.choice([None, 0, 1, 3]), after_timestamp=chance.choice([None, None, float(i - 20)])
                    )
                    results = [await one.get_session(**of, session_id=name, config=config) for one in both]
                case _:
                    event = last if last is not None and chance.random() < 0.2 else event_by(chance, float(i) + 0.5)
                    last = event.model_copy(deep=True)
                    results = []
                    for one in both:
                        session = await one.get_session(**of, session_id=name) or Session(id=name.strip() or "none", **of)
                        results.append(await outcome(one.append_event(session, event.model_copy(deep=True))))
                        results[-1] = results[-1] if isinstance(results[-1], str) else shown(session)
            assert shown(results[0]) == shown(results[1]), i
        for app in APPS:
            for found in (await ours.list_sessions(app_name=app)).sessions:
                await ours.delete_session(app_name=app, user_id=found.user_id, session_id=found.id)

    asyncio.run(all_of())
    for kind in ("sessions", "events", "ids", "parts"):
        assert Cairn().documents.count([*ours._store.root, kind], deep=True) == 0


OF: dict[str, str] = {"app_name": "app", "user_id": "ada"}


def test_an_append_to_what_has_changed_is_refused_and_temporary_state_is_only_in_the_session() -> None:
    ours = service()

    async def all_of() -> None:
        await ours.create_session(**OF, session_id="s", state={"a": 1, "temp:x": 1})
        one, other = [await ours.get_session(**OF, session_id="s") for _ in range(2)]
        assert one is not None and other is not None and one.state == {"a": 1}
        event = Event(author="user", timestamp=1.5, actions=EventActions(state_delta={"temp:x": 2, "a": 3, "large": "x" * 2_000_000}))
        await ours.append_event(one, event)
        assert (one.state["temp:x"], one.last_update_time) == (2, 1.5)
        with pytest.raises(StaleSessionError):
            await ours.append_event(other, Event(author="user", timestamp=2.5))
        found = await ours.get_session(**OF, session_id="s")
        assert found is not None and sorted(found.state) == ["a", "large"] and len(found.events) == 1
        [listed] = (await ours.list_sessions(**OF)).sessions
        assert (listed.id, listed.events, listed.last_update_time) == ("s", [], 1.5)
        with pytest.raises(Exception, match="serialize"):
            await ours.create_session(**OF, state={"a": object()})
        await ours.delete_session(**OF, session_id="s")

    asyncio.run(all_of())
    assert Cairn().documents.count(ours._store.root, deep=True) == 0


def test_what_was_said_is_remembered_once_and_what_is_deleted_is_not_added_again() -> None:
    user = f"adk {uuid.uuid4().hex}"
    memories = CairnMemoryService(Cairn(), namespace=["adk", user])
    texts = ["I prefer e-mail to phone calls.", "", "The invoice goes to Lisbon."]
    events = [
        Event(id=f"{user} {i}", author="user", timestamp=i + 0.5, content=Content(parts=[Part(text=text)])) for i, text in enumerate(texts)
    ]
    session = Session(id="s", app_name="app", user_id=user, events=[*events, Event(author="agent")])
    query = "Where does the invoice go?"

    async def found(of: str = user) -> list[Any]:
        return (await memories.search_memory(app_name="app", user_id=of, query=query)).memories

    async def all_of() -> None:
        await memories.add_session_to_memory(session)
        await memories.add_session_to_memory(session)
        await memories.add_events_to_memory(app_name="app", user_id=user, events=events, session_id="s")
        [entry] = await found()
        assert entry.content.parts[0].text == texts[2] and (entry.author, entry.custom_metadata) == ("user", {"session_id": "s"})
        assert entry.timestamp == "1970-01-01T00:00:02.500000+00:00"
        assert await found("another") == []
        await memories.delete_memory(app_name="app", user_id="another", memory_id=entry.id)
        assert len(await found()) == 1
        await memories.delete_memory(app_name="app", user_id=user, memory_id=entry.id)
        await memories.add_session_to_memory(session)
        assert await found() == []
        await memories.add_memory(app_name="app", user_id=user, memories=[entry.model_copy(update={"id": None})])
        assert [one.author for one in await found()] == ["user"]

    asyncio.run(all_of())


AGENT = """
import asyncio, sys
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.genai.types import Content, Part
from cairn_client import AsyncCairn
from cairn_client.google_adk import CairnSessionService

class Fake(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        said = [part.text for content in llm_request.contents if content.role == "user" for part in content.parts if part.text]
        yield LlmResponse(content=Content(role="model", parts=[Part(text=" | ".join(said))]))

async def main():
    sessions = CairnSessionService(AsyncCairn().documents, namespace=["adk", sys.argv[1]])
    agent = LlmAgent(name="support", model=Fake(model="fake"), output_key="said")
    runner = Runner(app_name="app", agent=agent, session_service=sessions)
    of = {"user_id": "ada", "session_id": "s"}
    if await sessions.get_session(app_name="app", **of) is None:
        await sessions.create_session(app_name="app", **of)
    async for event in runner.run_async(**of, new_message=Content(role="user", parts=[Part(text=sys.argv[2])])):
        pass
    print((await sessions.get_session(app_name="app", **of)).state["said"])

asyncio.run(main())
"""


def test_an_agent_goes_on_in_another_process() -> None:
    name = uuid.uuid4().hex
    assert run_program(AGENT, name, "Where is my order?") == "Where is my order?"
    assert run_program(AGENT, name, "And the invoice?") == "Where is my order? | And the invoice?"
