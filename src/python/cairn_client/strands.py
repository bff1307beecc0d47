"""Strands Agents on Cairn: `CairnStorage` keeps bytes under keys, such as the snapshots of sessions, and `CairnMemoryStore` memories.

[…, "values"]       key -> its bytes, as text where they are UTF-8
[…, "parts", key]   a piece of a value that is larger than a request
"""

from __future__ import annotations

import base64
import builtins
import copy
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from ._async import AsyncCairn, AsyncDocuments
from ._core import Steps
from ._given import OMIT, Omit
from ._memories import Memories
from ._sync import Cairn, Documents
from ._texts import TextStore
from .errors import CairnError

try:
    from strands.memory import MemoryEntry, MemoryStore, SearchOptions
    from strands.storage import InMemoryStorage
    from strands.storage.search.keyword import KeywordSearchStrategy
    from strands.storage.storage import StorageSearchResult
    from strands.types.exceptions import StorageError
except ImportError as cause:
    raise ImportError("CairnStorage needs Strands Agents: pip install 'cairn-client[strands]'") from cause

Json = dict[str, Any]

NAMESPACED: object = vars(InMemoryStorage().namespace("a")).get("_namespaced")
"""Marks a storage that has a namespace, so that the SDK gives it no second one."""
BEHIND = "\U0010ffff"
"""Sorts behind all that a key continues with."""


class CairnStorage:
    """A storage of Strands Agents.

    Example:
        manager = SnapshotSessionManager("session-1", storage=CairnStorage(Cairn("crn_…").documents))
        agent = Agent(session_manager=manager)
    """

    def __init__(self, documents: Documents | AsyncDocuments, *, namespace: Sequence[str] = ("strands",)) -> None:
        """Makes a storage.

        Args:
            documents: `cairn.documents`, or those of a user, of either client.
            namespace: Under which the values are. A key and its namespace have 900 bytes together at
                most, 870 that of a value which is larger than a request.
        """
        self._store = TextStore(documents, namespace)
        self._values = [*self._store.root, "values"]
        self._prefix = ""

    def namespace(self, prefix: str) -> CairnStorage:
        """Returns the part of this storage whose keys begin with a prefix, and shows them without it."""
        part = normal_prefix(prefix).rstrip("/")
        scoped = copy.copy(self)
        scoped._prefix = f"{self._prefix}{part}/" if part else self._prefix
        scoped.__dict__["_namespaced"] = NAMESPACED
        return scoped

    async def write(self, key: str, data: bytes) -> None:
        """Keeps bytes under a key, in the place of what was there.

        Raises:
            StorageError: The key is no key, or Cairn refused it or could not be reached.
        """
        at = self._at(key)
        with storage_errors(key):
            await self._store.client.arun(self._write(at, bytes(data)))

    async def read(self, key: str) -> bytes | None:
        """Returns the bytes of a key, or None.

        Raises:
            StorageError: The key is no key, or Cairn could not be reached.
        """
        at = self._at(key)
        with storage_errors(key):
            return await self._store.client.arun(self._read(at))

    async def delete(self, key: str) -> None:
        """Deletes what a key has, if there is anything.

        Raises:
            StorageError: The key is no key, or Cairn could not be reached.
        """
        at = self._at(key)
        with storage_errors(key):
            await self._store.client.arun(self._store.delete_text(at, self._parts(at)))

    async def list(self, query: str = "") -> builtins.list[str]:
        """Returns the keys that begin with a text, in their order.

        Raises:
            StorageError: The text is no beginning of a key, or Cairn could not be reached.
        """
        prefix = f"{self._prefix}{normal_prefix(query)}"
        with storage_errors(query):
            keys = await self._store.client.arun(self._keys(prefix))
        return sorted(key[len(self._prefix) :] for key in keys)

    async def search(self, query: str) -> builtins.list[StorageSearchResult]:
        """Returns what shares words with a query, the best first, as the SDK's own storages do: all values are read for it."""
        return await KeywordSearchStrategy().search(self, query)

    def _at(self, key: str) -> Json:
        return {"namespace": self._values, "key": f"{self._prefix}{normal_key(key)}"}

    def _parts(self, at: Json) -> builtins.list[str]:
        return [*self._store.root, "parts", at["key"]]

    def _write(self, at: Json, data: bytes) -> Steps[None]:
        try:
            text, kind = data.decode(), "text"
        except UnicodeDecodeError:
            text, kind = base64.b64encode(data).decode(), "base64"
        yield from self._store.put_text(at, self._parts(at), text, kind=kind)

    def _read(self, at: Json) -> Steps[bytes | None]:
        found = yield from self._store.get_text(at, self._parts(at))
        if found is None:
            return None
        document, text = found
        return base64.b64decode(text) if document.value["kind"] == "base64" else text.encode()

    def _keys(self, prefix: str) -> Steps[builtins.list[str]]:
        listing: Json = {"op": "list", "namespace": self._values, "values": False}
        if not prefix:
            return [head.key for head in (yield from self._store.everything(listing))]
        [exact] = yield from self._store.query([{"op": "get", "namespace": self._values, "key": prefix}])
        found = yield from self._store.everything({**listing, "after": prefix, "before": f"{prefix}{BEHIND}"})
        return [*([] if exact is None else [prefix]), *(head.key for head in found if head.key.startswith(prefix))]


