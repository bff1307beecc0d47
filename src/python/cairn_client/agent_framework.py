"""Microsoft's Agent Framework on Cairn: a session store, a history provider, and memories for the context of an agent.

[…, "sessions"]                session id -> the snapshot of a session, as text
[…, "parts", session]          a piece of a snapshot that is larger than a request
[…, "histories"]               session id -> changes with each message, so that two that are saved at once are not mixed
[…, "messages", session]       rising key -> a message, as text
[…, "message-parts", session]  a piece of a message that is larger than a request
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ._async import AsyncCairn, AsyncDocuments
from ._core import Steps
from ._given import OMIT, Omit
from ._memories import Memories
from ._stored import OPERATIONS_MAX, requests_of
from ._sync import Cairn, Documents
from ._texts import TextStore, item_size
from ._types import Document

try:
    from agent_framework import AgentSession, ContextProvider, HistoryProvider, Message, SessionContext, SessionStore
    from agent_framework._sessions import filter_new_messages
except ImportError as cause:
    raise ImportError("CairnSessionStore needs the Agent Framework: pip install 'cairn-client[agent-framework]'") from cause

Json = dict[str, Any]

NAMESPACE = ("agent-framework",)
WITHOUT_SESSION = "default"
"""The framework's own name for the history of a run without a session."""
MESSAGES_AT_ONCE = OPERATIONS_MAX - 2
"""Messages of one transaction, with the head and the end of their parts."""
PROMPT = "What is remembered about this:"


class CairnSessionStore(SessionStore):
    """A session store of the Agent Framework.

    A type of your own in the state of a session needs the framework's `register_state_type`.

    Example:
        store = CairnSessionStore(AsyncCairn("crn_…").documents)
        session = await store.get("session-1") or agent.create_session(session_id="session-1")
        await agent.run("Hello", session=session)
        await store.set("session-1", session)
    """

    def __init__(self, documents: Documents | AsyncDocuments, *, namespace: Sequence[str] = NAMESPACE) -> None:
        """Makes a session store.

        Args:
            documents: `cairn.documents`, or those of a user, of either client.
            namespace: Under which the sessions are.
        """
        super().__init__()
        self._store = TextStore(documents, namespace)

    def _parts(self, session_id: str) -> list[str]:
        return [*self._store.root, "parts", session_id]

    def _at(self, session_id: str) -> Json:
        SessionStore.validate_session_id(session_id)
        return {"namespace": [*self._store.root, "sessions"], "key": session_id}

    async def get(self, session_id: str) -> AgentSession | None:
        """Returns the session as it was stored last, or None."""
        found = await self._store.client.arun(self._store.get_text(self._at(session_id), self._parts(session_id)))
        return None if found is None else AgentSession.from_dict(json.loads(found[1]))

    async def set(self, session_id: str, session: AgentSession) -> None:
        """Stores a session in the place of what was there.

        Raises:
            TypeError: Its state has a value that is no JSON and no registered type, or it is of a class of your own.
            ValueError: A number of its state is not finite.
        """
        at = self._at(session_id)
        if type(session) is not AgentSession:
            raise TypeError(f"CairnSessionStore keeps an AgentSession, and none of a class of its own; got {type(session).__name__}.")
        text = json.dumps(session.to_dict(), allow_nan=False)
        await self._store.client.arun(self._store.put_text(at, self._parts(session_id), text))

    async def delete(self, session_id: str) -> None:
        """Deletes a session, if there is one."""
        await self._store.client.arun(self._store.delete_text(self._at(session_id), self._parts(session_id)))


