"""LangGraph's checkpoints as documents of Cairn: one class, blocking and awaiting, with all extended capabilities.

[…, "threads", thread, "ns:" + namespace]                 checkpoint id   -> checkpoint without values, metadata, parent, versions
[…, "values",  thread, "ns:" + namespace]                 channel/version -> a value, once for all checkpoints that have it
[…, "writes",  thread, "ns:" + namespace, checkpoint id]  task/index      -> what a task wrote

A value that is larger than a request has its parts below its namespace, in "parts". It is stored before what refers to it.
"""

from __future__ import annotations

import random
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, cast

from ._async import AsyncDocuments
from ._core import Emit, Steps
from ._stored import Store
from ._sync import Documents
from ._types import Document

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_id,
        get_checkpoint_metadata,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from ._langgraph_store import CairnStore
except ImportError as cause:
    raise ImportError("CairnSaver and CairnStore need LangGraph: pip install 'cairn-client[langgraph]'") from cause

__all__ = ["CairnSaver", "CairnStore"]

Json = dict[str, Any]

PART_CHARACTERS = 800_000
"""Base64 of one document: it fits into a request of 1 MiB."""
LISTED_TOGETHER = 20
WRITES_TOGETHER = 1_000
INDEX_OFFSET = 1_000
"""Indexes of special writes are negative, and keys are sorted as texts."""


