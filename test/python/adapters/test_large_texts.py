"""Texts that are larger than a request, which others delete or replace while they are added, read or taken."""

from __future__ import annotations

import asyncio
import ssl
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx2
import pytest
from agent_framework import AgentSession, Message
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from langchain_core.messages import HumanMessage
from llama_index.core.base.llms.types import ChatMessage
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelRequest, UserPromptPart

from cairn_client import AsyncCairn, Cairn
from cairn_client.agent_framework import CairnHistoryProvider
from cairn_client.agent_framework import CairnSessionStore as CairnAgentSessionStore
from cairn_client.claude_agent_sdk import CairnSessionStore
from cairn_client.google_adk import CairnSessionService
from cairn_client.langchain import CairnChatMessageHistory
from cairn_client.llama_index import CairnChatStore
from cairn_client.openai_agents import CairnSession
from cairn_client.pydantic_ai import CairnConversationStore
from cairn_client.strands import CairnStorage

PIECE_BYTES = 2_000
"""Bytes that a request is said to take, so that small ones are enough."""
LARGE = "x" * (PIECE_BYTES + 500)
PARTS_OF_LARGE = 2
CONTEXT = ssl.create_default_context()
CAIRN = Cairn()
KEY: Any = {"project_key": "p", "session_id": "s"}
OF: dict[str, str] = {"app_name": "app", "user_id": "ada"}
Act = Callable[[], Awaitable[Any]]


@pytest.fixture(autouse=True)
def small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_texts.PIECE_BYTES", "_stored.CHANGE_BYTES_MAX", "pydantic_ai.CHANGE_BYTES_MAX"):
        monkeypatch.setattr(f"cairn_client.{name}", PIECE_BYTES)


class Calls(NamedTuple):
    """Calls of an adapter: `read` gives everything that was put, as a list, or what stands for nothing."""

    put: Callable[[str], Awaitable[Any]]
    read: Act
    clear: Act


