"""Texts that are larger than a request, which others delete while they are added, read or taken."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest
from langchain_core.messages import HumanMessage

from cairn_client import AsyncCairn, Cairn
from cairn_client.claude_agent_sdk import CairnSessionStore
from cairn_client.langchain import CairnChatMessageHistory
from cairn_client.openai_agents import CairnSession

LARGE = "x" * 900_000
KEY: Any = {"project_key": "p", "session_id": "s"}
Calls = tuple[Callable[[Any], Awaitable[Any]], Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]


def openai(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    session = CairnSession(cairn.documents, "s", namespace=namespace)
    return lambda text: session.add_items([{"role": "user", "content": text}]), session.get_items, session.clear_session


def langchain(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    history = CairnChatMessageHistory(cairn.documents, "s", namespace=namespace)
    return lambda text: history.aadd_messages([HumanMessage(text)]), history.aget_messages, history.aclear


def claude(cairn: AsyncCairn, namespace: list[str]) -> Calls:
    store = CairnSessionStore(cairn.documents, namespace=namespace)
    return (
        lambda text: store.append(KEY, [{"type": "user", "uuid": uuid.uuid4().hex, "of": text}]),
        lambda: store.load(KEY),
        lambda: store.delete(KEY),
    )


def before_request(nth: int, act: Callable[[], Awaitable[Any]]) -> tuple[AsyncCairn, list[int]]:
    """Makes a client that does something before its nth request, and counts them."""
    sent = [0]

    async def hook(request: httpx2.Request) -> None:
        sent[0] += 1
        if sent[0] == nth:
            await act()

    return AsyncCairn(http_client=httpx2.AsyncClient(event_hooks={"request": [hook]}, timeout=None)), sent


@pytest.mark.parametrize("adapter", [openai, langchain, claude])
def test_a_text_whose_parts_others_delete_while_it_is_added_is_there_whole_and_goes_whole(adapter: Any) -> None:
    async def all_of() -> None:
        namespace = ["large", uuid.uuid4().hex]
        _, read, clear = adapter(AsyncCairn(), namespace)
        nth, sent = 1, [1]
        while nth <= sent[0]:
            cairn, sent = before_request(nth, clear)
            await adapter(cairn, namespace)[0](LARGE)
            assert len((await read()) or []) == 1, nth
            await clear()
            assert Cairn().documents.count(namespace, deep=True) == 0, nth
            nth += 1
        assert nth > 3

    asyncio.run(all_of())


@pytest.mark.parametrize("adapter", [openai, langchain, claude])
def test_a_text_that_others_delete_while_it_is_read_is_not_there(adapter: Any) -> None:
    async def all_of() -> None:
        namespace = ["large", uuid.uuid4().hex]
        add, _, clear = adapter(AsyncCairn(), namespace)
        await add(LARGE)
        assert not await adapter(before_request(2, clear)[0], namespace)[1]()

    asyncio.run(all_of())


def test_an_item_that_others_delete_while_it_is_taken_is_taken_by_none() -> None:
    async def all_of() -> None:
        namespace = ["large", uuid.uuid4().hex]
        add, _, clear = openai(AsyncCairn(), namespace)
        await add(LARGE)
        cairn, _ = before_request(2, clear)
        assert await CairnSession(cairn.documents, "s", namespace=namespace).pop_item() is None

    asyncio.run(all_of())