class CairnMemoryStore(MemoryStore):
    """A memory store of Strands Agents: memories of a user or an agent, found by meaning and by words.

    Example:
        agent = Agent(memory_manager=MemoryManager(stores=[CairnMemoryStore(Cairn("crn_…"), user_id="user-42")]))
    """

    def __init__(
        self,
        cairn: Cairn | AsyncCairn,
        *,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        name: str = "cairn",
        description: str | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: Any = None,
    ) -> None:
        """Makes a memory store.

        Args:
            cairn: Either client.
            user_id: Whose memories they are; they, `agent_id` or both are needed.
            agent_id: The agent whose memories they are.
            name: Names the store among others.
            description: Tells the model what is in it.
            max_search_results: How many a search finds at most, 10 unless given.
            writable: Whether the SDK may add memories.
            extraction: As the SDK has it.

        Raises:
            TypeError: There is no owner, or one of the ids is None.
        """
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction
        self._memories = Memories(cairn, user_id, agent_id)

    async def search(self, query: str, options: SearchOptions | None = None) -> builtins.list[MemoryEntry]:
        """Returns the memories that are about a query, the best first, with `id`, `score` and `type` in their metadata."""
        limit = (options or {}).get("max_search_results", self.max_search_results)
        if not query.strip() or limit == 0:
            return []
        found = await self._memories.client.arun(self._memories.search(query, limit=limit))
        return [MemoryEntry(content=one.content, metadata={"id": one.id, "score": one.score, "type": one.type}) for one in found.data]

    async def add(self, content: str, metadata: Json | None = None) -> str:
        """Adds a memory and returns its id; one that says the same as another is that one."""
        added = await self._memories.client.arun(self._memories.add(content, metadata=OMIT if metadata is None else metadata))
        return added.id


@contextmanager
def storage_errors(key: str) -> Generator[None]:
    """Turns what the client raises into the error of the SDK."""
    try:
        yield
    except (CairnError, ValueError) as cause:
        raise StorageError(f"{key!r}: {cause}") from cause


def normal_key(key: str) -> str:
    """Returns a key as the SDK's own storages have it."""
    normal = normal_prefix(key).rstrip("/")
    if not normal:
        raise StorageError("Storage key must not be empty")
    return normal


def normal_prefix(prefix: str) -> str:
    if "\\" in prefix:
        raise StorageError(f"Invalid storage key '{prefix}': backslashes are not allowed")
    normal = re.sub(r"/+", "/", prefix).lstrip("/")
    if ".." in normal.split("/"):
        raise StorageError(f"Invalid storage key '{prefix}': '..' path segments are not allowed")
    return normal
