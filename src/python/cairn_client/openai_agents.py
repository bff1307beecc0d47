"""A session of the OpenAI Agents SDK as documents of Cairn.

[…, session id, "items"]   rising key -> an item, as text
[…, session id, "parts"]   a piece of an item that is larger than a request
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ._async import AsyncDocuments
from ._core import Steps
from ._sync import Documents
from ._texts import TextStore
from ._types import Document

try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.memory.session_settings import resolve_session_limit
except ImportError as cause:
    raise ImportError("CairnSession needs the OpenAI Agents SDK: pip install 'cairn-client[openai-agents]'") from cause


class CairnSession(SessionABC):
    """A session of the OpenAI Agents SDK.

    Example:
        result = await Runner.run(agent, "Hello", session=CairnSession(AsyncCairn("crn_…").documents, "conversation-1"))
    """

    def __init__(
        self,
        documents: Documents | AsyncDocuments,
        session_id: str,
        *,
        namespace: Sequence[str] = ("openai-agents-python",),
        session_settings: SessionSettings | None = None,
    ) -> None:
        """Makes a session, which need not exist yet.

        Args:
            documents: `cairn.documents`, or those of a user, of either client.
            session_id: Names the conversation.
            namespace: Under which the sessions are.
            session_settings: The SDK's own, such as a `limit` of items that are read.
        """
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._store = TextStore(documents, namespace)
        self._items = [*self._store.root, session_id, "items"]
        self._parts = [*self._store.root, session_id, "parts"]

    def _add(self, items: Sequence[TResponseInputItem]) -> Steps[None]:
        operations: list[dict[str, Any]] = []
        for item in items:
            parts, value = self._store.split(self._parts, json.dumps(item))
            operations += [*parts, {"op": "put", "namespace": self._items, "value": value}]
        yield from self._store.change(operations)

    def _get(self, count: int | None) -> Steps[list[TResponseInputItem]]:
        found: list[Document] = []
        if count is None:
            found = yield from self._store.everything({"op": "list", "namespace": self._items})
        else:
            found = (yield from self._store.first({"op": "list", "namespace": self._items, "order": "desc"}, count))[::-1]
        items: list[TResponseInputItem] = []
        for document in found:
            items.append(json.loads((yield from self._store.text_of(self._parts, document.value))))
        return items

    def _pop(self) -> Steps[TResponseInputItem | None]:
        [document] = yield from self._store.together([{"op": "pop", "namespace": self._items}])
        if document is None:
            return None
        text = yield from self._store.text_of(self._parts, document.value)
        yield from self._store.change(self._store.removals(self._parts, document.value))
        item: TResponseInputItem = json.loads(text)
        return item

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        count = resolve_session_limit(limit, self.session_settings)
        # Below zero it is none, as it is to SQLite.
        return await self._store.client.arun(self._get(None if count is not None and count < 0 else count))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._store.client.arun(self._add(items))

    async def pop_item(self) -> TResponseInputItem | None:
        return await self._store.client.arun(self._pop())

    async def clear_session(self) -> None:
        deletions = [{"op": "delete_all", "namespace": namespace} for namespace in (self._items, self._parts)]
        await self._store.client.arun(self._store.together(deletions))
