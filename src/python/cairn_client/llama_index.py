"""LlamaIndex on Cairn: a chat store as documents, and a memory block.

[…, "chats"]           key -> that there is a chat, though it may have no message
[…, "messages", key]   rising key -> a message, as text
[…, "parts", key]      a piece of a message that is larger than a request
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from ._async import AsyncDocuments
from ._core import Steps
from ._stored import OPERATIONS_MAX, requests_of
from ._sync import Documents
from ._texts import PLACE, TextStore, item_size
from ._types import Document

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.storage.chat_store import BaseChatStore

    from ._llama_index_memory import CairnMemoryBlock
except ImportError as cause:
    raise ImportError("CairnChatStore needs LlamaIndex: pip install 'cairn-client[llama-index]'") from cause

__all__ = ["CairnChatStore", "CairnMemoryBlock"]

Json = dict[str, Any]
T = TypeVar("T")

MESSAGES_AT_ONCE = OPERATIONS_MAX - 3
"""Messages of one transaction, with the chat, the deletion of the old and the end of their parts."""


class CairnChatStore(BaseChatStore):
    """A chat store of LlamaIndex, blocking and awaited.

    Example:
        store = CairnChatStore(Cairn("crn_…").documents)
        memory = ChatMemoryBuffer.from_defaults(chat_store=store, chat_store_key="conversation-1")
    """

    _store: TextStore = PrivateAttr()

    def __init__(self, documents: Documents | AsyncDocuments, *, namespace: Sequence[str] = ("llama-index",)) -> None:
        """Makes a chat store.

        Args:
            documents: `cairn.documents`, or those of a user, of either client.
            namespace: Under which the chats are.
        """
        super().__init__()
        self._store = TextStore(documents, namespace)

    @classmethod
    def class_name(cls) -> str:
        return "CairnChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Puts messages in the place of those of a key.

        Up to 97, of 900 kB together, are one transaction; of more, the first come with the deletion of the old and the others follow.

        Raises:
            TypeError: One has a value that is no JSON, or is of a class of your own, which LlamaIndex could not read.
        """
        self._run(self._set(key, messages))

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Puts messages in the place of those of a key; as `set_messages`."""
        await self._arun(self._set(key, messages))

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Returns the messages of a key, the oldest first; none where there is no such key."""
        return self._run(self._read(key))

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """Returns the messages of a key, the oldest first; none where there is no such key."""
        return await self._arun(self._read(key))

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Appends a message to those of a key; raises what `set_messages` raises."""
        self._run(self._put(key, [message]))

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        """Appends a message to those of a key; raises what `set_messages` raises."""
        await self._arun(self._put(key, [message]))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Deletes a key with its messages and returns them, or None where there is no such key."""
        return self._run(self._delete(key))

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """Deletes a key with its messages and returns them, or None where there is no such key."""
        return await self._arun(self._delete(key))

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Deletes the message at an index, from the end if that is negative, and returns it, or None where there is none."""
        return self._run(self._take(key, idx))

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Deletes the message at an index; as `delete_message`."""
        return await self._arun(self._take(key, idx))

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Deletes the last message of a key and returns it, or None where there is none."""
        return self._run(self._take(key, -1))

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        """Deletes the last message of a key and returns it, or None where there is none."""
        return await self._arun(self._take(key, -1))

    def get_keys(self) -> list[str]:
        """Returns the keys, also of chats without a message, in the order in which they came."""
        return self._run(self._keys())

    async def aget_keys(self) -> list[str]:
        """Returns the keys, also of chats without a message, in the order in which they came."""
        return await self._arun(self._keys())

    def _run(self, steps: Steps[T]) -> T:
        return self._store.client.run(steps)

    async def _arun(self, steps: Steps[T]) -> T:
        return await self._store.client.arun(steps)

    def _parts(self, key: str) -> list[str]:
        return [*self._store.root, "parts", key]

    def _messages(self, key: str) -> list[str]:
        return [*self._store.root, "messages", key]

    def _chat(self, key: str) -> Json:
        return {"namespace": [*self._store.root, "chats"], "key": key}

    def _keys(self) -> Steps[list[str]]:
        # A chat is never put again, so that the order of changes is that in which they came.
        listing = {"op": "list", "namespace": [*self._store.root, "chats"], "order_by": "updated_at", "order": "asc", "values": False}
        return [document.key for document in (yield from self._store.everything(listing))]

    def _put(self, key: str, messages: Sequence[ChatMessage], *before: Json) -> Steps[None]:
        texts = [text_of(message) for message in messages]
        first, *more = [*requests_of(texts, item_size, MESSAGES_AT_ONCE)] or [[]]
        yield from self._add(key, first, before)
        for group in more:
            yield from self._add(key, group, ())

    def _add(self, key: str, texts: Sequence[str], before: Sequence[Json]) -> Steps[None]:
        chat: Json = {"op": "put", **self._chat(key), "value": {}, "if_exists": "keep"}

        def change(values: list[Json]) -> list[Json]:
            return [chat, *before, *({"op": "put", "namespace": self._messages(key), "value": value} for value in values)]

        of_parts = [(self._parts(key), text) for text in texts]
        yield from self._store.until_unchanged(partial(self._store.add_texts, of_parts, change))

    def _set(self, key: str, messages: Sequence[ChatMessage]) -> Steps[None]:
        yield from self._put(key, messages, {"op": "delete_all", "namespace": self._messages(key)})
        yield from self._store.swept(self._parts(key), lambda: self._places(key))

    def _read(self, key: str) -> Steps[list[ChatMessage]]:
        return (yield from self._store.until_whole(lambda: self._all(key)))

    def _all(self, key: str) -> Steps[list[ChatMessage]]:
        messages: list[ChatMessage] = []
        found: list[Document] = yield from self._store.everything({"op": "list", "namespace": self._messages(key)})
        for document in found:
            messages.append(message_of((yield from self._store.text_of(self._parts(key), document.value))))
        return messages

    def _delete(self, key: str) -> Steps[list[ChatMessage] | None]:
        [chat] = yield from self._store.query([{"op": "get", **self._chat(key)}])
        if chat is None:
            return None
        messages = yield from self._read(key)
        deleted = ({"op": "delete_all", "namespace": namespace} for namespace in (self._messages(key), self._parts(key)))
        yield from self._store.together([{"op": "delete", **self._chat(key)}, *deleted])
        return messages

    def _take(self, key: str, idx: int) -> Steps[ChatMessage | None]:
        return (yield from self._store.until_unchanged(lambda: self._take_at(key, idx)))

    def _take_at(self, key: str, idx: int) -> Steps[ChatMessage | None]:
        nth = idx + 1 if idx >= 0 else -idx
        listing: Json = {"op": "list", "namespace": self._messages(key), "fields": PLACE, "order": "asc" if idx >= 0 else "desc"}
        found = yield from self._store.first(listing, nth)
        if len(found) < nth:
            return None
        at: Json = {"namespace": self._messages(key), "key": found[-1].key}
        read = yield from self._store.get_text(at, self._parts(key))
        # Another may have taken it, or put it in the place of all: then there is another at this index.
        delete: Json = {"op": "delete", **at, "if_version": found[-1].version}
        yield from self._store.change([delete, *self._store.removals(self._parts(key), found[-1].value)])
        return None if read is None else message_of(read[1])

    def _places(self, key: str) -> Steps[list[Document]]:
        return (yield from self._store.everything({"op": "list", "namespace": self._messages(key), "fields": PLACE}))


def message_of(text: str) -> ChatMessage:
    return ChatMessage.model_validate(json.loads(text))


def text_of(message: ChatMessage) -> str:
    """Returns a message as text, with models as their members and bytes in base64, as LlamaIndex itself writes them."""
    problem = f"CairnChatStore keeps the messages of LlamaIndex as JSON, which this {type(message).__name__} is not"
    if type(message) is not ChatMessage:
        raise TypeError(f"{problem}.")
    try:
        value = message.model_dump(mode="json")
        text = json.dumps(value)
        same = json.dumps(message_of(text).model_dump(mode="json")) == text
    except (TypeError, ValueError, AttributeError) as cause:
        raise TypeError(f"{problem}: {cause}") from cause
    if not same:
        raise TypeError(f"{problem}: it would be read as another.")
    return text
