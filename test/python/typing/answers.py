"""What type checkers know of the client; it is checked and never run."""

from typing import assert_type

from cairn_client import OMIT, AsyncCairn, Cairn, CairnError, Page
from cairn_client._types import Document, DocumentWritten, MemoryResults, Session, Trace, TurnInput


def blocking(cairn: Cairn, user: str | None) -> None:
    session = cairn.sessions.create(agent_id="a", user_id=user or OMIT, ttl_seconds="never")
    assert_type(session, Session)
    assert_type(session.id, str)
    assert_type(session.external_id, str | None)
    assert_type(cairn.sessions.list(limit=3), Page[Session])
    for one in cairn.sessions.list():
        assert_type(one, Session)
    for trace in cairn.events():
        assert_type(trace, Trace)
    assert_type(cairn.memories.search(query="tea"), MemoryResults)
    turn = cairn.turns.add(session.id, input={"type": "text", "content": "a"}, output={"type": "text", "content": "b"})
    assert_type(turn.input, TurnInput)
    documents = cairn.documents.of(user_id="ada")
    assert_type(documents.get(["a"], "b"), Document | None)
    assert_type(documents.put(["a"], "b", {"c": 1}), DocumentWritten)
    assert_type(documents.count(["a"]), int)
    for namespace in documents.namespaces():
        assert_type(namespace, list[str])


async def awaiting(cairn: AsyncCairn) -> None:
    assert_type(await cairn.sessions.get("sess_1"), Session)
    assert_type((await cairn.sessions.list()).data, list[Session])
    async for one in cairn.sessions.list():
        assert_type(one, Session)
    async for document in cairn.documents.list(["a"]):
        assert_type(document, Document)
    with cairn_errors() as error:
        assert_type(error.status, int | None)


class cairn_errors:
    def __enter__(self) -> CairnError:
        raise NotImplementedError

    def __exit__(self, *error: object) -> None: ...


def refused(cairn: Cairn, session: Session) -> None:
    session.id = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    cairn.sessions.list(user_id=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    cairn.sessions.create()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    cairn.turns.list("sess_1", order="up")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