class CairnSaver(BaseCheckpointSaver[str]):
    """A checkpointer for both colours of LangGraph.

    Example:
        graph = builder.compile(checkpointer=CairnSaver(Cairn("crn_…").documents))
    """

    def __init__(
        self,
        documents: Documents | AsyncDocuments,
        *,
        namespace: Sequence[str] = ("langgraph-python",),
        serde: SerializerProtocol | None = None,
    ) -> None:
        """Makes a checkpointer.

        Args:
            documents: `cairn.documents`, or those of a user, of either client.
            namespace: Under which the checkpoints are.
            serde: Writes values as bytes; LangGraph's own unless given.
        """
        super().__init__(serde=serde)
        self._store = Store(documents, namespace)

    # Places and values

    def _at(self, kind: str, thread: str, ns: str, *more: str) -> list[str]:
        return [*self._store.root, kind, thread, f"ns:{ns}", *more]

    def _place(self, document: Document) -> tuple[str, str]:
        thread, ns = document.namespace[len(self._store.root) + 1 :][:2]
        return thread, ns.removeprefix("ns:")

    def _pack(self, value: Any) -> Json:
        kind, data = self.serde.dumps_typed(value)
        return {"type": kind, "base64": b64encode(data).decode()}

    def _unpack(self, packed: Json) -> Any:
        return self.serde.loads_typed((packed["type"], b64decode(packed["base64"])))

    def _puts(self, namespace: list[str], key: str, value: Json, packed: str, more: Json | None = None) -> list[Json]:
        """Returns the operations that put a document, of which one member may be larger than a request."""
        text = value[packed]["base64"]
        head: Json = {"op": "put", "namespace": namespace, "key": key, "value": value, **(more or {})}
        if len(text) <= PART_CHARACTERS:
            return [head]
        parts = [text[at : at + PART_CHARACTERS] for at in range(0, len(text), PART_CHARACTERS)]
        name = f"{random.getrandbits(64):016x}"
        head["value"] = {**value, packed: {"type": value[packed]["type"], "base64": "", "parts": len(parts), "name": name}}
        puts = [_put([*namespace, "parts"], f"{key}/{name}/{i:06}", {"base64": part}) for i, part in enumerate(parts)]
        return [*puts, head]

    def _join(self, found: Iterable[Document | None], packed: str) -> Steps[None]:
        """Puts the parts of large values together again."""
        for document in found:
            if document is None or "parts" not in document.value[packed]:
                continue
            value = document.value[packed]
            at = [*document.namespace, "parts"]
            reads = [{"op": "get", "namespace": at, "key": f"{document.key}/{value['name']}/{i:06}"} for i in range(value["parts"])]
            parts = yield from self._store.query(reads)
            value["base64"] = "".join(part.value["base64"] for part in parts)

    # Operations without colour

    def _get(self, config: RunnableConfig) -> Steps[CheckpointTuple | None]:
        thread, ns = _thread(config)
        namespace = self._at("threads", thread, ns)
        if id_ := get_checkpoint_id(config):
            found = yield from self._store.query([{"op": "get", "namespace": namespace, "key": id_}])
        else:
            [page] = yield from self._store.query([{"op": "list", "namespace": namespace, "order": "desc", "limit": 1}])
            found = page.data
        tuples = yield from self._tuples([document for document in found if document is not None])
        return tuples[0] if tuples else None

    def _list(self, config: RunnableConfig | None, wanted: dict[str, Any], before: RunnableConfig | None, limit: int | None) -> Steps[None]:
        given = (config or {}).get("configurable", {})
        thread, ns, id_ = given.get("thread_id"), given.get("checkpoint_ns"), given.get("checkpoint_id")
        end = get_checkpoint_id(before) if before else None
        operation = self._listing(thread, ns, end, limit)
        if filters := {f"filters.{name}": value for name, value in wanted.items() if _is_filter(name, value)}:
            operation["filter"] = filters
        left = limit
        while left is None or left > 0:
            [page] = yield from self._store.query([operation])
            found = [one for one in page.data if self._is_meant(one, ns, id_, end)]
            tuples = yield from self._tuples(found)
            tuples = [one for one in tuples if all(one.metadata.get(name) == value for name, value in wanted.items())][:left]
            left = None if left is None else left - len(tuples)
            yield Emit(tuples)
            if page.next_cursor is None:
                return
            operation["cursor"] = page.next_cursor

    def _listing(self, thread: Any, ns: str | None, end: str | None, limit: int | None) -> Json:
        operation: Json = {"op": "list", "order": "desc", "limit": max(1, min(LISTED_TOGETHER, limit or LISTED_TOGETHER))}
        if thread is None or ns is None:
            under = [] if thread is None else [str(thread)]
            return {**operation, "namespace": [*self._store.root, "threads", *under], "deep": True}
        return {**operation, "namespace": self._at("threads", str(thread), ns), **({"before": end} if end else {})}

    def _is_meant(self, document: Document, ns: str | None, id_: str | None, end: str | None) -> bool:
        is_there = ns is None or self._place(document)[1] == ns
        return is_there and id_ in (None, document.key) and (end is None or document.key < end)

    def _tuples(self, found: Sequence[Document]) -> Steps[list[CheckpointTuple]]:
        """Reads the values and writes of checkpoints, in as few requests as they fit into."""
        owners: list[tuple[int, str]] = []
        reads: list[Json] = []
        for i, document in enumerate(found):
            values = self._at("values", *self._place(document))
            for channel, version in document.value["versions"].items():
                owners.append((i, channel))
                reads.append({"op": "get", "namespace": values, "key": f"{channel}/{version}"})
        lists = [self._at("writes", *self._place(document), document.key) for document in found]
        reads += [{"op": "list", "namespace": namespace, "limit": WRITES_TOGETHER} for namespace in lists]
        if not reads:
            return []
        results = yield from self._store.query(reads)
        blobs, pages = results[: len(owners)], results[len(owners) :]
        yield from self._join(blobs, "value")
        channels: list[Json] = [{} for _ in found]
        for (i, channel), blob in zip(owners, blobs, strict=True):
            if blob is not None:
                channels[i][channel] = self._unpack(blob.value["value"])
        tuples: list[CheckpointTuple] = []
        for i, document in enumerate(found):
            rows = pages[i].data
            if pages[i].next_cursor is not None:
                rows = yield from self._store.everything({"op": "list", "namespace": lists[i]})
            yield from self._join(rows, "value")
            tuples.append(self._tuple(document, channels[i], [row.value for row in rows]))
        return tuples

    def _tuple(self, document: Document, values: Json, rows: list[Json]) -> CheckpointTuple:
        stored = document.value
        thread, ns = self._place(document)
        writes = sorted(rows, key=lambda row: (row["path"], row["task"], row["index"]))
        parent = stored.get("parent")
        return CheckpointTuple(
            config=_config(thread, ns, document.key),
            checkpoint=cast("Checkpoint", {**self._unpack(stored["checkpoint"]), "channel_values": values}),
            metadata=self._unpack(stored["metadata"]),
            parent_config=_config(thread, ns, parent) if parent else None,
            pending_writes=[(row["task"], row["channel"], self._unpack(row["value"])) for row in writes],
        )

    def _put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, versions: ChannelVersions
    ) -> Steps[RunnableConfig]:
        thread, ns = _thread(config)
        rest: Json = dict(checkpoint)
        values: Json = rest.pop("channel_values")
        merged = get_checkpoint_metadata(config, metadata)
        stored: Json = {
            "checkpoint": self._pack(rest),
            "metadata": self._pack(merged),
            "versions": checkpoint["channel_versions"],
            "filters": {name: value for name, value in merged.items() if _is_filter(name, value)},
        }
        if parent := get_checkpoint_id(config):
            stored["parent"] = parent
        at = self._at("values", thread, ns)
        operations: list[Json] = []
        for channel, version in versions.items():
            if channel in values:
                operations += self._puts(at, f"{channel}/{version}", {"value": self._pack(values[channel])}, "value")
        # The checkpoint comes last: it is not there before its values are.
        operations.append(_put(self._at("threads", thread, ns), checkpoint["id"], stored))
        yield from self._store.change(operations)
        return _config(thread, ns, checkpoint["id"])

    def _put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str, path: str) -> Steps[None]:
        thread, ns = _thread(config)
        namespace = self._at("writes", thread, ns, get_checkpoint_id(config) or "")
        operations: list[Json] = []
        for position, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, position)
            stored = {"task": task, "path": path, "index": index, "channel": channel, "value": self._pack(value)}
            # Writes of a task from before stay, but for interrupts and errors.
            keep: Json = {"if_exists": "keep"} if index >= 0 else {}
            operations += self._puts(namespace, f"{task}/{index + INDEX_OFFSET:08}", stored, "value", keep)
        yield from self._store.change(operations)

    def _delete_thread(self, thread: str) -> Steps[None]:
        kinds = ("threads", "writes", "values")
        yield from self._store.change({"op": "delete_all", "namespace": [*self._store.root, kind, thread]} for kind in kinds)

    def _delete_checkpoints(self, found: Sequence[Document]) -> Steps[None]:
        operations: list[Json] = []
        for one in found:
            operations.append({"op": "delete", "namespace": one.namespace, "key": one.key})
            operations.append({"op": "delete_all", "namespace": self._at("writes", *self._place(one), one.key)})
        yield from self._store.change(operations)

    def _delete_for_runs(self, run_ids: Sequence[str]) -> Steps[None]:
        for at in range(0, len(run_ids), 100):
            runs = {"filters.run_id": {"$in": list(run_ids[at : at + 100])}}
            listing = {"op": "list", "namespace": [*self._store.root, "threads"], "deep": True, "filter": runs, "values": False}
            yield from self._delete_checkpoints((yield from self._store.everything(listing)))

    def _copy_thread(self, source: str, target: str) -> Steps[None]:
        # Checkpoints come last: they are not there before their values are.
        for kind in ("values", "writes", "threads"):
            yield from self._store.copy_all([*self._store.root, kind, source], [*self._store.root, kind, target])

    def _prune(self, threads: Sequence[str], strategy: str) -> Steps[None]:
        for thread in threads:
            if strategy == "delete":
                yield from self._delete_thread(thread)
            elif strategy == "keep_latest":
                yield from self._keep_latest(thread)
            else:
                raise ValueError(f'strategy must be "keep_latest" or "delete"; got {strategy!r}.')

    def _keep_latest(self, thread: str) -> Steps[None]:
        found = yield from self._store.everything({"op": "list", "namespace": [*self._store.root, "threads", thread], "deep": True})
        kept: dict[str, list[Document]] = {}
        for ns in {self._place(one)[1] for one in found}:
            kept[ns] = self._chain([one for one in found if self._place(one)[1] == ns])
        kept_keys = {(ns, one.key) for ns, some in kept.items() for one in some}
        yield from self._delete_checkpoints([one for one in found if (self._place(one)[1], one.key) not in kept_keys])
        needed = {(ns, f"{c}/{v}") for ns, some in kept.items() for one in some for c, v in one.value["versions"].items()}
        listing = {"op": "list", "namespace": [*self._store.root, "values", thread], "deep": True, "values": False}
        values = yield from self._store.everything(listing)
        yield from self._store.change(
            {"op": "delete", "namespace": one.namespace, "key": one.key}
            for one in values
            if (self._place(one)[1], _value_key(one)) not in needed
        )

    def _chain(self, found: list[Document]) -> list[Document]:
        """Returns the newest of a namespace's checkpoints, with those before it from which its channels are rebuilt."""
        by_key = {one.key: one for one in found}
        newest = by_key[max(by_key)]
        chain = [newest]
        counters: Json = self._unpack(newest.value["metadata"]).get("counters_since_delta_snapshot") or {}
        if not counters:
            return chain
        # All that lead to it: where the last snapshot of each channel is, only LangGraph can say.
        while (parent := by_key.get(chain[-1].value.get("parent", ""))) is not None:
            chain.append(parent)
        return chain

    # The interface, each in both colours

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._store.client.run(self._get(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._store.client.arun(self._get(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        return self._store.client.iterate(self._list(config, filter or {}, before, limit))

    def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        return self._store.client.aiterate(self._list(config, filter or {}, before, limit))

    def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        return self._store.client.run(self._put(config, checkpoint, metadata, new_versions))

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        return await self._store.client.arun(self._put(config, checkpoint, metadata, new_versions))

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        self._store.client.run(self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        await self._store.client.arun(self._put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        self._store.client.run(self._delete_thread(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._store.client.arun(self._delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._store.client.run(self._delete_for_runs(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._store.client.arun(self._delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._store.client.run(self._copy_thread(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._store.client.arun(self._copy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._store.client.run(self._prune(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._store.client.arun(self._prune(thread_ids, strategy))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Returns the next version of a channel. Forks of a thread count on from the same one: chance keeps their values apart."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}.{random.random():016}"


def _thread(config: RunnableConfig) -> tuple[str, str]:
    given = config.get("configurable", {})
    return str(given["thread_id"]), given.get("checkpoint_ns", "")


def _config(thread: str, ns: str, id_: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id_}}


def _put(namespace: Sequence[str], key: str, value: Json) -> Json:
    return {"op": "put", "namespace": list(namespace), "key": key, "value": value}


def _is_filter(name: str, value: object) -> bool:
    """Whether the server can compare a member of the metadata; others are compared here."""
    return isinstance(value, str | bool) and "." not in name and not name.startswith("$")


def _value_key(document: Document) -> str:
    """Returns the key of a value, also of one of its parts."""
    return document.key.rsplit("/", 2)[0] if document.namespace[-1] == "parts" else document.key
