"""The client with httpx2 against a server, in both colours: CAIRN_URL and CAIRN_API_KEY name it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import anyio
import httpx2
import pytest
from conftest import Colour

from cairn_client import AsyncCairn, Cairn, CairnError


def test_a_conversation(colour: Colour) -> None:
    async def conversation() -> None:
        cairn, get = colour.client(), colour.result
        session = await get(cairn.sessions.create(agent_id="support-bot", user_id=f"user-{uuid4()}", initial_state={"step": 0}))
        await get(cairn.sessions.set_state(session.id, {"step": 1}, expected_version=0))
        with pytest.raises(CairnError) as conflict:
            await get(cairn.sessions.set_state(session.id, {"step": 2}, expected_version=0))
        assert (conflict.value.code, conflict.value.status, conflict.value.param) == ("version_conflict", 409, "expected_version")
        said = {"type": "text", "content": "Where is my order?"}
        turn = await get(cairn.turns.add(session.id, input=said, output={"type": "text", "content": "It arrives tomorrow."}))
        assert turn.input.content == "Where is my order?"
        memory = await get(cairn.memories.add(session_id=session.id, content="The customer prefers e-mail to phone calls."))
        context = await get(cairn.sessions.context(session.id, query="How does the customer prefer to be contacted?"))
        assert [one.id for one in context.memories] == [memory.id]
        assert (await get(cairn.memories.delete(memory.id))).deleted
        assert (await get(cairn.health())).status == "ready"
        assert (await get(cairn.stats())).sessions > 0

    colour.run(conversation)


def test_lists_give_a_page_or_everything(colour: Colour) -> None:
    async def lists() -> None:
        cairn, get = colour.client(), colour.result
        agent = f"listed-{uuid4()}"
        made = [(await get(cairn.sessions.create(agent_id=agent))).id for _ in range(5)]
        page = await get(cairn.sessions.list(agent_id=agent, limit=2))
        assert ([one.id for one in page.data], page.has_more) == (made[:-3:-1], True)
        assert [one.id for one in await colour.everything(page)] == made[::-1]
        assert [one.id for one in await colour.everything(cairn.sessions.list(agent_id=agent, limit=2))] == made[::-1]
        documents = cairn.documents.of(agent_id=agent)
        for i in range(5):
            await get(documents.append(["log"], {"i": i}))
        assert [one.value["i"] for one in await colour.everything(documents.list(["log"], limit=2, offset=1))] == [1, 2, 3, 4]
        assert (await get(documents.pop(["log"]))).value == {"i": 4}
        assert await get(documents.count(["log"])) == 4
        assert await colour.everything(documents.namespaces()) == [["log"]]
        assert (await get(documents.delete_all(["log"]))).deleted == 4
        assert await get(documents.get(["log"], "none")) is None

    colour.run(lists)


def test_events_come_until_the_loop_is_left(colour: Colour) -> None:
    async def events() -> None:
        cairn, get = colour.client(), colour.result
        session = await get(cairn.sessions.create(agent_id="a"))
        [created] = (await get(cairn.traces.list(session_id=session.id))).data
        for i in range(3):
            await get(cairn.sessions.set_state(session.id, {"i": i}))
        seen: list[int] = []
        async for trace in colour.each(cairn.events(session_id=session.id, last_event_id=created.id)):
            seen.append(trace.details["version"])
            if len(seen) == 3:
                break
        assert seen == [1, 2, 3]

    colour.run(events)


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that does something with each connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            held.append(connection)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        for connection in held:
            connection.close()


def silent(connection: socket.socket) -> None:
    """Answers nothing."""


def dripping(connection: socket.socket) -> None:
    """Sends a byte of its answer now and then, so that no single read takes long."""
    connection.recv(65_536)
    try:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        while True:
            connection.sendall(b" ")
            threading.Event().wait(0.01)
    except OSError:
        return


@pytest.mark.parametrize("serve", [silent, dripping])
def test_an_attempt_ends_with_its_time(colour: Colour, serve: Callable[[socket.socket], None]) -> None:
    async def slow() -> None:
        with listening(serve) as url:
            with pytest.raises(CairnError) as late:
                await colour.result(colour.client(base_url=url, timeout=0.2, retries=0).stats())
            assert (late.value.code, late.value.status) == ("timeout", None)

    colour.run(slow)


def test_without_a_server_the_error_says_so(colour: Colour) -> None:
    async def nobody() -> None:
        with listening(silent) as url:
            pass
        with pytest.raises(CairnError) as gone:
            await colour.result(colour.client(base_url=url, retries=0).stats())
        assert gone.value.code == "connection_failed"
        assert str(gone.value).startswith(f"{url} cannot be reached")

    colour.run(nobody)


def test_a_redirection_is_not_followed(colour: Colour) -> None:
    def redirecting(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n")

    async def redirected() -> None:
        with listening(redirecting) as url, pytest.raises(CairnError) as error:
            await colour.result(colour.client(base_url=url).stats())
        assert (error.value.code, error.value.status) == ("unexpected_answer", 307)

    colour.run(redirected)


def test_one_client_serves_one_event_loop_after_another_and_trio() -> None:
    cairn = AsyncCairn()

    async def several() -> list[str]:
        answers: list[str] = []

        async def one() -> None:
            answers.append((await cairn.health()).status)

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(one)
        return answers

    for backend in ("asyncio", "asyncio", "trio", "asyncio"):
        assert anyio.run(several, backend=backend) == ["ready"] * 10


def test_the_other_colour_of_a_client_works_with_threads_and_within_a_loop() -> None:
    """A notebook has a running loop, in which a blocking call blocks and works."""

    async def within() -> str:
        return Cairn().health().status

    assert asyncio.run(within()) == "ready"
    cairn = Cairn()
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(cairn.sessions.create(agent_id="threads").agent_id)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["threads"] * 20


def wrong_answers(cairn: Cairn, name: str, results: Any) -> None:
    wrong = 0
    for i in range(40):
        session = cairn.sessions.create(agent_id=name, metadata={"i": i})
        found = cairn.sessions.get(session.id)
        wrong += (found.agent_id, found.metadata) != (name, {"i": i})
    results.put(wrong)


def test_after_a_fork_each_process_has_connections_of_its_own() -> None:
    context = multiprocessing.get_context("fork")
    cairn = Cairn()
    cairn.health()
    results = context.Queue()
    children = [context.Process(target=wrong_answers, args=(cairn, f"child-{i}", results)) for i in range(4)]
    for child in children:
        child.start()
    wrong_answers(cairn, "parent", results)
    assert [results.get(timeout=60) for _ in range(5)] == [0] * 5
    for child in children:
        child.join()
        assert child.exitcode == 0


def test_a_client_of_your_own_is_used_for_its_colour_and_stays_open() -> None:
    with httpx2.Client(headers={"user-agent": "mine"}) as http:
        with Cairn(http_client=http) as cairn:
            assert cairn.health().status == "ready"
        assert not http.is_closed
        with pytest.raises(TypeError, match=r"Awaited calls need an httpx2\.AsyncClient"):
            asyncio.run(Cairn(http_client=http).arun(iter(())))  # type: ignore[arg-type]


def test_a_cancelled_call_leaves_a_client_that_works() -> None:
    async def cancelled() -> None:
        cairn = AsyncCairn()
        with listening(silent) as url:
            slow = AsyncCairn(base_url=url)
            with anyio.move_on_after(0.05) as scope:
                await slow.stats()
            assert scope.cancelled_caught
        with anyio.move_on_after(0.2):
            async for _ in cairn.events():
                pass
        assert (await cairn.health()).status == "ready"

    for backend in ("asyncio", "trio"):
        anyio.run(cancelled, backend=backend)


def test_the_environment_names_key_and_server() -> None:
    assert repr(Cairn()) == f"Cairn(base_url={os.environ['CAIRN_URL']!r})"
