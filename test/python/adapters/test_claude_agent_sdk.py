"""CairnSessionStore by the suite of the Claude Agent SDK, and its transcripts as the SDK reads them in another process."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from adapter_programs import run_program
from claude_agent_sdk.testing import run_session_store_conformance

from cairn_client import AsyncCairn, Cairn
from cairn_client.claude_agent_sdk import CairnSessionStore


def test_the_conformance_suite_of_the_sdk_passes_for_either_client() -> None:
    for client in (AsyncCairn(), Cairn()):
        # The suite uses the same keys again: each store has a namespace of its own.
        asyncio.run(run_session_store_conformance(lambda client=client: new_store(client)))


def new_store(client: Any = None) -> CairnSessionStore:
    return CairnSessionStore((client or AsyncCairn()).documents, namespace=["claude", uuid.uuid4().hex])


KEY: Any = {"project_key": "p*", "session_id": str(uuid.uuid4())}


def test_appends_that_race_all_stay_and_none_counts_twice() -> None:
    store = new_store()

    async def all_of() -> None:
        entries: list[Any] = [{"type": "user", "uuid": str(i), "message": {"content": f"{i}"}} for i in range(12)]
        await asyncio.gather(*(store.append(KEY, [entry]) for entry in entries))
        await store.append(KEY, [entries[0], entries[1]])
        loaded = await store.load(KEY)
        assert loaded is not None and sorted(int(entry["uuid"]) for entry in loaded) == list(range(12))
        # Two equal ones without a uuid are two.
        title: Any = {"type": "custom-title", "customTitle": "A title"}
        await store.append(KEY, [title])
        await store.append(KEY, [title])
        loaded = await store.load(KEY)
        assert loaded is not None and loaded[-2:] == [title, title]
        [summary] = await store.list_session_summaries("p*")
        [listed] = await store.list_sessions("p*")
        assert (summary["session_id"], summary["mtime"], summary["data"]["custom_title"]) == (KEY["session_id"], listed["mtime"], "A title")

    asyncio.run(all_of())


def test_an_entry_larger_than_a_request_comes_back_as_it_was_and_goes_with_its_session() -> None:
    store = new_store(Cairn())
    large: Any = {"type": "user", "uuid": "u", "message": {"content": '"\\' * 1_000_000 + "ü\ud800", "10": 1.0, "2": 2**70}}

    async def all_of() -> None:
        await store.append({**KEY, "subpath": "agents/a"}, [{"type": "user", "uuid": "s"}])
        await store.append(KEY, [large])
        loaded = await store.load(KEY)
        assert repr(loaded) == repr([large])
        assert await store.list_subkeys(KEY) == ["agents/a"]
        await store.delete(KEY)
        assert (await store.load(KEY), await store.list_subkeys(KEY), await store.list_sessions("p*")) == (None, [], [])

    asyncio.run(all_of())
    assert Cairn().documents.count(store._store.root, deep=True) == 0


PROGRAM = """
import asyncio, sys
from claude_agent_sdk import fork_session_via_store, get_session_messages_from_store, list_sessions_from_store, project_key_for_directory
from cairn_client import AsyncCairn
from cairn_client.claude_agent_sdk import CairnSessionStore

name, session, what = sys.argv[1:]
store = CairnSessionStore(AsyncCairn().documents, namespace=["claude", name])
key = {"project_key": project_key_for_directory("/tmp"), "session_id": session}

def entry(i, role, parent):
    content = f"message {i}" if role == "user" else [{"type": "text", "text": f"message {i}"}]
    return {"type": role, "uuid": f"00000000-0000-4000-8000-{i:012}", "parentUuid": parent, "sessionId": session,
            "timestamp": "2026-05-07T08:00:00.000Z", "message": {"role": role, "content": content}}

async def main():
    if what == "write":
        first = entry(1, "user", None)
        await store.append(key, [first])
        await store.append(key, [entry(2, "assistant", first["uuid"])])
        return print("written")
    fork = await fork_session_via_store(store, session, directory="/tmp")
    listed = await list_sessions_from_store(store, directory="/tmp")
    counts = [len(await get_session_messages_from_store(store, one, directory="/tmp")) for one in (session, fork.session_id)]
    print(len(listed), listed[-1].first_prompt, counts)

asyncio.run(main())
"""


def test_another_process_lists_reads_and_forks_a_session_by_the_functions_of_the_sdk() -> None:
    name, session = uuid.uuid4().hex, str(uuid.uuid4())

    assert run_program(PROGRAM, name, session, "write") == "written"
    assert run_program(PROGRAM, name, session, "read") == "2 message 1 [2, 2]"
