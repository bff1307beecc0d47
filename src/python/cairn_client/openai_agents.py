"""A session of the OpenAI Agents SDK as documents of Cairn: […, session id] has the log of its items."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ._async import AsyncDocuments
from ._sync import Documents
from ._texts import TextLog, TextStore

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
        store = TextStore(documents, namespace)
        self._client = store.client
        self._log = TextLog(store, [*store.root, session_id])

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        count = resolve_session_limit(limit, self.session_settings)
        # Below zero it is none, as it is to SQLite.
        texts = await self._client.arun(self._log.read(None if count is not None and count < 0 else count))
        return [json.loads(text) for text in texts]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._client.arun(self._log.add([json.dumps(item) for item in items]))

    async def pop_item(self) -> TResponseInputItem | None:
        text = await self._client.arun(self._log.pop())
        item: TResponseInputItem | None = None if text is None else json.loads(text)
        return item

    async def clear_session(self) -> None:
        await self._client.arun(self._log.clear())
