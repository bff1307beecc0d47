"""The conversations of Pydantic AI as documents of Cairn.

[…, "conversations"]   conversation id -> its record, as text, with its revision, scope and the logs that its histories are in
[…, "entries"]         entry id        -> the log that it is in, and how many entries are before it there
[…, "log", log]        depth/entry id  -> an entry, as text
[…, "logs"]            log             -> how many conversations have a history there
[…, "parts"]           a piece of a record or an entry that is larger than a request

Forks share the log of the conversation that they come from, so a history is read in two requests. The entries of a log go with the last
conversation that has a history there.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any

from ._async import AsyncDocuments
from ._core import Steps
from ._stored import CHANGE_BYTES_MAX, OPERATIONS_MAX
from ._sync import Documents
from ._texts import TextStore
from ._types import Document

try:
    from pydantic import TypeAdapter
    from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord, ConversationStore
    from pydantic_ai.messages import ModelMessagesTypeAdapter
except ImportError as cause:
    raise ImportError("CairnConversationStore needs Pydantic AI: pip install 'cairn-client[pydantic-ai]'") from cause

Json = dict[str, Any]

RECORD = TypeAdapter(ConversationRecord)
DEPTH_DIGITS = 8
ABOVE = "0"
"""Sorts behind the slash of all keys of one depth."""


class CairnConversationStore(ConversationStore):
    """A conversation store of Pydantic AI.

    Example:
        store = CairnConversationStore(AsyncCairn("crn_…").documents)
        conversation = await store.load("conversation-1") or Conversation(conversation_id="conversation-1")
        await store.save(await agent.run("Hello", conversation=conversation))
    """

    def __init__(self, documents: Documents | AsyncDocuments, *, namespace: Sequence[str] = ("pydantic-ai",)) -> None:
        """Makes a store.

        Args:
            documents: `cairn.documents`, or those of a user, of either client.
            namespace: Under which the conversations are.
        """
        self._store = TextStore(documents, namespace)

    def _at(self, *kind: str) -> list[str]:
        return [*self._store.root, *kind]

    def _get(self, kind: str, keys: Sequence[str]) -> Steps[list[Document | None]]:
        return self._store.query([{"op": "get", "namespace": self._at(kind), "key": key} for key in keys])

    def _stored_record(self, conversation_id: str) -> Steps[ConversationRecord | None]:
        [found] = yield from self._get("conversations", [conversation_id])
        return None if found is None else (yield from self._record(found))

    def _record(self, document: Document) -> Steps[ConversationRecord]:
        text = yield from self._store.text_of(self._at("parts"), document.value)
        return RECORD.validate_json(text)

    def _stored_records(self, scope: str | None, limit: int | None) -> Steps[list[ConversationRecord]]:
        listing: Json = {"op": "list", "namespace": self._at("conversations"), "order": "desc", "order_by": "updated_at"}
        if scope is not None:
            listing["filter"] = {"scope": scope}
        found = (yield from self._store.everything(listing)) if limit is None else (yield from self._store.first(listing, limit))
        records: list[ConversationRecord] = []
        for document in found:
            records.append((yield from self._record(document)))
        return sorted(records, key=lambda record: record.updated_at, reverse=True)

    def _write(self, record: ConversationRecord, entries: Sequence[ConversationEntry], expected: str | None) -> Steps[None]:
        last = entries[0].parent_id if entries else record.head_id
        [found] = yield from self._get("conversations", [record.conversation_id])
        [parent] = (yield from self._get("entries", [last])) if last is not None else [None]
        is_missing = (last is not None and parent is None) or (bool(entries) and record.head_id not in {one.id for one in entries})
        if (None if found is None else found.value["revision"]) != expected or is_missing:
            raise ConversationConflict(record.conversation_id)
        log = secrets.token_hex(8) if parent is None else str(parent.value["log"])
        before: list[str] = [] if found is None else found.value["logs"]
        logs = before if log in before or (parent is None and not entries) else [*before, log]
        value: Json = {"revision": record.revision, "scope": record.scope, "logs": logs}
        parts, text = self._store.split(self._at("parts"), json.dumps(RECORD.dump_python(record, mode="json")))
        put = self._put("conversations", record.conversation_id, {**value, **text})
        last_changes: list[Json] = [{**put, "if_version": 0 if found is None else found.version}]
        if found is not None:
            last_changes += self._store.removals(self._at("parts"), found.value)
        if logs != before:
            last_changes.append((yield from self._counted(log, 1)))
        made = self._entries(log, 0 if parent is None else int(parent.value["depth"]), entries)
        ahead: list[Json] = []
        if len(made) + len(last_changes) > OPERATIONS_MAX or len(json.dumps([made, last_changes])) > CHANGE_BYTES_MAX:
            # Messages that do not fit into one transaction come before the record that leads to it.
            ahead, made = made, []
        yield from self._store.after_parts([*parts, *ahead], lambda: self._store.together([*made, *last_changes]))

    def _entries(self, log: str, depth: int, entries: Sequence[ConversationEntry]) -> list[Json]:
        operations: list[Json] = []
        for i, entry in enumerate(entries, depth + 1):
            [message] = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")
            parts, text = self._store.split(self._at("parts"), json.dumps(message))
            operations += parts
            operations.append(self._put("entries", entry.id, {"log": log, "depth": i}))
            at = {"op": "put", "namespace": self._at("log", log), "key": _key(i, entry.id)}
            operations.append({**at, "value": {"id": entry.id, "parent": entry.parent_id, **text}})
        return operations

    def _put(self, kind: str, key: str, value: Json) -> Json:
        return {"op": "put", "namespace": self._at(kind), "key": key, "value": value}

    def _counted(self, log: str, more: int) -> Steps[Json]:
        """Returns the operation that counts a conversation of a log; there is none of a log without one."""
        [found] = yield from self._get("logs", [log])
        at: Json = {"namespace": self._at("logs"), "key": log, "if_version": 0 if found is None else found.version}
        count = (0 if found is None else int(found.value["conversations"])) + more
        return {"op": "delete", **at} if count == 0 else {"op": "put", **at, "value": {"conversations": count}}

    def _delete(self, conversation_id: str, expected: str) -> Steps[None]:
        [found] = yield from self._get("conversations", [conversation_id])
        if found is None or found.value["revision"] != expected:
            raise ConversationConflict(conversation_id)
        counts: list[Json] = []
        for log in found.value["logs"]:
            counts.append((yield from self._counted(log, -1)))
        delete = {"op": "delete", "namespace": self._at("conversations"), "key": conversation_id, "if_version": found.version}
        yield from self._store.together([delete, *counts])
        yield from self._store.change(self._store.removals(self._at("parts"), found.value))
        for count in counts:
            if count["op"] == "delete":
                yield from self._delete_log(str(count["key"]))

    def _delete_log(self, log: str) -> Steps[None]:
        namespace = self._at("log", log)
        found = yield from self._store.everything({"op": "list", "namespace": namespace, "fields": ["id", "parts", "count"]})
        operations: list[Json] = []
        for document in found:
            operations.append({"op": "delete", "namespace": self._at("entries"), "key": document.value["id"]})
            operations += self._store.removals(self._at("parts"), document.value)
        yield from self._store.change([*operations, {"op": "delete_all", "namespace": namespace}])

    def _history(self, head_id: str, limit: int | None) -> Steps[list[ConversationEntry]]:
        [head] = yield from self._get("entries", [head_id])
        if head is None:
            raise LookupError(head_id)
        depth = int(head.value["depth"])
        listing: Json = {"op": "list", "namespace": self._at("log", head.value["log"]), "before": f"{depth:0{DEPTH_DIGITS}}{ABOVE}"}
        if limit is not None and limit < depth:
            listing["after"] = f"{depth - limit:0{DEPTH_DIGITS}}{ABOVE}"
        by_id: dict[str, Document] = {one.value["id"]: one for one in (yield from self._store.everything(listing))}
        entries: list[ConversationEntry] = []
        at: str | None = head_id
        while at is not None and (limit is None or len(entries) < limit):
            if at not in by_id:
                raise LookupError(at)
            entry = yield from self._entry(by_id[at])
            entries.append(entry)
            at = entry.parent_id
        return entries[::-1]

    def _stored_entry(self, entry_id: str) -> Steps[ConversationEntry]:
        [entry] = yield from self._history(entry_id, 1)
        return entry

    def _entry(self, document: Document) -> Steps[ConversationEntry]:
        text = yield from self._store.text_of(self._at("parts"), document.value)
        [message] = ModelMessagesTypeAdapter.validate_json(f"[{text}]")
        return ConversationEntry(id=document.value["id"], parent_id=document.value["parent"], message=message)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        return await self._store.client.arun(self._store.until_whole(lambda: self._stored_record(conversation_id)))

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        return await self._store.client.arun(self._store.until_whole(lambda: self._stored_records(scope, limit)))

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        await self._store.client.arun(self._store.until_unchanged(lambda: self._write(record, new_entries, expected_revision)))

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        await self._store.client.arun(self._store.until_unchanged(lambda: self._delete(conversation_id, expected_revision)))

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        return await self._store.client.arun(self._stored_entry(entry_id))

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        if head_id is None or limit == 0:
            return []
        return await self._store.client.arun(self._history(head_id, limit))


def _key(depth: int, entry_id: str) -> str:
    return f"{depth:0{DEPTH_DIGITS}}/{entry_id}"