def openai(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    session = CairnSession(cairn.documents, "s", namespace=namespace)
    return Calls(lambda text: session.add_items([{"role": "user", "content": text}]), session.get_items, session.clear_session)


def langchain(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    history = CairnChatMessageHistory(cairn.documents, "s", namespace=namespace)
    return Calls(lambda text: history.aadd_messages([HumanMessage(text)]), history.aget_messages, history.aclear)


def claude(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    store = CairnSessionStore(cairn.documents, namespace=namespace)
    return Calls(
        lambda text: store.append(KEY, [{"type": "user", "uuid": uuid.uuid4().hex, "of": text}]),
        lambda: store.load(KEY),
        lambda: store.delete(KEY),
    )


def llama_index(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    store = CairnChatStore(cairn.documents, namespace=namespace)
    return Calls(
        lambda text: store.async_add_message("k", ChatMessage(text)), lambda: store.aget_messages("k"), lambda: store.adelete_messages("k")
    )


def llama_index_set(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    store = CairnChatStore(cairn.documents, namespace=namespace)
    return llama_index(cairn, namespace)._replace(put=lambda text: store.aset_messages("k", [ChatMessage(text)]))


def agent_history(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    history = CairnHistoryProvider(cairn.documents, namespace=namespace)
    return Calls(
        lambda text: history.save_messages("s", [Message("user", [text])]), lambda: history.get_messages("s"), lambda: history.delete("s")
    )


def agent_session(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    store = CairnAgentSessionStore(cairn.documents, namespace=namespace)

    async def put(text: str) -> None:
        session = AgentSession(session_id="s")
        session.state["text"] = text
        await store.set("s", session)

    return Calls(put, lambda: one(store.get("s")), lambda: store.delete("s"))


def strands(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    storage = CairnStorage(cairn.documents, namespace=namespace)
    return Calls(lambda text: storage.write("k", text.encode()), lambda: one(storage.read("k")), lambda: storage.delete("k"))


def adk(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    service = CairnSessionService(cairn.documents, namespace=namespace)

    async def put(text: str) -> None:
        await service.create_session(**OF, session_id="s", state={"text": text})

    return Calls(put, lambda: one(service.get_session(**OF, session_id="s")), lambda: service.delete_session(**OF, session_id="s"))


async def one(call: Awaitable[Any]) -> list[Any]:
    found = await call
    return [] if found is None else [found]


ADAPTERS = [openai, langchain, claude, llama_index, llama_index_set, agent_history, agent_session, strands, adk]
REPLACING = [llama_index_set, agent_session, strands]


class Sent:
    """Requests of a client, before the nth of which something is done."""

    def __init__(self, nth: int, act: Act) -> None:
        self.count = 0
        self._put = 0
        self._nth, self._act = nth, act
        self.cairn = AsyncCairn(http_client=httpx2.AsyncClient(event_hooks={"request": [self._before]}, verify=CONTEXT))

    async def _before(self, request: httpx2.Request) -> None:
        self.count += 1
        # What leads to a text is put last.
        if b'"put"' in request.content:
            self._put = self.count
        if self.count == self._nth:
            await self._act()

    @property
    def is_last(self) -> bool:
        """Whether what was done came before the last put, or not at all."""
        return self._nth <= self._put or self._nth > self.count


async def before_each(act: Act, run: Callable[[Sent], Awaitable[Any]], least: int = 3) -> None:
    """Runs something again and again, each time doing something else before the next one of its requests, which are so many at least."""
    nth = 1
    while True:
        sent = Sent(nth, act)
        await run(sent)
        if nth > sent.count:
            break
        nth += 1
    assert nth > least


def left(*namespace: str) -> int:
    """Counts what is below a namespace."""
    return CAIRN.documents.count(namespace, deep=True)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_text_whose_parts_others_delete_while_it_is_put_is_there_whole_and_goes_whole(adapter: Any) -> None:
    namespace = ["large", uuid.uuid4().hex]
    calls = adapter(AsyncCairn(), namespace)

    async def run(sent: Sent) -> None:
        await adapter(sent.cairn, namespace).put(LARGE)
        assert len(await calls.read() or []) == sent.is_last
        await calls.clear()
        assert left(*namespace) == 0

    asyncio.run(before_each(calls.clear, run))


@pytest.mark.parametrize("adapter", [one for one in ADAPTERS if one is not adk])
def test_a_text_that_others_put_while_all_are_deleted_goes_whole_then_or_later(adapter: Any) -> None:
    namespace = ["large", uuid.uuid4().hex]
    calls = adapter(AsyncCairn(), namespace)

    async def run(sent: Sent) -> None:
        await calls.put(LARGE)
        await adapter(sent.cairn, namespace).clear()
        await calls.clear()
        assert left(*namespace) == 0

    asyncio.run(before_each(lambda: calls.put(LARGE), run, 1))


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_text_that_others_delete_while_it_is_read_is_not_there(adapter: Any) -> None:
    async def all_of() -> None:
        namespace = ["large", uuid.uuid4().hex]
        calls = adapter(AsyncCairn(), namespace)
        await calls.put(LARGE)
        assert not await adapter(Sent(2, calls.clear).cairn, namespace).read()

    asyncio.run(all_of())


@pytest.mark.parametrize("adapter", REPLACING)
@pytest.mark.parametrize("text", [LARGE, "small"])
def test_of_texts_that_are_put_in_the_place_of_each_other_one_is_left(adapter: Any, text: str) -> None:
    namespace = ["large", uuid.uuid4().hex]
    calls = adapter(AsyncCairn(), namespace)

    async def run(sent: Sent) -> None:
        await calls.put(LARGE)
        await adapter(sent.cairn, namespace).put(LARGE)
        assert len(await calls.read()) == 1
        parts = left(*namespace, "parts")
        assert parts == (PARTS_OF_LARGE if text == LARGE or sent.is_last else 0)
        await calls.clear()
        assert left(*namespace) == 0

    asyncio.run(before_each(lambda: calls.put(text), run))


@pytest.mark.parametrize("state", ["text", "user:text", "app:text"])
def test_an_event_of_a_session_that_others_delete_meanwhile_leaves_nothing_but_state_that_sessions_share(state: str) -> None:
    namespace = ["large", uuid.uuid4().hex]
    service = CairnSessionService(AsyncCairn().documents, namespace=namespace)

    async def run(sent: Sent) -> None:
        session = await service.create_session(**OF, session_id="s", state={"text": LARGE})
        event = Event(author=LARGE, timestamp=1.5, actions=EventActions(state_delta={state: LARGE}))
        try:
            await CairnSessionService(sent.cairn.documents, namespace=namespace).append_event(session, event)
        except SessionNotFoundError:
            assert not sent.is_last or sent.count > 1
        await service.delete_session(**OF, session_id="s")
        parts = [left(*namespace, kind) for kind in ("user-parts", "app-parts")]
        shared = left(*namespace, "user"), left(*namespace, "app")
        assert parts == [PARTS_OF_LARGE * count for count in shared] and left(*namespace) == sum(parts) + sum(shared)

    asyncio.run(before_each(lambda: service.delete_session(**OF, session_id="s"), run))


def test_state_that_sessions_share_has_the_parts_of_the_last_value() -> None:
    namespace = ["large", uuid.uuid4().hex]
    service = CairnSessionService(AsyncCairn().documents, namespace=namespace)

    async def append(to: CairnSessionService, id_: str, value: str) -> None:
        session = await service.get_session(**OF, session_id=id_)
        assert session is not None
        event = Event(author="user", timestamp=session.last_update_time + 1, actions=EventActions(state_delta={"app:text": value}))
        await to.append_event(session, event)

    async def all_of() -> None:
        for id_ in ("a", "b"):
            await service.create_session(**OF, session_id=id_)
        for value in (LARGE, "small"):
            await before_each(
                lambda value=value: append(service, "a", value),
                lambda sent: append(CairnSessionService(sent.cairn.documents, namespace=namespace), "b", LARGE),
            )
            assert left(*namespace, "app-parts") == PARTS_OF_LARGE
        await append(service, "a", "small")
        assert left(*namespace, "app-parts") == 0

    asyncio.run(all_of())


def test_a_session_that_is_there_is_not_made_again_and_nothing_of_the_second_is_left() -> None:
    namespace = ["large", uuid.uuid4().hex]
    service = CairnSessionService(AsyncCairn().documents, namespace=namespace)

    async def all_of() -> None:
        await service.create_session(**OF, session_id="s")
        before = left(*namespace)
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**OF, session_id="s", state={"text": LARGE, "app:text": LARGE})
        assert left(*namespace) == before

    asyncio.run(all_of())


def test_a_conversation_that_others_change_or_delete_while_it_is_saved_leaves_nothing() -> None:
    namespace = ["large", uuid.uuid4().hex]
    store = CairnConversationStore(AsyncCairn().documents, namespace=namespace)

    def said(text: str) -> ModelRequest:
        return ModelRequest(parts=[UserPromptPart(content=text)])

    async def run(sent: Sent) -> None:
        await store.save(Conversation(conversation_id="c", messages=[said("Hello")]))
        loaded = await store.load("c")
        assert loaded is not None
        loaded.messages.extend([said(LARGE), said(LARGE)])
        try:
            await CairnConversationStore(sent.cairn.documents, namespace=namespace).save(loaded)
            assert sent.is_last
        except ConversationConflict:
            assert left(*namespace) == 0
        await store.delete("c")
        assert left(*namespace) == 0

    asyncio.run(before_each(lambda: store.delete("c"), run))


def test_an_item_that_others_delete_while_it_is_taken_is_taken_by_none() -> None:
    async def all_of() -> None:
        namespace = ["large", uuid.uuid4().hex]
        calls = openai(AsyncCairn(), namespace)
        await calls.put(LARGE)
        cairn = Sent(2, calls.clear).cairn
        assert await CairnSession(cairn.documents, "s", namespace=namespace).pop_item() is None

    asyncio.run(all_of())
