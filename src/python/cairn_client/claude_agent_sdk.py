"""The transcripts of the Claude Agent SDK as documents of Cairn: a session store with all optional methods.

[…, "entries", project, session]            rising key -> what one append brought, as lines of JSON
[…, "entries", project, session, subpath]   the same of a subagent
[…, "parts",   project, session, …]         a piece of an append that is larger than a request
[…, "sessions", project]                    session    -> the summary that the SDK folds; its updated_at is the session's mtime

An append becomes visible in one transaction, with its summary. An entry's uuid counts once when a transcript is loaded: that also covers
an append that the SDK sends again. No idempotency key is made of the contents: two equal entries without a uuid are two.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ._async import AsyncDocuments
from ._core import Steps
from ._sync import Documents
from ._texts import TextStore
from ._types import Document

try:
    from claude_agent_sdk import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStore,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
        fold_session_summary,
    )
except ImportError as cause:
    raise ImportError("CairnSessionStore needs the Claude Agent SDK: pip install 'cairn-client[claude-agent-sdk]'") from cause

Json = dict[str, Any]


class CairnSessionStore(SessionStore):
    """A session store of the Claude Agent SDK.

    Example:
        options = ClaudeAgentOptions(session_store=CairnSessionStore(AsyncCairn("crn_…").documents))
    """

    def __init__(self, documents: Documents | AsyncDocuments, *, namespace: Sequence[str] = ("claude-agent-sdk",)) -> None:
        """Makes a session store.

        Args:
            documents: `cairn.documents`, or those of a user, of either client.
            namespace: Under which the transcripts are.
        """
        self._store = TextStore(documents, namespace)

    def _at(self, kind: str, key: SessionKey) -> list[str]:
        subpath = key.get("subpath")
        return [*self._store.root, kind, key["project_key"], key["session_id"], *([subpath] if subpath else [])]

    def _append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> Steps[None]:
        ends: list[Json] = [] if key.get("subpath") else [(yield from self._summed_up(key, entries))]
        text = "\n".join(json.dumps(entry) for entry in entries)
        namespace = self._at("entries", key)
        yield from self._store.add_texts(
            [(self._at("parts", key), text)],
            lambda values: [*({"op": "put", "namespace": namespace, "value": value} for value in values), *ends],
        )

    def _summed_up(self, key: SessionKey, entries: list[SessionStoreEntry]) -> Steps[Json]:
        """Returns the operation that puts the summary with these entries."""
        at = {"namespace": [*self._store.root, "sessions", key["project_key"]], "key": key["session_id"]}
        [found] = yield from self._store.query([{"op": "get", **at}])
        folded = fold_session_summary(None if found is None else _summary(found), key, entries)
        version = 0 if found is None else found.version
        return {"op": "put", **at, "value": {"summary": json.dumps(folded["data"])}, "if_version": version}

    def _load(self, key: SessionKey) -> Steps[list[SessionStoreEntry] | None]:
        documents = yield from self._store.everything({"op": "list", "namespace": self._at("entries", key)})
        entries: list[SessionStoreEntry] = []
        seen: set[str] = set()
        for document in documents:
            for line in (yield from self._store.text_of(self._at("parts", key), document.value)).split("\n"):
                entry: SessionStoreEntry = json.loads(line)
                uuid = entry.get("uuid")
                if uuid is None or uuid not in seen:
                    entries.append(entry)
                if uuid is not None:
                    seen.add(uuid)
        return entries if documents else None

    def _sessions(self, project_key: str) -> Steps[list[Document]]:
        return self._store.everything({"op": "list", "namespace": [*self._store.root, "sessions", project_key]})

    def _heads(self, project_key: str) -> Steps[list[Any]]:
        return self._store.everything({"op": "list", "namespace": [*self._store.root, "sessions", project_key], "values": False})

    def _delete(self, key: SessionKey) -> Steps[None]:
        operations: list[Json] = [{"op": "delete_all", "namespace": self._at(kind, key)} for kind in ("entries", "parts")]
        if not key.get("subpath"):
            at = [*self._store.root, "sessions", key["project_key"]]
            operations.append({"op": "delete", "namespace": at, "key": key["session_id"]})
        yield from self._store.together(operations)

    def _subkeys(self, key: SessionListSubkeysKey) -> Steps[list[str]]:
        prefix = [*self._store.root, "entries", key["project_key"], key["session_id"]]
        found = yield from self._store.everything({"op": "namespaces", "prefix": prefix})
        # To the server a part that is a star is any.
        return [namespace[-1] for namespace in found if namespace[: len(prefix)] == prefix and len(namespace) > len(prefix)]

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        if entries:
            await self._store.client.arun(self._store.until_unchanged(lambda: self._append(key, entries)))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return await self._store.client.arun(self._store.until_whole(lambda: self._load(key)))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        heads = await self._store.client.arun(self._heads(project_key))
        return [{"session_id": head.key, "mtime": _mtime(head.updated_at)} for head in heads]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        return [_summary(document) for document in await self._store.client.arun(self._sessions(project_key))]

    async def delete(self, key: SessionKey) -> None:
        await self._store.client.arun(self._delete(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return await self._store.client.arun(self._subkeys(key))


def _summary(document: Document) -> SessionSummaryEntry:
    return {"session_id": document.key, "mtime": _mtime(document.updated_at), "data": json.loads(document.value["summary"])}


def _mtime(updated_at: str) -> int:
    return int(datetime.fromisoformat(updated_at).timestamp() * 1000)