class CairnHistoryProvider(HistoryProvider):
    """A history provider of the Agent Framework: the messages of a session, each once, from any process.

    Example:
        agent = Agent(client, context_providers=[CairnHistoryProvider(AsyncCairn("crn_…").documents)])
        await agent.run("Hello", session=agent.create_session(session_id="session-1"))
    """

    DEFAULT_SOURCE_ID = "cairn_history"

    def __init__(
        self,
        documents: Documents | AsyncDocuments,
        *,
        namespace: Sequence[str] = NAMESPACE,
        source_id: str = DEFAULT_SOURCE_ID,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
    ) -> None:
        """Makes a history provider.

        Args:
            documents: `cairn.documents`, or those of a user, of either client.
            namespace: Under which the histories are.
            source_id: Names the provider among others.
            load_messages: As the framework's own has it, and so are the others.
            store_inputs: Whether what the user says is stored.
            store_context_messages: Whether what other providers add is stored.
            store_context_from: Of which providers that is, all unless given.
            store_outputs: Whether what the agent says is stored.
            skip_excluded: Leaves out messages that a compaction has marked as excluded.
        """
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self.skip_excluded = skip_excluded
        self._store = TextStore(documents, namespace)

    def _messages(self, session_id: str | None) -> list[str]:
        return [*self._store.root, "messages", session_id or WITHOUT_SESSION]

    def _parts(self, session_id: str | None) -> list[str]:
        return [*self._store.root, "message-parts", session_id or WITHOUT_SESSION]

    def _head(self, session_id: str | None) -> Json:
        return {"namespace": [*self._store.root, "histories"], "key": session_id or WITHOUT_SESSION}

    def _read(self, session_id: str | None, documents: Sequence[Document]) -> Steps[list[Message]]:
        messages: list[Message] = []
        for document in documents:
            messages.append(Message.from_dict(json.loads((yield from self._store.text_of(self._parts(session_id), document.value)))))
        return messages

    def _all(self, session_id: str | None) -> Steps[list[Message]]:
        listing: Json = {"op": "list", "namespace": self._messages(session_id)}
        return (yield from self._read(session_id, (yield from self._store.everything(listing))))

    def _save(self, session_id: str | None, messages: Sequence[Message]) -> Steps[None]:
        at, namespace = self._head(session_id), self._messages(session_id)
        [head] = yield from self._store.query([{"op": "get", **at}])
        # What is saved again can be told from what is new by the last messages.
        last = yield from self._store.first({"op": "list", "namespace": namespace, "order": "desc"}, len(messages) + 1)
        existing = yield from self._read(session_id, last[::-1])
        texts = [json.dumps(one.to_dict()) for one in filter_new_messages(existing, messages)]
        changed: Json = {"op": "put", **at, "value": {}}
        for i, group in enumerate(requests_of(texts, item_size, MESSAGES_AT_ONCE), 0 if head is None else head.version):

            def change(values: list[Json], version: int = i) -> list[Json]:
                # Who saves at the same time finds the head changed, and looks again.
                return [{**changed, "if_version": version}, *({"op": "put", "namespace": namespace, "value": value} for value in values)]

            yield from self._store.add_texts([(self._parts(session_id), text) for text in group], change)

    async def get_messages(self, session_id: str | None, *, state: Json | None = None, **kwargs: Any) -> list[Message]:
        """Returns the messages of a session, the oldest first."""
        messages = await self._store.client.arun(self._store.until_whole(lambda: self._all(session_id)))
        return [one for one in messages if not (self.skip_excluded and one.additional_properties.get("_excluded", False))]

    async def save_messages(self, session_id: str | None, messages: Sequence[Message], *, state: Json | None = None, **kwargs: Any) -> None:
        """Appends messages to a session, those that are not there yet."""
        if messages:
            steps = self._store.until_whole(lambda: self._store.until_unchanged(lambda: self._save(session_id, messages)))
            await self._store.client.arun(steps)

    async def delete(self, session_id: str | None) -> None:
        """Deletes the history of a session."""
        await self._store.client.arun(self._delete(session_id))

    def _delete(self, session_id: str | None) -> Steps[None]:
        deleted = ({"op": "delete_all", "namespace": namespace} for namespace in (self._messages(session_id), self._parts(session_id)))
        yield from self._store.together([{"op": "delete", **self._head(session_id)}, *deleted])


class CairnMemoryProvider(ContextProvider):
    """A context provider of the Agent Framework: tells a model what is remembered about what it is asked.

    Example:
        agent = Agent(client, context_providers=[CairnMemoryProvider(AsyncCairn("crn_…"), user_id="user-42")])
    """

    DEFAULT_SOURCE_ID = "cairn_memories"

    def __init__(
        self,
        cairn: Cairn | AsyncCairn,
        *,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        limit: int | None = None,
        source_id: str = DEFAULT_SOURCE_ID,
        prompt: str = PROMPT,
    ) -> None:
        """Makes a context provider.

        Args:
            cairn: Either client.
            user_id: Whose memories they are; they, `agent_id` or both are needed.
            agent_id: The agent whose memories they are.
            limit: How many a model is told at most, 10 unless given.
            source_id: Names the provider among others.
            prompt: Stands before them.

        Raises:
            TypeError: There is no owner, or one of the ids is None.
        """
        super().__init__(source_id)
        self._memories = Memories(cairn, user_id, agent_id)
        self._limit = limit
        self._prompt = prompt

    async def before_run(self, *, agent: Any, session: AgentSession, context: SessionContext, state: Json) -> None:
        query = "\n".join(one.text for one in context.input_messages if one.text.strip())
        if not query:
            return
        found = await self._memories.client.arun(self._memories.search(query, limit=self._limit))
        if found.data:
            # A memory is one line, so that none looks like another, or like the end of them.
            lines = [f"- {' '.join(one.content.split())}" for one in found.data]
            context.extend_messages(self, [Message("user", ["\n".join([self._prompt, *lines])])])
