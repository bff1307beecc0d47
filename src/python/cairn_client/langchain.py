"""A message history of LangChain as documents of Cairn: […, session id] has the log of its messages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ._async import AsyncDocuments
from ._sync import Documents
from ._texts import TextLog, TextStore

try:
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
except ImportError as cause:
    raise ImportError("CairnChatMessageHistory needs LangChain: pip install 'cairn-client[langchain]'") from cause


class CairnChatMessageHistory(BaseChatMessageHistory):
    """A message history of LangChain, blocking and awaited.

    Example:
        history = lambda session_id: CairnChatMessageHistory(Cairn("crn_…").documents, session_id)
        RunnableWithMessageHistory(model, history).invoke("Hello", {"configurable": {"session_id": "conversation-1"}})
    """

    def __init__(self, documents: Documents | AsyncDocuments, session_id: str, *, namespace: Sequence[str] = ("langchain-python",)) -> None:
        """Makes a history, which need not exist yet.

        Args:
            documents: `cairn.documents`, or those of a user, of either client.
            session_id: Names the conversation.
            namespace: Under which the histories are.
        """
        super().__init__()
        self.session_id = session_id
        store = TextStore(documents, namespace)
        self._client = store.client
        self._log = TextLog(store, [*store.root, session_id])

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """The messages, the oldest first, which are read each time."""
        return messages_of(self._client.run(self._log.read()))

    async def aget_messages(self) -> list[BaseMessage]:
        """Returns the messages, the oldest first."""
        return messages_of(await self._client.arun(self._log.read()))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Appends messages.

        Raises:
            TypeError: One has a value that is no JSON, or is of a class of your own, which LangChain could not read.
        """
        self._client.run(self._log.add(texts_of(messages)))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Appends messages; raises what `add_messages` raises."""
        await self._client.arun(self._log.add(texts_of(messages)))

    def clear(self) -> None:
        """Deletes the messages."""
        self._client.run(self._log.clear())

    async def aclear(self) -> None:
        """Deletes the messages."""
        await self._client.arun(self._log.clear())


def messages_of(texts: Sequence[str]) -> list[BaseMessage]:
    return messages_from_dict([json.loads(text) for text in texts])


def texts_of(messages: Sequence[BaseMessage]) -> list[str]:
    texts: list[str] = []
    for message in messages:
        text = json.dumps(message_to_dict(message))
        try:
            [read] = messages_of([text])
        except ValueError:
            read = None
        if type(read) is not type(message):
            raise TypeError(f"CairnChatMessageHistory keeps the messages of LangChain, and no {type(message).__name__}.")
        texts.append(text)
    return texts
