"""The client whose calls are awaited, made by scripts/python-client.ts from the OpenAPI document. Do not edit."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, Literal

from . import documents, events
from ._client import Awaiting, Client
from ._core import Call, answered
from ._given import OMIT, Omit, given, path, texts
from ._page import Listing, listed
from ._types import (
    AddedMemories,
    AddedMemory,
    AddedTurns,
    Agent,
    ApiKey,
    AuditHead,
    AuditProof,
    Backup,
    BackupTicket,
    Context,
    ContextReplay,
    ContextRequestRecency,
    DeletedApiKey,
    DeletedBackup,
    DeletedMemory,
    DeletedSession,
    DeletedWebhook,
    Document,
    DocumentChange,
    DocumentQueryOperation,
    DocumentSearchPage,
    DocumentTouched,
    DocumentWritten,
    DocumentsCopied,
    DocumentsDeleted,
    EmbeddingTrial,
    EmbeddingTryEmbedding,
    ForgetResult,
    Health,
    Memory,
    MemoryHistory,
    MemoryResults,
    MemorySearchRecency,
    NewMemory,
    NewMemorySimilar,
    NewStepOutput,
    NewTurn,
    OAuthGrant,
    OAuthRequest,
    RateLimitParam,
    Retrieval,
    Session,
    Settings,
    SettingsChangesBackups,
    SettingsChangesEmbedding,
    SettingsChangesWebhooks,
    State,
    StateVersion,
    Stats,
    Step,
    StepMemory,
    TimelineEntry,
    Trace,
    Turn,
    TurnInputParam,
    TurnResults,
    User,
    UserDetails,
    UserErasure,
    Webhook,
    WebhookDelivery,
    WebhookDeliveryDetails,
    WebhookRecovered,
    WebhookStats,
)


class AsyncAgentsApi:
    """Calls of `cairn.agents`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        timeout: float | None = None,
    ) -> Listing[Agent]:
        """List agents.

        In an arbitrary but stable order. Not for a key that is bound to a user or an agent.

        Needs a key with the scope `read`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        call = Call("GET", "/v1/agents", query=given({"limit": limit, "starting_after": starting_after}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, Agent))


class AsyncBackupsApi:
    """Calls of `cairn.backups`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(
        self,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Backup:
        """Create a backup.

        Starts a backup and answers at once; poll `status` until it is `ready` or `failed`. A process of its own makes the file, and
        reads every page of the store before and after. Only one runs at a time: a second request is 409 `already_exists`. At most
        20 are kept, and the disk needs space for the backup and for what the store may grow by. If the server stops, a running
        backup is cancelled and removed.

        Needs a key with the scope `admin`.

        Args:
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `already_exists`: a live session of the same user, or of none, has this `external_id`; nothing was changed.
        """
        return await self._client.arun(answered(Call("POST", "/v1/backups", idempotency_key=idempotency_key, timeout=timeout), self._client.options, Backup))

    def list(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        timeout: float | None = None,
    ) -> Listing[Backup]:
        """List backups.

        Including the one that is running, or the last one that failed.

        Needs a key with the scope `admin`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`bkp_…`); its record may be gone.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        call = Call("GET", "/v1/backups", query=given({"limit": limit, "starting_after": starting_after}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, Backup))

    async def get(
        self,
        backup_id: str,
        *,
        timeout: float | None = None,
    ) -> Backup:
        """Get a backup.

        Needs a key with the scope `admin`.

        Args:
            backup_id: The backup.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/backups/{}", backup_id), timeout=timeout), self._client.options, Backup))

    async def delete(
        self,
        backup_id: str,
        *,
        reason: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> DeletedBackup:
        """Delete a backup.

        A running backup is cancelled. A download that has begun continues.

        Needs a key with the scope `admin`.

        Args:
            backup_id: The backup.
            reason: Why; kept in the trace.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("DELETE", path("/v1/backups/{}", backup_id), query=given({"reason": reason}), gone={"object": "backup", "id": backup_id, "deleted": True}, timeout=timeout), self._client.options, DeletedBackup))

    async def ticket(
        self,
        backup_id: str,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> BackupTicket:
        """Create a ticket for a backup.

        Returns a URL that a browser can follow without headers: valid for one download within 60 s, and only while the key that
        made it is valid.

        Needs a key with the scope `admin`.

        Args:
            backup_id: The backup.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/backups/{}/ticket", backup_id), idempotency_key=idempotency_key, timeout=timeout), self._client.options, BackupTicket))

    def download(
        self,
        backup_id: str,
        *,
        timeout: float | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Download a backup.

        With a key, or with a ticket instead of one. A connection that ends early leaves the file incomplete, which `cairn restore`
        notices. Leaves the trace `backup.downloaded`.

        Needs a key with the scope `admin`.

        Args:
            backup_id: The backup.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return self._client.aiterate(events.pieces(Call("GET", path("/v1/backups/{}/file", backup_id), timeout=timeout), self._client.options))


class AsyncDocuments:
    """Documents: JSON under a namespace and a key. Each method is one operation; `batch` and `query` make several in one request."""

    def __init__(self, client: Client, scope: documents.Scope | None = None) -> None:
        self._client = client
        self._scope = scope or documents.Scope()

    @property
    def client(self) -> Client:
        """The client that they are used with."""
        return self._client

    @property
    def scope(self) -> documents.Scope:
        """Whose they are, as far as that was said."""
        return self._scope

    def of(
        self,
        *,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
    ) -> AsyncDocuments:
        """Returns the documents of a user, of an agent, or of an agent for a user; without either those of nobody, which all share.

        Args:
            user_id: Use the documents of this user instead of those that belong to nobody. A bound key has its own. Not `.` or
                `..`, which a path cannot name.
            agent_id: Use the documents of this agent, or of this agent for the user.
        """
        return AsyncDocuments(self._client, self._scope._replace(owner=given({"user_id": user_id, "agent_id": agent_id})))

    def of_session(
        self,
        session_id: str,
    ) -> AsyncDocuments:
        """Returns the same documents; whatever is put belongs to a session and is deleted with it."""
        return AsyncDocuments(self._client, self._scope._replace(session_id=given({"session_id": session_id})["session_id"]))

    async def batch(
        self,
        operations: Iterable[DocumentChange],
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> builtins.list[Any]:
        """Makes up to 100 changes in one transaction, in their order: all of them or none. Returns the result of each: of `put` a
        `DocumentWritten`, of `touch` a `DocumentTouched` or None, of `copy_all` a `DocumentsCopied`, of `pop` a `Document` or None,
        of others a `DocumentsDeleted`.

        Args:
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        return await self._client.arun(documents.batch(self._scope, operations, documents.Sent(self._client.options, timeout, idempotency_key)))

    async def query(
        self,
        operations: Iterable[DocumentQueryOperation],
        *,
        timeout: float | None = None,
    ) -> builtins.list[Any]:
        """Runs up to 100 reads in one request. Returns the result of each: of `get` a `Document` or None, of others a page or a count.

        Args:
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        return await self._client.arun(documents.query(self._scope, operations, documents.Sent(self._client.options, timeout)))

    async def get(
        self,
        namespace: Sequence[str],
        key: str,
        *,
        values: bool | None = None,
        fields: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> Document | None:
        """Returns a document; None if there is none.

        Args:
            values: For `get`, `list` and `search`: `false` leaves the values out; default true.
            fields: For `get`, `list` and `search`: dotted paths; of each value only the members that they lead to are given, as far
                as they are there.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        result: Document | None = await self._client.arun(documents.read(self._scope, {"op": "get", "namespace": texts("namespace", namespace), "key": key, **given({"values": values, "fields": fields})}, documents.Sent(self._client.options, timeout)))
        return result

    async def put(
        self,
        namespace: Sequence[str],
        key: str,
        value: Mapping[str, Any],
        *,
        index: bool | Sequence[str] | Omit = OMIT,
        if_version: int | Omit = OMIT,
        if_exists: Literal["replace", "keep"] | Omit = OMIT,
        session_id: str | Omit = OMIT,
        ttl_seconds: float | Literal["never"] | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> DocumentWritten:
        """Creates or replaces a document.

        Args:
            index: For `put`: what `search` finds the document by: `true` for all texts and numbers of the value, each after the
                name of its member, or paths to some of them, such as `title`, `author.name`, `lines[0].text`, `lines[*].text` or `$`
                for all. By default it is not found. What they lead to has at most 10,000 characters.
            if_version: For `put` and `delete`: change nothing unless this is the document's version, 0 for none (409
                `version_conflict` otherwise).
            if_exists: For `put` with a key: `keep` leaves a document that is there as it is, and its result says `kept`. `replace`
                is the default.
            session_id: For `put`: the document goes when this session does.
            ttl_seconds: For `put` and `touch`: seconds until the document expires, however many and with fractions, or `never`. A
                `put` without it makes a document that does not expire; a `touch` without it counts from now what the document was given
                last.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        result: DocumentWritten = await self._client.arun(documents.change(self._scope, {"op": "put", "namespace": texts("namespace", namespace), "key": key, "value": value, **given({"index": index, "if_version": if_version, "if_exists": if_exists, "session_id": session_id, "ttl_seconds": ttl_seconds})}, documents.Sent(self._client.options, timeout, idempotency_key)))
        return result

    async def append(
        self,
        namespace: Sequence[str],
        value: Mapping[str, Any],
        *,
        index: bool | Sequence[str] | Omit = OMIT,
        session_id: str | Omit = OMIT,
        ttl_seconds: float | Literal["never"] | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> DocumentWritten:
        """Puts a document under a new key, which is greater than all before it.

        Args:
            index: For `put`: what `search` finds the document by: `true` for all texts and numbers of the value, each after the
                name of its member, or paths to some of them, such as `title`, `author.name`, `lines[0].text`, `lines[*].text` or `$`
                for all. By default it is not found. What they lead to has at most 10,000 characters.
            session_id: For `put`: the document goes when this session does.
            ttl_seconds: For `put` and `touch`: seconds until the document expires, however many and with fractions, or `never`. A
                `put` without it makes a document that does not expire; a `touch` without it counts from now what the document was given
                last.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        result: DocumentWritten = await self._client.arun(documents.change(self._scope, {"op": "put", "namespace": texts("namespace", namespace), "value": value, **given({"index": index, "session_id": session_id, "ttl_seconds": ttl_seconds})}, documents.Sent(self._client.options, timeout, idempotency_key)))
        return result

    async def touch(
        self,
        namespace: Sequence[str],
        key: str,
        *,
        ttl_seconds: float | Literal["never"] | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> DocumentTouched | None:
        """Has a document expire later, or never, without another version of it; None if there is none.

        Args:
            ttl_seconds: For `put` and `touch`: seconds until the document expires, however many and with fractions, or `never`. A
                `put` without it makes a document that does not expire; a `touch` without it counts from now what the document was given
                last.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        result: DocumentTouched | None = await self._client.arun(documents.change(self._scope, {"op": "touch", "namespace": texts("namespace", namespace), "key": key, **given({"ttl_seconds": ttl_seconds})}, documents.Sent(self._client.options, timeout, idempotency_key)))
        return result

    async def delete(
        self,
        namespace: Sequence[str],
        key: str,
        *,
        if_version: int | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> DocumentsDeleted:
        """Deletes a document.

        Args:
            if_version: For `put` and `delete`: change nothing unless this is the document's version, 0 for none (409
                `version_conflict` otherwise).
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        result: DocumentsDeleted = await self._client.arun(documents.change(self._scope, {"op": "delete", "namespace": texts("namespace", namespace), "key": key, **given({"if_version": if_version})}, documents.Sent(self._client.options, timeout, idempotency_key)))
        return result

    async def delete_all(
        self,
        namespace: Sequence[str],
        *,
        filter: Mapping[str, Any] | Omit = OMIT,
        cursor: str | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> DocumentsDeleted:
        """Deletes all documents of a namespace and below it, or a piece of those that pass a filter: the next is from `next_cursor`
        on.

        Args:
            cursor: For `copy_all` and `delete_all` with a `filter`: the `next_cursor` of the operation before. A batch looks at
                1,000 documents at most for all of its operations, or at fewer large ones, and deletes or copies 200 of them.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        result: DocumentsDeleted = await self._client.arun(documents.change(self._scope, {"op": "delete_all", "namespace": texts("namespace", namespace), **given({"filter": filter, "cursor": cursor})}, documents.Sent(self._client.options, timeout, idempotency_key)))
        return result

    async def copy_all(
        self,
        namespace: Sequence[str],
        to: Sequence[str],
        *,
        cursor: str | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> DocumentsCopied:
        """Copies a piece of the documents of a namespace, and below it, to the same keys under another one: the next is from
        `next_cursor` on.

        Args:
            cursor: For `copy_all` and `delete_all` with a `filter`: the `next_cursor` of the operation before. A batch looks at
                1,000 documents at most for all of its operations, or at fewer large ones, and deletes or copies 200 of them.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        result: DocumentsCopied = await self._client.arun(documents.change(self._scope, {"op": "copy_all", "namespace": texts("namespace", namespace), "to": texts("to", to), **given({"cursor": cursor})}, documents.Sent(self._client.options, timeout, idempotency_key)))
        return result

    async def pop(
        self,
        namespace: Sequence[str],
        *,
        order: Literal["asc", "desc"] | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Document | None:
        """Removes the last document of a namespace, or the first, and returns it; None if there is none.

        Args:
            order: `asc` begins with the first, by key unless `order_by` says otherwise.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        result: Document | None = await self._client.arun(documents.change(self._scope, {"op": "pop", "namespace": texts("namespace", namespace), **given({"order": order})}, documents.Sent(self._client.options, timeout, idempotency_key)))
        return result

    async def search(
        self,
        namespace: Sequence[str],
        query: str,
        *,
        filter: Mapping[str, Any] | Omit = OMIT,
        threshold: float | None = None,
        limit: int | None = None,
        offset: int | None = None,
        values: bool | None = None,
        fields: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> DocumentSearchPage:
        """Searches the documents of a namespace and below it by meaning, among those that were put with `index`.

        Args:
            threshold: For `search`: the lowest score of a document that is found; default 0.
            limit: How many at most; default 100, for `search` 10. Of a search limit and offset together are at most 200.
            offset: How many to leave out first; default 0. None on further pages: what is left of it is in the `cursor`.
            values: For `get`, `list` and `search`: `false` leaves the values out; default true.
            fields: For `get`, `list` and `search`: dotted paths; of each value only the members that they lead to are given, as far
                as they are there.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        result: DocumentSearchPage = await self._client.arun(documents.read(self._scope, {"op": "search", "namespace": texts("namespace", namespace), "query": query, **given({"filter": filter, "threshold": threshold, "limit": limit, "offset": offset, "values": values, "fields": fields})}, documents.Sent(self._client.options, timeout)))
        return result

    async def count(
        self,
        namespace: Sequence[str],
        *,
        deep: bool | None = None,
        timeout: float | None = None,
    ) -> int:
        """Counts the documents of a namespace.

        Args:
            deep: For `list` and `count`: also all namespaces below.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        result: int = (await self._client.arun(documents.read(self._scope, {"op": "count", "namespace": texts("namespace", namespace), **given({"deep": deep})}, documents.Sent(self._client.options, timeout)))).count
        return result

    def namespaces(
        self,
        *,
        prefix: Sequence[str] | Omit = OMIT,
        suffix: Sequence[str] | Omit = OMIT,
        max_depth: int | Omit = OMIT,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        timeout: float | None = None,
    ) -> Listing[builtins.list[str]]:
        """Lists the namespaces that have documents.

        Args:
            prefix: For `namespaces`: how they begin; `*` is any text.
            suffix: For `namespaces`: how they end; `*` is any text.
            max_depth: For `namespaces`: longer ones are cut to this length.
            limit: How many at most; default 100, for `search` 10. Of a search limit and offset together are at most 200.
            offset: How many to leave out first; default 0. None on further pages: what is left of it is in the `cursor`.
            cursor: The `next_cursor` of the page before.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        operation: dict[str, Any] = {"op": "namespaces", **given({"prefix": prefix, "suffix": suffix, "max_depth": max_depth, "limit": limit, "offset": offset, "cursor": cursor})}
        return Listing(self._client, lambda: documents.pages(self._scope, operation, documents.Sent(self._client.options, timeout)))

    def list(
        self,
        namespace: Sequence[str],
        *,
        deep: bool | None = None,
        order: Literal["asc", "desc"] | None = None,
        order_by: Literal["key", "updated_at"] | None = None,
        after: str | Omit = OMIT,
        before: str | Omit = OMIT,
        filter: Mapping[str, Any] | Omit = OMIT,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        values: bool | None = None,
        fields: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> Listing[Document]:
        """Lists the documents of a namespace, by their keys.

        Args:
            deep: For `list` and `count`: also all namespaces below.
            order: `asc` begins with the first, by key unless `order_by` says otherwise.
            order_by: For `list` that is not `deep`: `updated_at` lists documents as they were put last, `key` is the default. One
                that is put again between two pages comes at the end of the list.
            after: For `list` that is not `deep`: only keys after this one.
            before: For `list` that is not `deep`: only keys before this one.
            limit: How many at most; default 100, for `search` 10. Of a search limit and offset together are at most 200.
            offset: How many to leave out first; default 0. None on further pages: what is left of it is in the `cursor`.
            cursor: The `next_cursor` of the page before.
            values: For `get`, `list` and `search`: `false` leaves the values out; default true.
            fields: For `get`, `list` and `search`: dotted paths; of each value only the members that they lead to are given, as far
                as they are there.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        operation: dict[str, Any] = {"op": "list", "namespace": texts("namespace", namespace), **given({"deep": deep, "order": order, "order_by": order_by, "after": after, "before": before, "filter": filter, "limit": limit, "offset": offset, "cursor": cursor, "values": values, "fields": fields})}
        return Listing(self._client, lambda: documents.pages(self._scope, operation, documents.Sent(self._client.options, timeout)))


class AsyncKeysApi:
    """Calls of `cairn.keys`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def sign_in(
        self,
        *,
        name: str | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> ApiKey:
        """Sign in.

        Creates a session key for a page in a browser: with the scopes, tier and limits of the key that is presented, for 12 hours,
        but never longer than that key, and revoked with it. The link that `cairn dashboard` prints holds a key for this call alone,
        good once within 10 minutes. A key has at most 100 session keys; one more ends the oldest. It can sign in 10 times a minute,
        after a pause 100 times at once.

        Needs an API key, whatever its scopes, or that of a sign-in link.

        Args:
            name: Name of the session key, for the list of keys.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        return await self._client.arun(answered(Call("POST", "/v1/sign_in", body=given({"name": name}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, ApiKey))

    async def current(
        self,
        *,
        timeout: float | None = None,
    ) -> ApiKey:
        """Get the current API key.

        The key that is presented.

        Needs an API key, whatever its scopes.

        Args:
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        return await self._client.arun(answered(Call("GET", "/v1/api_keys/current", timeout=timeout), self._client.options, ApiKey))

    async def sign_out(
        self,
        *,
        timeout: float | None = None,
    ) -> DeletedApiKey:
        """Sign out.

        Ends the session key that is presented. Any other key is refused with 400 `invalid_request`.

        Needs an API key, whatever its scopes.

        Args:
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        return await self._client.arun(answered(Call("DELETE", "/v1/api_keys/current", timeout=timeout), self._client.options, DeletedApiKey))

    async def create(
        self,
        *,
        name: str | Omit = OMIT,
        scopes: Sequence[Literal["read", "write", "admin"]] | Omit = OMIT,
        tier: Literal["free", "pro", "enterprise"] | Omit = OMIT,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        rate_limit: RateLimitParam | Omit = OMIT,
        expires_at: str | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> ApiKey:
        """Create an API key.

        The key itself is in this answer only, which a replay with the same Idempotency-Key gives again. A key with a `user_id` or
        an `agent_id` sees and changes nothing but records of that user and that agent: all others are not found, and what it
        creates is theirs.

        Needs a key with the scope `admin`.

        Args:
            name: What the key is for.
            scopes: `read`: every GET, search and context. `write`: changes of records. `admin`: also keys, settings, webhooks,
                backups and erasures; implies the others.
            tier: Decides rate limit and trace retention; default `enterprise`.
            user_id: Binds the key to this user: it sees and changes nothing but the records of this user's sessions. Not with the
                scope `admin`. Leave it out for all users: null is refused. Not `.` or `..`, which a path cannot name.
            agent_id: Binds the key to this agent in the same way; with both, to this agent for this user. Null is refused.
            expires_at: When it stops working; default never.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        return await self._client.arun(answered(Call("POST", "/v1/api_keys", body=given({"name": name, "scopes": scopes, "tier": tier, "user_id": user_id, "agent_id": agent_id, "rate_limit": rate_limit, "expires_at": expires_at}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, ApiKey))

    def list(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        kind: Literal["key", "session", "link", "oauth"] | Omit = OMIT,
        timeout: float | None = None,
    ) -> Listing[ApiKey]:
        """List API keys.

        Needs a key with the scope `admin`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`key_…`); its record may be gone.
            kind: Only keys of this kind.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        call = Call("GET", "/v1/api_keys", query=given({"limit": limit, "starting_after": starting_after, "kind": kind}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, ApiKey))

    async def get(
        self,
        key_id: str,
        *,
        timeout: float | None = None,
    ) -> ApiKey:
        """Get an API key.

        Needs a key with the scope `admin`.

        Args:
            key_id: The API key.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/api_keys/{}", key_id), timeout=timeout), self._client.options, ApiKey))

    async def revoke(
        self,
        key_id: str,
        *,
        reason: str | Omit = OMIT,
        force: bool | Omit = OMIT,
        timeout: float | None = None,
    ) -> DeletedApiKey:
        """Revoke an API key.

        From this answer on, no request with the key passes. The last valid admin key is refused with 400 `invalid_request` unless
        `force` is true.

        Needs a key with the scope `admin`.

        Args:
            key_id: The API key.
            reason: Why; kept in the trace.
            force: Revoke the key even if it is the last valid admin key. Default false.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("DELETE", path("/v1/api_keys/{}", key_id), query=given({"reason": reason, "force": force}), gone={"object": "api_key", "id": key_id, "deleted": True}, timeout=timeout), self._client.options, DeletedApiKey))

    async def roll(
        self,
        key_id: str,
        *,
        overlap_seconds: int | Omit = OMIT,
        expires_at: str | Omit = OMIT,
        force: bool | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> ApiKey:
        """Roll an API key.

        Creates a key with the same name, scopes, user, agent, tier, rate limit and expiry that replaces this one, which keeps
        working for `overlap_seconds`, but not beyond its own expiry. The new key is in this answer only, which a replay with the
        same Idempotency-Key gives again. A key can be rolled once: a second time is 400 `invalid_request`. An expired one is 404.

        Needs a key with the scope `admin`.

        Args:
            key_id: The API key.
            overlap_seconds: How long the previous key keeps working; 0 ends it at once. Default 86400, a day.
            expires_at: When the new key stops working; unless given, when the previous one would have.
            force: Allow the new key to expire, or expire sooner, although no other admin key is valid. Default false.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/api_keys/{}/roll", key_id), body=given({"overlap_seconds": overlap_seconds, "expires_at": expires_at, "force": force}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, ApiKey))

    async def describe_request(
        self,
        *,
        client_id: str,
        redirect_uri: str,
        response_type: str,
        code_challenge: str,
        code_challenge_method: str,
        resource: str,
        scope: str | Omit = OMIT,
        state: str | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> OAuthRequest:
        """Describe an OAuth request.

        Says who asks for what, for the person who decides. The document of an application is fetched from its URL, from public
        addresses alone. Nothing is saved.

        Needs a key with the scope `admin`.

        Args:
            client_id: URL of the application's document, or the id of its registration.
            redirect_uri: Where the application waits for the answer.
            response_type: `code`.
            code_challenge: PKCE: base64url of the SHA-256 of the verifier.
            code_challenge_method: `S256`.
            scope: `read`, `write`, `offline_access`; others are ignored. Default `read write`.
            state: Given back to the application.
            resource: URL of `/mcp` of this server.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        return await self._client.arun(answered(Call("POST", "/v1/oauth/requests", body=given({"client_id": client_id, "redirect_uri": redirect_uri, "response_type": response_type, "code_challenge": code_challenge, "code_challenge_method": code_challenge_method, "scope": scope, "state": state, "resource": resource}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, OAuthRequest))

    async def connect_application(
        self,
        *,
        client_id: str,
        redirect_uri: str,
        response_type: str,
        code_challenge: str,
        code_challenge_method: str,
        resource: str,
        scope: str | Omit = OMIT,
        state: str | Omit = OMIT,
        scopes: Sequence[Literal["read", "write"]] | Omit = OMIT,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        expires_in_days: int | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> OAuthGrant:
        """Create an OAuth grant.

        Consents to a request. The grant is an API key of the kind `oauth`, which opens `/mcp` alone, is never an admin's, and is
        revoked like any other key. It ends with the key that consents.

        Needs a key with the scope `admin`.

        Args:
            client_id: URL of the application's document, or the id of its registration.
            redirect_uri: Where the application waits for the answer.
            response_type: `code`.
            code_challenge: PKCE: base64url of the SHA-256 of the verifier.
            code_challenge_method: `S256`.
            scope: `read`, `write`, `offline_access`; others are ignored. Default `read write`.
            state: Given back to the application.
            resource: URL of `/mcp` of this server.
            scopes: Those that it gets, of those that it asked for; default all.
            user_id: Binds the application to the records of this user. Not `.` or `..`, which a path cannot name.
            agent_id: Binds the application to the records of this agent.
            expires_in_days: How long the application stays connected at most; default 90. Unused for 30 days, it ends.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        return await self._client.arun(answered(Call("POST", "/v1/oauth/grants", body=given({"client_id": client_id, "redirect_uri": redirect_uri, "response_type": response_type, "code_challenge": code_challenge, "code_challenge_method": code_challenge_method, "scope": scope, "state": state, "resource": resource, "scopes": scopes, "user_id": user_id, "agent_id": agent_id, "expires_in_days": expires_in_days}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, OAuthGrant))


class AsyncMemoriesApi:
    """Calls of `cairn.memories`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def add(
        self,
        *,
        content: str,
        session_id: str | Omit = OMIT,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        type: str | Omit = OMIT,
        tags: Sequence[str] | Omit = OMIT,
        metadata: Mapping[str, Any] | Omit = OMIT,
        embed: bool | Omit = OMIT,
        external_id: str | Omit = OMIT,
        if_exists: Literal["error", "update", "return"] | Omit = OMIT,
        on_duplicate: Literal["allow", "return", "update"] | Omit = OMIT,
        source: Literal["user", "agent", "tool", "import"] | Omit = OMIT,
        importance: float | Omit = OMIT,
        pinned: bool | Omit = OMIT,
        occurred_at: str | Omit = OMIT,
        expires_at: str | Omit = OMIT,
        ttl_seconds: int | Omit = OMIT,
        valid_from: str | Omit = OMIT,
        valid_until: str | Omit = OMIT,
        supersedes: Sequence[str] | Omit = OMIT,
        reason: str | Omit = OMIT,
        similar: NewMemorySimilar | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> AddedMemory:
        """Add a memory.

        Search finds it once this is answered.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            session_id: The session it belongs to, and with it that session's user and agent: it goes when the session is deleted.
                Without one, `user_id` or `agent_id` is required, unless the API key is bound to one.
            user_id: Whose memory it is. With `session_id` it is the user of that session, or left out. Not `.` or `..`, which a
                path cannot name.
            agent_id: The agent whose memory it is. With `session_id` it is the agent of that session, or left out.
            content: What to remember: 1 to 10000 characters; more is 413 `content_too_large`.
            type: Standard types: fact, preference, event, policy, observation, general; others are accepted. Default `general`.
            tags: Tags, for filters.
            metadata: Custom metadata; default `{}`. At most 64 KiB as JSON.
            embed: false: keep it out of semantic search.
            external_id: A name of your own, such as the id of a row. No two memories of a user have the same, or of an agent where
                there is no user; it is free again once its memory is deleted or has expired.
            if_exists: What happens when the owner has a memory of that `external_id`: `error` is 409 `already_exists`; `return`
                answers 200 with it, as it is; `update` answers 200 once its content, and what else is sent, has taken the place of what
                was there. Default `error`.
            on_duplicate: What happens when the owner has a current memory of the same type that says the same, whatever its case,
                spaces and forms of characters: `return` answers 200 with it, as it is, and `duplicate: true`; `update` gives it the
                tags, metadata, times and what else is sent before. A memory of that `external_id` comes first. Of a session without a
                user the memories of that session are compared. Default `allow`.
            source: Who says so; `agent` unless given. A context shows it.
            importance: How important it is to you, 0.0 to 1.0.
            pinned: Show it first in every context of its user, whatever the query: at most 20 current ones of a user, more are 409
                `version_conflict`. Of a session without a user, in that session's contexts.
            occurred_at: When it happened, for history that is moved in: at most a day ahead. ISO 8601, such as
                `2027-05-07T08:00:00Z`.
            expires_at: When it expires: from that moment on nothing shows it, and it is removed with the event `memory.expired`.
                ISO 8601, such as `2027-05-07T08:00:00Z`.
            ttl_seconds: Instead of `expires_at`: seconds until then, from now.
            valid_from: Since when it holds; since ever unless given, or since now where it supersedes another one. ISO 8601, such
                as `2027-05-07T08:00:00Z`.
            valid_until: Until when it holds: from then on it is past, and stays. ISO 8601, such as `2027-05-07T08:00:00Z`.
            supersedes: Ids of memories of the same owner whose place it takes: each is past from `valid_from` on, and current again
                if this one is deleted or expires. One that is superseded already is 409 `version_conflict`.
            reason: Why; for the history of the memory and the trace.
            similar: Have the answer list the owner's current memories that are nearest in meaning, as they were before: one that
                says otherwise by now can be superseded with the next call. Needs a key with the scope `read`.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
            CairnError: `memory_not_found`: there is no such memory.
            CairnError: `already_exists`: a live session of the same user, or of none, has this `external_id`; nothing was changed.
            CairnError: `version_conflict`: the session is not at `expected_version`, or a document not at `if_version`; a memory is
                superseded already, or its owner has too many pinned ones. Nothing was changed.
        """
        return await self._client.arun(answered(Call("POST", "/v1/memory", body=given({"session_id": session_id, "user_id": user_id, "agent_id": agent_id, "content": content, "type": type, "tags": tags, "metadata": metadata, "embed": embed, "external_id": external_id, "if_exists": if_exists, "on_duplicate": on_duplicate, "source": source, "importance": importance, "pinned": pinned, "occurred_at": occurred_at, "expires_at": expires_at, "ttl_seconds": ttl_seconds, "valid_from": valid_from, "valid_until": valid_until, "supersedes": supersedes, "reason": reason, "similar": similar}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, AddedMemory))

    def list(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        session_id: str | Omit = OMIT,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        type: str | Omit = OMIT,
        tags: Sequence[str] | Omit = OMIT,
        tags_match: Literal["any", "all"] | Omit = OMIT,
        filter: Mapping[str, Any] | Omit = OMIT,
        status: Literal["current", "past", "future", "all"] | Omit = OMIT,
        as_of: str | Omit = OMIT,
        created_after: str | Omit = OMIT,
        created_before: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> Listing[Memory]:
        """List memories.

        Newest first. Filters combine with AND, tags with OR among themselves.

        Needs a key with the scope `read`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`mem_…`); its record may be gone.
            session_id: Only memories of this session.
            user_id: Only memories of this user, of sessions and without one.
            agent_id: Only memories of this agent.
            type: Only memories of this type.
            tags: Memories with ANY of these tags: one value with commas between the tags, or the parameter once for each tag, which
                may then contain commas. Empty values are ignored, so that `tags=a%2Cb&tags=` means the one tag `a,b`.
            tags_match: Whether a memory must have any of the tags, or all of them. Default `any`.
            filter: Paths with dots, each with a value that the member must equal, or with operators; all of them must pass. `$and`,
                `$or` and `$not` combine filters, up to 4 deep; 32 paths at most.
            status: Only memories that are `current`, `past`, or still to come (`future`), now or at `as_of`; or `all`. Default
                `current`.
            as_of: The moment at which memories have that status, instead of now. Of records that still exist, whenever they were
                added. ISO 8601, such as `2027-05-07T08:00:00Z`.
            created_after: Only memories after this time (ISO 8601; without an offset it is UTC).
            created_before: Only memories before this time.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        call = Call("GET", "/v1/memory", query=given({"limit": limit, "starting_after": starting_after, "session_id": session_id, "user_id": user_id, "agent_id": agent_id, "type": type, "tags": tags, "tags_match": tags_match, "filter": filter, "status": status, "as_of": as_of, "created_after": created_after, "created_before": created_before}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, Memory))

    async def add_many(
        self,
        memories: Sequence[NewMemory],
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> AddedMemories:
        """Add many memories.

        All are added, or none: one transaction, with a trace and an event for each memory.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            memories: Each as for `POST /v1/memory`. An error names the one that is wrong: `memories[3].content`.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
            CairnError: `memory_not_found`: there is no such memory.
            CairnError: `already_exists`: a live session of the same user, or of none, has this `external_id`; nothing was changed.
            CairnError: `version_conflict`: the session is not at `expected_version`, or a document not at `if_version`; a memory is
                superseded already, or its owner has too many pinned ones. Nothing was changed.
        """
        return await self._client.arun(answered(Call("POST", "/v1/memory/batch", body=given({"memories": memories}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, AddedMemories))

    async def search(
        self,
        *,
        query: str,
        session_id: str | Omit = OMIT,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        type: str | Omit = OMIT,
        types: Sequence[str] | Omit = OMIT,
        tags: Sequence[str] | Omit = OMIT,
        tags_match: Literal["any", "all"] | Omit = OMIT,
        filter: Mapping[str, Any] | Omit = OMIT,
        created_after: str | Omit = OMIT,
        created_before: str | Omit = OMIT,
        status: Literal["current", "past", "future", "all"] | Omit = OMIT,
        as_of: str | Omit = OMIT,
        limit: int | None = None,
        threshold: float | None = None,
        recency: MemorySearchRecency | Omit = OMIT,
        importance_weight: float | Omit = OMIT,
        explain: bool | None = None,
        timeout: float | None = None,
    ) -> MemoryResults:
        """Search memories.

        Finds memories by meaning and by words. Filters combine with AND, tags and types with OR among themselves.

        Needs a key with the scope `read`.

        Args:
            query: What to look for, in words. Emoji and other symbols find the memories that contain them.
            session_id: Only memories of this session.
            user_id: Only memories of this user, of sessions and without one.
            agent_id: Only memories of this agent.
            type: Only memories of this type.
            types: Memories of ANY of these types; an empty array is no filter.
            tags: Memories with ANY of them, unless `tags_match` says otherwise.
            tags_match: Whether a memory must have any of the tags, or all of them. Default `any`.
            created_after: Only memories that were added after this time. ISO 8601, such as `2027-05-07T08:00:00Z`.
            created_before: Only memories that were added before this time.
            status: Only memories that are `current`, `past`, or still to come (`future`), now or at `as_of`; or `all`. Default
                `current`.
            as_of: The moment at which memories have that status, instead of now. Of records that still exist, whenever they were
                added. ISO 8601, such as `2027-05-07T08:00:00Z`.
            limit: How many at most; default 10.
            threshold: Lowest score; default 0.7. With 0 nothing is left out.
            recency: Puts what is newer first: orders by `ranking_score`, which is the score × (1 − weight + weight × 2^(−age /
                half-life)). Ages count from `occurred_at`, or else `created_at`, to now or `as_of`. `score` and `threshold` stay as
                they are.
            importance_weight: Puts what is more important first: orders by `ranking_score`, here × (1 − weight + weight ×
                importance); an importance that nobody has said counts as 0.5.
            explain: Add to each result why it was found.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        return await self._client.arun(answered(Call("POST", "/v1/memory/search", body=given({"query": query, "session_id": session_id, "user_id": user_id, "agent_id": agent_id, "type": type, "types": types, "tags": tags, "tags_match": tags_match, "filter": filter, "created_after": created_after, "created_before": created_before, "status": status, "as_of": as_of, "limit": limit, "threshold": threshold, "recency": recency, "importance_weight": importance_weight, "explain": explain}), is_change=False, timeout=timeout), self._client.options, MemoryResults))

    async def forget(
        self,
        *,
        filter: Mapping[str, Any],
        dry_run: bool | Omit = OMIT,
        limit: int | None = None,
        reason: str | Omit = OMIT,
        token: str | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> ForgetResult:
        """Forget memories.

        Deletes the memories that pass a filter, past and future ones too, each with its trace. A dry run, which is the default,
        deletes nothing: it counts them, shows some, and answers with a token that has exactly these deleted. One request deletes
        all that it counts, or nothing; while `has_more` is true, the same request takes the next ones.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            dry_run: Delete nothing, and say what would go.
            limit: How many at most; default 100.
            reason: Why; for the history of the memory and the trace.
            token: Token of a dry run. With the same filter and `dry_run: false` exactly those go that it counted: if one was
                changed or is gone since, it is 409 `version_conflict` and nothing goes.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `version_conflict`: the session is not at `expected_version`, or a document not at `if_version`; a memory is
                superseded already, or its owner has too many pinned ones. Nothing was changed.
        """
        return await self._client.arun(answered(Call("POST", "/v1/memory/forget", body=given({"filter": filter, "dry_run": dry_run, "limit": limit, "reason": reason, "token": token}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, ForgetResult))

    async def get(
        self,
        memory_id: str,
        *,
        timeout: float | None = None,
    ) -> Memory:
        """Get a memory.

        Needs a key with the scope `read`.

        Args:
            memory_id: The memory.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `memory_not_found`: there is no such memory.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/memory/{}", memory_id), timeout=timeout), self._client.options, Memory))

    async def update(
        self,
        memory_id: str,
        *,
        content: str | Omit = OMIT,
        type: str | Omit = OMIT,
        tags: Sequence[str] | Omit = OMIT,
        metadata: Mapping[str, Any] | Omit = OMIT,
        external_id: str | Omit | None = OMIT,
        source: Literal["user", "agent", "tool", "import"] | Omit = OMIT,
        importance: float | Omit | None = OMIT,
        pinned: bool | Omit = OMIT,
        expires_at: str | Omit | None = OMIT,
        ttl_seconds: int | Omit = OMIT,
        valid_from: str | Omit | None = OMIT,
        valid_until: str | Omit | None = OMIT,
        reason: str | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Memory:
        """Update a memory.

        A changed content gets a new embedding.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            memory_id: The memory.
            content: What to remember: 1 to 10000 characters; more is 413 `content_too_large`.
            type: Standard types: fact, preference, event, policy, observation, general; others are accepted.
            tags: Replaces the tags.
            metadata: Merged into what is there, key by key; a null removes the key. At most 64 KiB as JSON.
            external_id: A name of your own; null takes it away.
            source: Who says so.
            importance: How important it is to you; null: unknown.
            pinned: Show it first in every context of its user, whatever the query: at most 20 current ones of a user, more are 409
                `version_conflict`. Of a session without a user, in that session's contexts.
            expires_at: When it expires: from that moment on nothing shows it, and it is removed with the event `memory.expired`.
                null: never. ISO 8601, such as `2027-05-07T08:00:00Z`.
            ttl_seconds: Instead of `expires_at`: seconds until then, from now.
            valid_from: Since when it holds; null: since ever, or since it was added where it supersedes another one. ISO 8601, such
                as `2027-05-07T08:00:00Z`.
            valid_until: Until when it holds; null: for ever. ISO 8601, such as `2027-05-07T08:00:00Z`.
            reason: Why; for the history of the memory and the trace.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `memory_not_found`: there is no such memory.
            CairnError: `already_exists`: a live session of the same user, or of none, has this `external_id`; nothing was changed.
            CairnError: `version_conflict`: the session is not at `expected_version`, or a document not at `if_version`; a memory is
                superseded already, or its owner has too many pinned ones. Nothing was changed.
        """
        return await self._client.arun(answered(Call("PATCH", path("/v1/memory/{}", memory_id), body=given({"content": content, "type": type, "tags": tags, "metadata": metadata, "external_id": external_id, "source": source, "importance": importance, "pinned": pinned, "expires_at": expires_at, "ttl_seconds": ttl_seconds, "valid_from": valid_from, "valid_until": valid_until, "reason": reason}, nullable=("external_id", "importance", "expires_at", "valid_from", "valid_until",)), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Memory))

    async def delete(
        self,
        memory_id: str,
        *,
        reason: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> DeletedMemory:
        """Delete a memory.

        Permanent; removes the memory and its vector.

        Needs a key with the scope `write`.

        Args:
            memory_id: The memory.
            reason: Why; kept in the trace.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `memory_not_found`: there is no such memory.
        """
        return await self._client.arun(answered(Call("DELETE", path("/v1/memory/{}", memory_id), query=given({"reason": reason}), gone={"object": "memory", "id": memory_id, "deleted": True}, timeout=timeout), self._client.options, DeletedMemory))

    async def history(
        self,
        memory_id: str,
        *,
        timeout: float | None = None,
    ) -> MemoryHistory:
        """Get memory history.

        The contents that it had: when, by whom and why. An edit adds one; a memory that supersedes it has a history of its own.

        Needs a key with the scope `read`.

        Args:
            memory_id: The memory.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `memory_not_found`: there is no such memory.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/memory/{}/history", memory_id), timeout=timeout), self._client.options, MemoryHistory))


class AsyncSessionsApi:
    """Calls of `cairn.sessions`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(
        self,
        *,
        agent_id: str,
        user_id: str | Omit = OMIT,
        external_id: str | Omit = OMIT,
        if_exists: Literal["error", "return"] | Omit = OMIT,
        initial_state: Mapping[str, Any] | Omit = OMIT,
        metadata: Mapping[str, Any] | Omit = OMIT,
        ttl_seconds: int | Literal["never"] | Omit = OMIT,
        index_turns: Literal["off", "words", "meaning"] | Omit = OMIT,
        occurred_at: str | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Create a session.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            agent_id: Identifies the agent.
            user_id: The user the agent acts for. Lists, searches and keys can be limited to a user. Not `.` or `..`, which a path
                cannot name.
            external_id: A name of your own, such as the id of a thread. No two live sessions of a `user_id`, or without one, have
                the same; it is free again once its session is deleted or has expired. A fork does not take it over.
            if_exists: What happens when a live session of the same `user_id`, or of none, has the `external_id`: `error` is 409
                `already_exists`, `return` answers 200 with that session, as it is. Sessions of other users, or without the `user_id` of
                the request, do not matter. Default `error`.
            initial_state: Becomes version 0; default `{}`.
            metadata: Custom metadata; default `{}`. At most 64 KiB as JSON.
            ttl_seconds: Seconds until the session expires, at most 30 days, or `never`; default 86400. Activity does not extend it.
                A session that never expires stays until it is deleted.
            index_turns: By what searches find its turns, instead of what the setting `index_turns` says: `off`, by their `words`,
                or by `meaning` too. It stays so for the session and its forks.
            occurred_at: When the conversation began, for history that is moved in; `created_at` is the time of this request. At
                most a day in the future.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `already_exists`: a live session of the same user, or of none, has this `external_id`; nothing was changed.
        """
        return await self._client.arun(answered(Call("POST", "/v1/sessions", body=given({"agent_id": agent_id, "user_id": user_id, "external_id": external_id, "if_exists": if_exists, "initial_state": initial_state, "metadata": metadata, "ttl_seconds": ttl_seconds, "index_turns": index_turns, "occurred_at": occurred_at}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Session))

    def list(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        agent_id: str | Omit = OMIT,
        user_id: str | Omit = OMIT,
        external_id: str | Omit = OMIT,
        exact_user: bool | Omit = OMIT,
        has_secrets: bool | Omit = OMIT,
        forked_from: str | Omit = OMIT,
        created_after: str | Omit = OMIT,
        created_before: str | Omit = OMIT,
        include: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> Listing[Session]:
        """List sessions.

        Newest first. Filters combine with AND.

        Needs a key with the scope `read`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`sess_…`); its record may be gone.
            agent_id: Only sessions of this agent.
            user_id: The user the agent acts for. Lists, searches and keys can be limited to a user. Not `.` or `..`, which a path
                cannot name.
            external_id: Only sessions of this name, of which each user can have one.
            exact_user: `true`: without `user_id` only sessions without a user, instead of those of all users; a key that is bound
                to a user lists its user's. With `external_id` it is a look-up: at most the one session that `if_exists`: `return` gives
                the same key for that `user_id` and `agent_id`, which may be another agent's. Default false.
            has_secrets: `true`: only sessions whose state or metadata is marked with `secrets` (the setting `secrets` at `tag`);
                `false`: only others.
            forked_from: Only forks of this session, which may be gone.
            created_after: Only sessions after this time (ISO 8601; without an offset it is UTC).
            created_before: Only sessions before this time.
            include: Members to add: first_input, rollback_count, with commas between them.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        call = Call("GET", "/v1/sessions", query=given({"limit": limit, "starting_after": starting_after, "agent_id": agent_id, "user_id": user_id, "external_id": external_id, "exact_user": exact_user, "has_secrets": has_secrets, "forked_from": forked_from, "created_after": created_after, "created_before": created_before, "include": include}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, Session))

    async def get(
        self,
        session_id: str,
        *,
        timeout: float | None = None,
    ) -> Session:
        """Get a session.

        Needs a key with the scope `read`.

        Args:
            session_id: The session.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/sessions/{}", session_id), timeout=timeout), self._client.options, Session))

    async def update(
        self,
        session_id: str,
        *,
        metadata: Mapping[str, Any] | Omit = OMIT,
        ttl_seconds: int | Literal["never"] | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Update a session.

        Its metadata, its time to live, or both.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            session_id: The session.
            metadata: Merged into what is there, key by key; a null removes the key. At most 64 KiB as JSON.
            ttl_seconds: A new time to live, counted from now; `never`: it does not expire.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        return await self._client.arun(answered(Call("PATCH", path("/v1/sessions/{}", session_id), body=given({"metadata": metadata, "ttl_seconds": ttl_seconds}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Session))

    async def delete(
        self,
        session_id: str,
        *,
        reason: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> DeletedSession:
        """Delete a session.

        Permanent; removes the session with its states, turns and memories.

        Needs a key with the scope `write`.

        Args:
            session_id: The session.
            reason: Why; kept in the trace.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        return await self._client.arun(answered(Call("DELETE", path("/v1/sessions/{}", session_id), query=given({"reason": reason}), gone={"object": "session", "id": session_id, "deleted": True}, timeout=timeout), self._client.options, DeletedSession))

    async def set_state(
        self,
        session_id: str,
        state: Mapping[str, Any],
        *,
        reasoning: str | Omit = OMIT,
        expected_version: int | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Update the state.

        Replaces the state entirely and makes a new version.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            session_id: The session.
            state: Replaces the current state entirely.
            reasoning: Why, for the trace.
            expected_version: Change nothing unless this is the current version (409 `version_conflict` otherwise).
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
            CairnError: `version_conflict`: the session is not at `expected_version`, or a document not at `if_version`; a memory is
                superseded already, or its owner has too many pinned ones. Nothing was changed.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/sessions/{}/state", session_id), body=given({"state": state, "reasoning": reasoning, "expected_version": expected_version}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Session))

    async def state(
        self,
        session_id: str,
        *,
        timeout: float | None = None,
    ) -> State:
        """Get the state.

        Needs a key with the scope `read`.

        Args:
            session_id: The session.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/sessions/{}/state", session_id), timeout=timeout), self._client.options, State))

    async def patch_state(
        self,
        session_id: str,
        changes: Mapping[str, Any],
        *,
        reasoning: str | Omit = OMIT,
        expected_version: int | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> State:
        """Patch the state.

        Changes some keys of the state and makes a new version, in one step: of several callers at the same time none undoes what
        another did to another key. What changes nothing makes no version. A state that would become larger than a body can be is
        413 `payload_too_large`. The SDKs of StateBase use this path too, so misspelt fields are ignored here like other unknown
        ones.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            session_id: The session.
            changes: Laid over the current state, key by key at the top level; a null removes the key.
            reasoning: Why, for the trace.
            expected_version: Change nothing unless this is the current version (409 `version_conflict` otherwise).
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
            CairnError: `version_conflict`: the session is not at `expected_version`, or a document not at `if_version`; a memory is
                superseded already, or its owner has too many pinned ones. Nothing was changed.
        """
        return await self._client.arun(answered(Call("PATCH", path("/v1/sessions/{}/state", session_id), body=given({"state": changes, "reasoning": reasoning, "expected_version": expected_version}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, State))

    async def rollback(
        self,
        session_id: str,
        *,
        version: int,
        reason: str | Omit = OMIT,
        turns: Literal["keep", "hide"] | Omit = OMIT,
        expected_version: int | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Roll back a session.

        Brings back the state of a version, as a new version. Turns and memories stay as they are; with `turns`: `hide` those turns
        are hidden that were logged since.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            session_id: The session.
            version: The version whose state comes back; 0 is the initial state, -1 the previous one.
            reason: Why, for the trace.
            turns: `hide`: contexts, lists and timelines show the turns that they showed when that version was current, and no later
                ones, unless they are asked for `status=all`. A later rollback with `hide` to a version before this one shows those
                again. Default `keep`.
            expected_version: Change nothing unless this is the current version (409 `version_conflict` otherwise).
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
            CairnError: `version_not_found`: the session has no such version, or no longer: only the newest (the setting
                `state_versions_kept`) and version 0 are kept.
            CairnError: `version_conflict`: the session is not at `expected_version`, or a document not at `if_version`; a memory is
                superseded already, or its owner has too many pinned ones. Nothing was changed.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/sessions/{}/rollback", session_id), body=given({"version": version, "reason": reason, "turns": turns, "expected_version": expected_version}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Session))

    async def fork(
        self,
        session_id: str,
        *,
        version: int | Omit = OMIT,
        turns: int | Literal["none"] | Literal["all"] | Omit = OMIT,
        memories: Literal["none", "session"] | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Session:
        """Fork a session.

        A new session whose initial state is a version of this one. The state of that version is copied; turns and memories are not:
        with `turns` and `memories` the fork shows those of this session, by the same ids.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            session_id: The session.
            version: The version to start from; default the current one. A negative one counts back from it.
            turns: Which turns the fork begins with, of those that were shown when that version was current: `all`, the newest of
                them up to 1000, or `none` (default). They are not copied, and stay when this session is deleted or expires.
            memories: `session`: lists, searches and contexts of the fork show the memories that this session has now, besides its
                own. They are the same memories, not copies: `session_id` says where each was added, and they stay when this session is
                deleted or expires. Memories of a user are in the contexts of all of the user's sessions anyway. Default `none`.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
            CairnError: `version_not_found`: the session has no such version, or no longer: only the newest (the setting
                `state_versions_kept`) and version 0 are kept.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/sessions/{}/fork", session_id), body=given({"version": version, "turns": turns, "memories": memories}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Session))

    def versions(
        self,
        session_id: str,
        *,
        limit: int | None = None,
        starting_after: int | None = None,
        timeout: float | None = None,
    ) -> Listing[StateVersion]:
        """List the versions of the state.

        Newest first. A version's number is its cursor.

        Needs a key with the scope `read`.

        Args:
            session_id: The session.
            limit: How many at most; default 20.
            starting_after: The last version of the previous page.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        call = Call("GET", path("/v1/sessions/{}/versions", session_id), query=given({"limit": limit, "starting_after": starting_after}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, StateVersion))

    async def version(
        self,
        session_id: str,
        version: int,
        *,
        timeout: float | None = None,
    ) -> StateVersion:
        """Get a version of the state.

        Needs a key with the scope `read`.

        Args:
            session_id: The session.
            version: The version; 0 is the initial state.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
            CairnError: `version_not_found`: the session has no such version, or no longer: only the newest (the setting
                `state_versions_kept`) and version 0 are kept.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/sessions/{}/versions/{}", session_id, version), timeout=timeout), self._client.options, StateVersion))

    async def context(
        self,
        session_id: str,
        *,
        query: str | Omit = OMIT,
        memory_limit: int | Omit = OMIT,
        turn_limit: int | Omit = OMIT,
        as_of: str | Omit = OMIT,
        max_tokens: int | Omit = OMIT,
        format: Literal["json", "text", "messages"] | Omit = OMIT,
        memory_scope: Literal["session", "user", "agent"] | Omit = OMIT,
        include: Sequence[Literal["state", "pinned", "memories", "turns"]] | Omit = OMIT,
        recency: ContextRequestRecency | Omit = OMIT,
        importance_weight: float | Omit = OMIT,
        filter: Mapping[str, Any] | Omit = OMIT,
        explain: bool | None = None,
        timeout: float | None = None,
    ) -> Context:
        """Get the context of a session.

        State, memories and latest turns in one read. Memories are the session's own and, when it has a user, all of that user's.

        Needs a key with the scope `read`.

        Args:
            session_id: The session.
            query: What the agent is about to do or was asked; finds memories by meaning. Without one, the newest are given, by when
                they happened.
            memory_limit: How many memories at most; default 5, with `max_tokens` 20.
            turn_limit: How many turns at most; default 10, with `max_tokens` 50.
            as_of: Show the memories that were current then, instead of now. Of records that still exist, whenever they were added.
                ISO 8601, such as `2027-05-07T08:00:00Z`.
            max_tokens: How many tokens the context may have as a block of text, counted from above: no more by the tokenizers of
                GPT (`o200k`) and Claude. What does not fit is left out and counted in `omitted`, but something of each kind is always
                there; too few for that are refused with the least.
            format: `text` adds a block for a prompt, `messages` messages for a chat API; default `json`, neither.
            memory_scope: Whose memories: those of the session alone, all of its user's (`user`, the default; of a session without a
                user its own), or of its `agent`: what belongs to no user, and what this user has with it.
            include: What the context is to hold; everything unless given. What is left out is empty in the answer. `pinned` are the
                memories that are pinned, which come besides the `memory_limit`.
            recency: Puts what is newer first: orders by `ranking_score`, which is the score × (1 − weight + weight × 2^(−age /
                half-life)). Ages count from `occurred_at`, or else `created_at`, to now or `as_of`. `score` and `threshold` stay as
                they are.
            importance_weight: Puts what is more important first: orders by `ranking_score`, here × (1 − weight + weight ×
                importance); an importance that nobody has said counts as 0.5.
            explain: Add to each memory why it was found.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/sessions/{}/context", session_id), body=given({"query": query, "memory_limit": memory_limit, "turn_limit": turn_limit, "as_of": as_of, "max_tokens": max_tokens, "format": format, "memory_scope": memory_scope, "include": include, "recency": recency, "importance_weight": importance_weight, "filter": filter, "explain": explain}), is_change=False, timeout=timeout), self._client.options, Context))

    async def replay_context(
        self,
        retrieval_id: str,
        *,
        timeout: float | None = None,
    ) -> ContextReplay:
        """Replay a context.

        Builds a context of before again, as the agent got it: the same memories, turns, state, budget and format, from what the log
        of retrievals keeps of it. A memory that was edited since has the content of then, as far as its history goes back;
        `changes` says what is not as it was.

        Needs a key with the scope `read`.

        Args:
            retrieval_id: The retrieval.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/retrievals/{}/context", retrieval_id), timeout=timeout), self._client.options, ContextReplay))

    def timeline(
        self,
        session_id: str,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        kinds: str | Omit = OMIT,
        status: Literal["current", "all"] | Omit = OMIT,
        order: Literal["asc", "desc"] | None = None,
        timeout: float | None = None,
    ) -> Listing[TimelineEntry]:
        """List the timeline of a session.

        Its turns, the versions of its state with what changed in each, its memories, what searches and contexts found while
        `retrieval_log` was on, and the sessions forked from it, in the order in which they were made; a turn or memory with
        `occurred_at` stands where it happened. Memories and forks that were deleted since, and forks that have expired, are left
        out.

        Needs a key with the scope `read`.

        Args:
            session_id: The session.
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`entry_…`); its record may be gone.
            kinds: Only entries of these kinds: turn, version, memory, retrieval, fork, with commas between them.
            status: `all`: with turns that a rollback has hidden, which have `rolled_back_at`. Default `current`.
            order: `desc` (newest first) unless given.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        call = Call("GET", path("/v1/sessions/{}/timeline", session_id), query=given({"limit": limit, "starting_after": starting_after, "kinds": kinds, "status": status, "order": order}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, TimelineEntry))

    def retrievals(
        self,
        session_id: str,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        operation: Literal["search", "context", "turn_search"] | Omit = OMIT,
        created_after: str | Omit = OMIT,
        created_before: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> Listing[Retrieval]:
        """List the retrievals of a session.

        Which memories searches and contexts found for a query, newest first. Logged while the setting `retrieval_log` is on:
        searches that name the session, and contexts with a query (searches that name none: `GET /v1/retrievals`). Kept for
        `retrieval_log_days`, and no longer than the session. What was answered before this request is in the list, unless the disk
        takes longer than a second. A row is written after its answer: it is lost when the process is killed within a tenth of a
        second, when the disk or the store is nearly full (a tenth of `max_store_bytes` is left to changes), or while 1000 others
        wait for the disk.

        Needs a key with the scope `read`.

        Args:
            session_id: The session.
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`ret_…`); its record may be gone.
            operation: Only those of a `search` or of a `context` or of a `turn_search`.
            created_after: Only retrievals after this time (ISO 8601; without an offset it is UTC).
            created_before: Only retrievals before this time.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        call = Call("GET", path("/v1/sessions/{}/retrievals", session_id), query=given({"limit": limit, "starting_after": starting_after, "operation": operation, "created_after": created_after, "created_before": created_before}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, Retrieval))

    def searches(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        created_after: str | Omit = OMIT,
        created_before: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> Listing[Retrieval]:
        """List the searches of no session.

        Searches that named no session, of a user or an agent, newest first, with which memories they found. Logged while the
        setting `retrieval_log` is on, and kept for `retrieval_log_days`; those of a session are listed with it. A search of all
        users and agents is not logged.

        Needs a key with the scope `read`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`ret_…`); its record may be gone.
            user_id: Only searches of this user.
            agent_id: Only searches of this agent.
            created_after: Only searches after this time (ISO 8601; without an offset it is UTC).
            created_before: Only searches before this time.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        call = Call("GET", "/v1/retrievals", query=given({"limit": limit, "starting_after": starting_after, "user_id": user_id, "agent_id": agent_id, "created_after": created_after, "created_before": created_before}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, Retrieval))

    async def retrieval(
        self,
        retrieval_id: str,
        *,
        timeout: float | None = None,
    ) -> Retrieval:
        """Get a retrieval.

        It is removed with its session, and after `retrieval_log_days`.

        Needs a key with the scope `read`.

        Args:
            retrieval_id: The retrieval.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/retrievals/{}", retrieval_id), timeout=timeout), self._client.options, Retrieval))

    async def rate_retrieval(
        self,
        retrieval_id: str,
        *,
        useful: Sequence[str] | Omit = OMIT,
        not_useful: Sequence[str] | Omit = OMIT,
        note: str | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Retrieval:
        """Rate a retrieval.

        Says which of the memories and turns helped. Kept with the retrieval, and gone with it; it changes no score.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            retrieval_id: The retrieval.
            useful: Ids of memories and turns of the retrieval that helped.
            not_useful: Ids of those that did not.
            note: A note of yours.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/retrievals/{}/feedback", retrieval_id), body=given({"useful": useful, "not_useful": not_useful, "note": note}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Retrieval))


class AsyncSettingsApi:
    """Calls of `cairn.settings`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(
        self,
        *,
        timeout: float | None = None,
    ) -> Settings:
        """Get the settings.

        Needs a key with the scope `admin`.

        Args:
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        return await self._client.arun(answered(Call("GET", "/v1/settings", timeout=timeout), self._client.options, Settings))

    async def update(
        self,
        *,
        memories_on_expiry: Literal["keep", "delete"] | Omit | None = OMIT,
        endless_sessions_for_all: bool | Omit | None = OMIT,
        trace_retention_days: int | Omit | None = OMIT,
        retrieval_log: bool | Omit | None = OMIT,
        retrieval_log_days: int | Omit | None = OMIT,
        index_turns: Literal["off", "words", "meaning"] | Omit | None = OMIT,
        index_turns_share: float | Omit | None = OMIT,
        secrets: Literal["off", "tag", "redact", "block"] | Omit | None = OMIT,
        secret_kinds: str | Omit | None = OMIT,
        max_body_bytes: int | Omit | None = OMIT,
        region: str | Omit | None = OMIT,
        state_versions_kept: int | Omit | None = OMIT,
        memory_versions_kept: int | Omit | None = OMIT,
        max_store_bytes: int | Omit | None = OMIT,
        oauth_clients: str | Omit | None = OMIT,
        backups: SettingsChangesBackups | Omit = OMIT,
        webhooks: SettingsChangesWebhooks | Omit = OMIT,
        embedding: SettingsChangesEmbedding | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Settings:
        """Change the settings.

        Takes effect immediately, without a restart. A null, or an empty text, resets a setting to the environment's value or the
        default. An embedding provider is tried first; one that does not work is refused with the reason. Settings of webhooks apply
        from the next attempt on. Unknown settings are refused.

        Needs a key with the scope `admin`.

        Args:
            memories_on_expiry: What becomes of the memories of a session that expires.
            endless_sessions_for_all: Whether keys without the scope `admin` may create sessions that do not expire (`ttl_seconds:
                "never"`). Such sessions stay until they are deleted. Turned off, it changes no session that is there.
            trace_retention_days: How many days traces made with an enterprise key are kept.
            retrieval_log: Whether the server logs which memories a search or a context found, with the query. `GET
                /v1/sessions/{session_id}/retrievals` lists them, and `GET /v1/retrievals` the searches that named no session. They are
                kept for `retrieval_log_days`, and no longer than the session.
            retrieval_log_days: How many days the log of retrievals keeps what was found, with the query. A change concerns what is
                logged from then on.
            index_turns: By what searches find turns: `off`, by their `words`, or by `meaning` too. `meaning` embeds every turn,
                passage by passage. A session can be created with another one. After a change the turns that are there follow in the
                background; `/v1/stats` says how far that is.
            index_turns_share: The share of its time that the server indexes turns in the background, 0.01 to 1. Both the turns that
                are there after a change of `index_turns` and the vectors of new ones are made within it.
            secrets: What becomes of secrets in turns, states, memories and documents that clients send: `off`, `tag`, `redact` or
                `block`. `tag` stores them and marks the record with their kinds; `redact` stores `[redacted:KIND]` in their place, and
                the answer says so; `block` refuses the request. Records that are there stay as they are.
            secret_kinds: What counts as a secret: one or more of keys, cards, email, phone, separated by commas. `keys` are keys
                and tokens of known forms, private keys, JWTs and passwords in URLs; `cards` numbers of cards; `email` addresses and
                `phone` telephone numbers.
            max_body_bytes: Largest body of a request.
            region: A label for this deployment, shown in `/health` to everybody. Without control characters.
            state_versions_kept: How many of the newest versions of a session's state are kept, including the current one; version 0
                is always kept. Each new version removes up to 8 older ones, so a lower number takes effect as states change.
            memory_versions_kept: How many contents that a memory had are kept, besides the present one, for its history. A lower
                number takes effect with the next change of each memory's content.
            max_store_bytes: How many bytes the store may take on disk; beyond that new records are refused with 503.
                `cairn_store_used_bytes` in `/metrics` says how many it takes. New sessions, states, turns and memories are answered 503
                `service_unavailable`, and so is a PATCH of one that does not make it smaller, and a request with an Idempotency-Key
                whose answer has no space to be kept; deletion, keys, webhooks, settings, expiry and retention keep working. The size is
                checked twice a second and after large writes, so it can exceed the limit slightly.
            oauth_clients: Applications that may ask for access by OAuth: any, or known and hosts such as notes.example.com,
                separated by commas. `known` are those whose documents are built in; a host is where an application has its document.
                Unless it is `any`, no application can register itself. Those that are connected stay connected.
            backups: Backups that the server makes by itself.
            webhooks: How events are delivered, from the next attempt on.
            embedding: The embedding provider. A change is tried before it is set; one of provider, model, prefix or length embeds
                all memories again in the background.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        return await self._client.arun(answered(Call("PATCH", "/v1/settings", body=given({"memories_on_expiry": memories_on_expiry, "endless_sessions_for_all": endless_sessions_for_all, "trace_retention_days": trace_retention_days, "retrieval_log": retrieval_log, "retrieval_log_days": retrieval_log_days, "index_turns": index_turns, "index_turns_share": index_turns_share, "secrets": secrets, "secret_kinds": secret_kinds, "max_body_bytes": max_body_bytes, "region": region, "state_versions_kept": state_versions_kept, "memory_versions_kept": memory_versions_kept, "max_store_bytes": max_store_bytes, "oauth_clients": oauth_clients, "backups": backups, "webhooks": webhooks, "embedding": embedding}, nullable=("memories_on_expiry", "endless_sessions_for_all", "trace_retention_days", "retrieval_log", "retrieval_log_days", "index_turns", "index_turns_share", "secrets", "secret_kinds", "max_body_bytes", "region", "state_versions_kept", "memory_versions_kept", "max_store_bytes", "oauth_clients",)), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Settings))

    async def try_embedding(
        self,
        *,
        embedding: EmbeddingTryEmbedding | Omit = OMIT,
        query: str | Omit = OMIT,
        content: str | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> EmbeddingTrial:
        """Try an embedding provider.

        Says whether it works, or why not, and what score it gives to a pair of texts. Nothing is saved. One is tried at a time.

        Needs a key with the scope `admin`.

        Args:
            embedding: The embedding provider. A change is tried before it is set; one of provider, model, prefix or length embeds
                all memories again in the background.
            query: What is looked for; default a question about the other text.
            content: A memory; default one that answers the question.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        return await self._client.arun(answered(Call("POST", "/v1/settings/embedding/try", body=given({"embedding": embedding, "query": query, "content": content}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, EmbeddingTrial))


class AsyncTracesApi:
    """Calls of `cairn.traces`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        session_id: str | Omit = OMIT,
        user_id: str | Omit = OMIT,
        action: Literal["turn.added", "state.updated", "memory.created", "session.created", "session.expired", "session.updated", "session.deleted", "session.forked", "state.rolled_back", "memory.updated", "memory.deleted", "memory.superseded", "memory.expired", "retrieval.rated", "api_key.created", "api_key.rolled", "api_key.revoked", "backup.started", "backup.created", "backup.failed", "backup.copied", "backup.copy_failed", "backup.downloaded", "backup.deleted", "user.erased", "settings.updated", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.secret_rotated", "webhook.deleted"] | Omit = OMIT,
        created_after: str | Omit = OMIT,
        created_before: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> Listing[Trace]:
        """List traces.

        Newest first. Every change leaves one; traces outlive their sessions. Filters combine with AND. Only keys with the scope
        `admin` see the traces of administration (keys, settings, webhooks, backups, erasures of users).

        Needs a key with the scope `read`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`trace_…`); its record may be gone.
            session_id: Only traces of this session, which may be long gone.
            user_id: Only traces of this user's records.
            action: Only traces of this action.
            created_after: Only traces after this time (ISO 8601; without an offset it is UTC).
            created_before: Only traces before this time.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        call = Call("GET", "/v1/traces", query=given({"limit": limit, "starting_after": starting_after, "session_id": session_id, "user_id": user_id, "action": action, "created_after": created_after, "created_before": created_before}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, Trace))

    async def get(
        self,
        trace_id: str,
        *,
        timeout: float | None = None,
    ) -> Trace:
        """Get a trace.

        Only a key with the scope `admin` finds the traces of administration (keys, settings, webhooks, backups, erasures of users).

        Needs a key with the scope `read`.

        Args:
            trace_id: The trace.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `trace_not_found`: there is no such trace: it never existed, is older than the tier of its key keeps traces,
                or is only for keys with the scope `admin`.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/traces/{}", trace_id), timeout=timeout), self._client.options, Trace))

    async def heads(
        self,
        *,
        timeout: float | None = None,
    ) -> AuditHead:
        """Get the signed heads.

        Signs what this server has written, and answers the heads of the chains. Keep them elsewhere: `cairn audit verify --head
        FILE` shows later whether traces up to them were changed, removed or added.

        Needs a key with the scope `admin`.

        Args:
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        return await self._client.arun(answered(Call("GET", "/v1/audit/head", timeout=timeout), self._client.options, AuditHead))

    async def proof(
        self,
        *,
        trace: str,
        timeout: float | None = None,
    ) -> AuditProof:
        """Get the proof of a trace.

        What leads from the trace to a signed head: its row, the hashes of its segment of at most 256 traces, and the signature. 503
        while another server has not signed it yet, which takes seconds.

        Needs a key with the scope `read`.

        Args:
            trace: Id of the trace.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `trace_not_found`: there is no such trace: it never existed, is older than the tier of its key keeps traces,
                or is only for keys with the scope `admin`.
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("GET", "/v1/audit/proof", query=given({"trace": trace}), timeout=timeout), self._client.options, AuditProof))


class AsyncTurnsApi:
    """Calls of `cairn.turns`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def add(
        self,
        session_id: str,
        *,
        input: TurnInputParam,
        output: NewStepOutput,
        reasoning: str | Omit = OMIT,
        metadata: Mapping[str, Any] | Omit = OMIT,
        external_id: str | Omit = OMIT,
        occurred_at: str | Omit = OMIT,
        state_before: Mapping[str, Any] | Omit = OMIT,
        state_after: Mapping[str, Any] | Omit = OMIT,
        state: Mapping[str, Any] | Omit = OMIT,
        state_patch: Mapping[str, Any] | Omit = OMIT,
        expected_version: int | Omit = OMIT,
        memories: Sequence[StepMemory] | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Step:
        """Add a turn.

        With `state` or `state_patch`, and `memories`, a whole step of an agent in one request: the state changes first, so that the
        turn belongs to the new version; all of it is there or nothing, with the traces and events of separate requests. `reasoning`
        is kept with the version, too.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            session_id: The session.
            reasoning: Why the agent answered so.
            metadata: Custom metadata; default `{}`. At most 64 KiB as JSON.
            external_id: A name of your own, such as the id of a message, unique in its session: where a turn has it already that
                one is answered, as it is, with 200, and nothing is changed.
            occurred_at: When it happened, for history that is moved in: contexts and timelines go by it, lists by `created_at`. At
                most a day in the future.
            state_before: A snapshot; logging a turn never changes the state.
            state_after: A snapshot; logging a turn never changes the state.
            state: Replaces the state, before the turn is logged.
            state_patch: Laid over the state, key by key, before the turn is logged; a null removes a key. Not with `state`.
            expected_version: Change nothing unless this is the current version (409 `version_conflict` otherwise).
            memories: Up to 20 memories to add to the session, each as for `POST /v1/memory`. An error names the one that is wrong:
                `memories[3].content`.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
            CairnError: `memory_not_found`: there is no such memory.
            CairnError: `version_conflict`: the session is not at `expected_version`, or a document not at `if_version`; a memory is
                superseded already, or its owner has too many pinned ones. Nothing was changed.
            CairnError: `already_exists`: a live session of the same user, or of none, has this `external_id`; nothing was changed.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/sessions/{}/turns", session_id), body=given({"input": input, "output": output, "reasoning": reasoning, "metadata": metadata, "external_id": external_id, "occurred_at": occurred_at, "state_before": state_before, "state_after": state_after, "state": state, "state_patch": state_patch, "expected_version": expected_version, "memories": memories}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Step))

    def list(
        self,
        session_id: str,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        status: Literal["current", "all"] | Omit = OMIT,
        order: Literal["asc", "desc"] | None = None,
        timeout: float | None = None,
    ) -> Listing[Turn]:
        """List the turns of a session.

        Needs a key with the scope `read`.

        Args:
            session_id: The session.
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`turn_…`); its record may be gone.
            status: `all`: with turns that a rollback has hidden, which have `rolled_back_at`. Default `current`.
            order: `desc` (newest first) unless given.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        call = Call("GET", path("/v1/sessions/{}/turns", session_id), query=given({"limit": limit, "starting_after": starting_after, "status": status, "order": order}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, Turn))

    async def add_batch(
        self,
        session_id: str,
        turns: Sequence[NewTurn],
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> AddedTurns:
        """Add turns.

        Up to 100 turns in one transaction, all of them or none; an error names the place: `turns[3].input`. Each leaves a trace and
        an event. With `external_id` a batch can be sent again: turns that are there are answered as they are.

        Needs a key with the scope `write`.

        A key without the scope `read` gets a `Receipt` where the answer would show what the request did not send: the members of
        the record that say which it is, its versions and its times.

        Args:
            session_id: The session.
            turns: 1 to 100 turns, logged in this order, all of them or none.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/sessions/{}/turns/batch", session_id), body=given({"turns": turns}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, AddedTurns))

    async def search(
        self,
        *,
        query: str,
        session_id: str | Omit = OMIT,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        filter: Mapping[str, Any] | Omit = OMIT,
        limit: int | None = None,
        threshold: float | None = None,
        timeout: float | None = None,
    ) -> TurnResults:
        """Search turns.

        Finds turns by their words, and by meaning where the setting `index_turns` or the session's own says so, each with the
        passage that was found. Of a session, also those that it has from the session it was forked from; never those that a
        rollback has hidden. Without `session_id`, `user_id` and `agent_id` all turns are searched that the key sees. An answer ends
        before its limit with the turn that brings it beyond 8 MiB.

        Needs a key with the scope `read`.

        Args:
            query: What to look for, in words.
            session_id: Only turns that this session shows.
            user_id: Only turns of sessions of this user.
            agent_id: Only turns of sessions of this agent.
            limit: How many at most; default 10.
            threshold: Lowest score; default 0.7. With 0 nothing is left out.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        return await self._client.arun(answered(Call("POST", "/v1/turns/search", body=given({"query": query, "session_id": session_id, "user_id": user_id, "agent_id": agent_id, "filter": filter, "limit": limit, "threshold": threshold}), is_change=False, timeout=timeout), self._client.options, TurnResults))

    def list_by_words(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        q: str | Omit = OMIT,
        session_id: str | Omit = OMIT,
        user_id: str | Omit = OMIT,
        agent_id: str | Omit = OMIT,
        filter: Mapping[str, Any] | Omit = OMIT,
        timeout: float | None = None,
    ) -> Listing[Turn]:
        """List turns by their words.

        Turns that searches find, newest first, with `q` those that have all its words. Filters combine with AND. None of sessions
        whose `index_turns` is `off`.

        Needs a key with the scope `read`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`turn_…`); its record may be gone.
            q: Only turns that have all of these words, whatever their endings.
            session_id: Only turns that this session shows.
            user_id: Only turns of sessions of this user.
            agent_id: Only turns of sessions of this agent.
            filter: Paths with dots, each with a value that the member must equal, or with operators; all of them must pass. `$and`,
                `$or` and `$not` combine filters, up to 4 deep; 32 paths at most.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
        """
        call = Call("GET", "/v1/turns", query=given({"limit": limit, "starting_after": starting_after, "q": q, "session_id": session_id, "user_id": user_id, "agent_id": agent_id, "filter": filter}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, Turn))

    async def get(
        self,
        session_id: str,
        turn_id: str,
        *,
        timeout: float | None = None,
    ) -> Turn:
        """Get a turn.

        Needs a key with the scope `read`.

        Args:
            session_id: The session.
            turn_id: The turn.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `session_not_found`: there is no such session: it never existed, has expired or was deleted.
            CairnError: `turn_not_found`: the session has no such turn.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/sessions/{}/turns/{}", session_id, turn_id), timeout=timeout), self._client.options, Turn))


class AsyncUsersApi:
    """Calls of `cairn.users`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        order: Literal["name", "last_seen"] | None = None,
        prefix: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> Listing[User]:
        """List users.

        By name, or those with the newest session first, with counts, which stop at 100: all who have a session, a memory or a
        document. Not for a key that is bound to a user or an agent.

        Needs a key with the scope `read`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page.
            order: `name` (by code points; unless given), or `last_seen`: by when their newest session was created, the latest
                first. Turns, states, memories and documents change nothing in it.
            prefix: Only users whose names begin with this, upper and lower case as given. Only by `name`.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        call = Call("GET", "/v1/users", query=given({"limit": limit, "starting_after": starting_after, "order": order, "prefix": prefix}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, User))

    async def get(
        self,
        user_id: str,
        *,
        timeout: float | None = None,
    ) -> UserDetails:
        """Get a user.

        With counts, which stop at 10000. Found is any user with something that an erasure would remove, also traces or answers kept
        for an Idempotency-Key alone, who are not in the list. Not for a key that is bound to a user or an agent.

        Needs a key with the scope `read`.

        Args:
            user_id: The user.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/users/{}", user_id), timeout=timeout), self._client.options, UserDetails))

    async def erase(
        self,
        user_id: str,
        *,
        timeout: float | None = None,
    ) -> UserErasure:
        """Erase a user.

        Removes the user's sessions with their states, turns and retrievals, memories with their vectors, documents (also those kept
        with an agent), events and deliveries of webhooks, and answers kept for an Idempotency-Key. Traces stay without their
        content. From this answer on nothing of it is shown. If there is much, the answer says `running`, and the rest is removed in
        the background, also after a restart. Records that the user gets later are not affected. At the end a trace `user.erased`
        has the counts.

        `done` says that the store holds none of it, and `freed_space` what of it its files hold: a data file none, free pages
        included, as they are overwritten; while a backup is made or another process reads the store, that waits for its end. On
        PostgreSQL the database's vacuum takes it from its files, and its write-ahead log has it as long as that is kept. Files of
        the search index have no texts, and lose what was removed when they are written next. In a data file that an earlier Cairn
        has written, free space inside a page is overwritten only when the page changes; a `cairn backup` restored has none.

        Applications that were connected for the user by OAuth are disconnected first.

        Caches in memory that may have texts of the user are emptied with `done`, and within seconds on other servers of the same
        database.

        Kept are, besides the user's name with its traces, API keys that are bound to the user, with their names, and the request
        ids that clients have chosen, in traces.

        Out of reach are: backups and exports made earlier, what receivers of webhooks and an embedding provider were sent, and
        spans at an OpenTelemetry collector and lines of the log, which have ids of sessions and no content.

        Needs a key with the scope `admin`.

        Args:
            user_id: The user.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("DELETE", path("/v1/users/{}", user_id), timeout=timeout), self._client.options, UserErasure))

    async def erasure(
        self,
        user_id: str,
        *,
        timeout: float | None = None,
    ) -> UserErasure:
        """Get the erasure of a user.

        The progress of a running erasure, or what the last one removed, for as long as its trace `user.erased` is kept.

        Needs a key with the scope `admin`.

        Args:
            user_id: The user.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/users/{}/erasure", user_id), timeout=timeout), self._client.options, UserErasure))


class AsyncWebhooksApi:
    """Calls of `cairn.webhooks`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(
        self,
        *,
        url: str,
        events: Sequence[Literal["session.created", "session.updated", "session.deleted", "session.expired", "turn.added", "memory.created", "memory.superseded", "memory.expired", "backup.created", "backup.failed", "trace.created", "trace.rollback", "trace.error"]],
        description: str | Omit = OMIT,
        enabled: bool | Omit = OMIT,
        secret: str | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Webhook:
        """Create a webhook.

        Events from now on are posted to the URL, signed. `trace.created` includes the traces of administration (keys, settings,
        webhooks, backups, erasures of users). The secret is in this answer only, which a replay with the same Idempotency-Key gives
        again.

        Needs a key with the scope `admin`.

        Args:
            url: Where events are posted: `http` or `https`, no user name. It must not lead into a private network unless the
                operator allows that.
            events: The events it subscribes to. Those of sessions, turns and memories carry the record; those of traces the trace,
                `trace.error` that of a turn whose output has the type `error`.
            description: What the webhook is for.
            enabled: Whether events are delivered; default true.
            secret: The signing secret: printable ASCII, or `whsec_` followed by base64. A new one is made if none is given.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.
        """
        return await self._client.arun(answered(Call("POST", "/v1/webhooks", body=given({"url": url, "events": events, "description": description, "enabled": enabled, "secret": secret}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Webhook))

    def list(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        timeout: float | None = None,
    ) -> Listing[Webhook]:
        """List webhooks.

        Needs a key with the scope `admin`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`whk_…`); its record may be gone.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        call = Call("GET", "/v1/webhooks", query=given({"limit": limit, "starting_after": starting_after}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, Webhook))

    async def get(
        self,
        webhook_id: str,
        *,
        timeout: float | None = None,
    ) -> Webhook:
        """Get a webhook.

        Needs a key with the scope `admin`.

        Args:
            webhook_id: The webhook.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/webhooks/{}", webhook_id), timeout=timeout), self._client.options, Webhook))

    async def update(
        self,
        webhook_id: str,
        *,
        url: str | Omit = OMIT,
        events: Sequence[Literal["session.created", "session.updated", "session.deleted", "session.expired", "turn.added", "memory.created", "memory.superseded", "memory.expired", "backup.created", "backup.failed", "trace.created", "trace.rollback", "trace.error"]] | Omit = OMIT,
        description: str | Omit = OMIT,
        enabled: bool | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Webhook:
        """Update a webhook.

        Needs a key with the scope `admin`.

        Args:
            webhook_id: The webhook.
            url: Where events are posted: `http` or `https`, no user name. It must not lead into a private network unless the
                operator allows that.
            events: The events it subscribes to. Those of sessions, turns and memories carry the record; those of traces the trace,
                `trace.error` that of a turn whose output has the type `error`.
            description: What the webhook is for.
            enabled: Enabling does not deliver events of the time while it was disabled.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("PATCH", path("/v1/webhooks/{}", webhook_id), body=given({"url": url, "events": events, "description": description, "enabled": enabled}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Webhook))

    async def delete(
        self,
        webhook_id: str,
        *,
        reason: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> DeletedWebhook:
        """Delete a webhook.

        Events that are not delivered yet are dropped.

        Needs a key with the scope `admin`.

        Args:
            webhook_id: The webhook.
            reason: Why; kept in the trace.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("DELETE", path("/v1/webhooks/{}", webhook_id), query=given({"reason": reason}), gone={"object": "webhook", "id": webhook_id, "deleted": True}, timeout=timeout), self._client.options, DeletedWebhook))

    async def rotate_secret(
        self,
        webhook_id: str,
        *,
        secret: str | Omit = OMIT,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Webhook:
        """Rotate the secret of a webhook.

        The previous secret keeps signing together with the new one for 24 hours: `webhook-signature` then has both,
        `X-Webhook-Signature` is of the new one and `X-Webhook-Signature-Previous` of the previous one. The secret is in this answer
        only, which a replay with the same Idempotency-Key gives again.

        Needs a key with the scope `admin`.

        Args:
            webhook_id: The webhook.
            secret: The signing secret: printable ASCII, or `whsec_` followed by base64. A new one is made if none is given.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/webhooks/{}/rotate_secret", webhook_id), body=given({"secret": secret}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, Webhook))

    async def test(
        self,
        webhook_id: str,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> WebhookDelivery:
        """Test a webhook.

        Posts one event of the type `webhook.test`, with the webhook as its record, in a single attempt. The deliveries show the
        answer.

        Needs a key with the scope `admin`.

        Args:
            webhook_id: The webhook.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/webhooks/{}/test", webhook_id), idempotency_key=idempotency_key, timeout=timeout), self._client.options, WebhookDelivery))

    def deliveries(
        self,
        webhook_id: str,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        status: Literal["pending", "delivered", "failed"] | Omit = OMIT,
        event_type: Literal["session.created", "session.updated", "session.deleted", "session.expired", "turn.added", "memory.created", "memory.superseded", "memory.expired", "backup.created", "backup.failed", "trace.created", "trace.rollback", "trace.error", "webhook.test"] | Omit = OMIT,
        created_after: str | Omit = OMIT,
        created_before: str | Omit = OMIT,
        timeout: float | None = None,
    ) -> Listing[WebhookDelivery]:
        """List the deliveries of a webhook.

        Newest first. Filters combine with AND. Kept for 7 days.

        Needs a key with the scope `admin`.

        Args:
            webhook_id: The webhook.
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`dlv_…`); its record may be gone.
            status: Only deliveries of this status.
            event_type: Only deliveries of events of this type.
            created_after: Only deliveries after this time (ISO 8601; without an offset it is UTC).
            created_before: Only deliveries before this time.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        call = Call("GET", path("/v1/webhooks/{}/deliveries", webhook_id), query=given({"limit": limit, "starting_after": starting_after, "status": status, "event_type": event_type, "created_after": created_after, "created_before": created_before}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, WebhookDelivery))

    async def stats(
        self,
        webhook_id: str,
        *,
        timeout: float | None = None,
    ) -> WebhookStats:
        """Get webhook statistics.

        How many deliveries of the last 24 hours were delivered, have failed or are pending, hour by hour.

        Needs a key with the scope `admin`.

        Args:
            webhook_id: The webhook.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/webhooks/{}/stats", webhook_id), timeout=timeout), self._client.options, WebhookStats))

    def stats_of_all(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        timeout: float | None = None,
    ) -> Listing[WebhookStats]:
        """List webhook statistics.

        Those of all webhooks, the newest webhook first. A page can be short where there is much to count.

        Needs a key with the scope `admin`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`whk_…`); its record may be gone.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        call = Call("GET", "/v1/webhook_stats", query=given({"limit": limit, "starting_after": starting_after}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, WebhookStats))

    def failed_deliveries(
        self,
        *,
        limit: int | None = None,
        starting_after: str | None = None,
        timeout: float | None = None,
    ) -> Listing[WebhookDelivery]:
        """List failed deliveries.

        Those of all webhooks that are not tried again. Kept for 7 days.

        Needs a key with the scope `admin`.

        Args:
            limit: How many at most; default 20.
            starting_after: The last id of the previous page (`dlv_…`); its record may be gone.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        call = Call("GET", "/v1/failed_deliveries", query=given({"limit": limit, "starting_after": starting_after}), timeout=timeout)
        return Listing(self._client, lambda: listed(call, self._client.options, WebhookDelivery))

    async def delivery(
        self,
        webhook_id: str,
        delivery_id: str,
        *,
        timeout: float | None = None,
    ) -> WebhookDeliveryDetails:
        """Get a delivery of a webhook.

        With what is posted, and the latest attempts.

        Needs a key with the scope `admin`.

        Args:
            webhook_id: The webhook.
            delivery_id: The delivery.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("GET", path("/v1/webhooks/{}/deliveries/{}", webhook_id, delivery_id), timeout=timeout), self._client.options, WebhookDeliveryDetails))

    async def recover(
        self,
        webhook_id: str,
        *,
        since: str,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> WebhookRecovered:
        """Recover failed deliveries of a webhook.

        Has failed deliveries since a time made again, with all retries, the oldest first: after a receiver was down for long. A
        request takes at most 500; until `complete` is true, repeat it.

        Needs a key with the scope `admin`.

        Args:
            webhook_id: The webhook.
            since: Failed deliveries of events from this time on are made again.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/webhooks/{}/recover", webhook_id), body=given({"since": since}), idempotency_key=idempotency_key, timeout=timeout), self._client.options, WebhookRecovered))

    async def retry(
        self,
        webhook_id: str,
        delivery_id: str,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> WebhookDelivery:
        """Retry a delivery of a webhook.

        Immediately, and with all retries again, whatever its status. The event keeps its id.

        Needs a key with the scope `admin`.

        Args:
            webhook_id: The webhook.
            delivery_id: The delivery.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
            idempotency_key: For a change that another process may repeat: 1 to 255 printable ASCII characters. Each call has a new
                one unless given.

        Raises:
            CairnError: `resource_not_found`: there is no such record.
        """
        return await self._client.arun(answered(Call("POST", path("/v1/webhooks/{}/deliveries/{}/retry", webhook_id, delivery_id), idempotency_key=idempotency_key, timeout=timeout), self._client.options, WebhookDelivery))


class AsyncCairn(Awaiting):
    """Cairn from a program whose calls are awaited, with asyncio or trio.

    A method is an operation of the API, and its arguments and answers have the names of the API. A call that fails raises a `CairnError`.

    Example:
        cairn = AsyncCairn("crn_…")
        session = await cairn.sessions.create(agent_id="support-bot", user_id="user-42")
        await cairn.memories.add(session_id=session.id, content="Prefers e-mail to phone calls.")
    """

    agents: AsyncAgentsApi
    backups: AsyncBackupsApi
    documents: AsyncDocuments
    keys: AsyncKeysApi
    memories: AsyncMemoriesApi
    sessions: AsyncSessionsApi
    settings: AsyncSettingsApi
    traces: AsyncTracesApi
    turns: AsyncTurnsApi
    users: AsyncUsersApi
    webhooks: AsyncWebhooksApi

    def _bind(self) -> None:
        self.agents = AsyncAgentsApi(self)
        self.backups = AsyncBackupsApi(self)
        self.documents = AsyncDocuments(self)
        self.keys = AsyncKeysApi(self)
        self.memories = AsyncMemoriesApi(self)
        self.sessions = AsyncSessionsApi(self)
        self.settings = AsyncSettingsApi(self)
        self.traces = AsyncTracesApi(self)
        self.turns = AsyncTurnsApi(self)
        self.users = AsyncUsersApi(self)
        self.webhooks = AsyncWebhooksApi(self)

    def events(
        self,
        *,
        session_id: str | Omit = OMIT,
        user_id: str | Omit = OMIT,
        action: Literal["turn.added", "state.updated", "memory.created", "session.created", "session.expired", "session.updated", "session.deleted", "session.forked", "state.rolled_back", "memory.updated", "memory.deleted", "memory.superseded", "memory.expired", "retrieval.rated", "api_key.created", "api_key.rolled", "api_key.revoked", "backup.started", "backup.created", "backup.failed", "backup.copied", "backup.copy_failed", "backup.downloaded", "backup.deleted", "user.erased", "settings.updated", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.secret_rotated", "webhook.deleted"] | Omit = OMIT,
        last_event_id: str | None = None,
    ) -> AsyncGenerator[Trace, None]:
        """Watch the traces: traces as they happen, until the loop is left. It reconnects by itself, and misses nothing meanwhile.

        Args:
            session_id: Only traces of this session, which may be long gone.
            user_id: Only traces of this user's records.
            action: Only traces of this action.
            last_event_id: The id of a trace: those that followed it come first.
        """
        return self.aiterate(events.traces(given({"session_id": session_id, "user_id": user_id, "action": action}), last_event_id, self.options))

    async def stats(
        self,
        *,
        history: Literal["1h", "24h", "7d"] | None = None,
        timeout: float | None = None,
    ) -> Stats:
        """Get the statistics.

        Counts of what is stored, and on request what the servers have seen in the last hour, day or week. Not for a key that is
        bound to a user or an agent.

        Needs a key with the scope `read`.

        Args:
            history: Add what the servers have seen: in the last hour by the minute, in the last day by the quarter of an hour, or
                in the last 7 days by two hours.
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        return await self.arun(answered(Call("GET", "/v1/stats", query=given({"history": history}), timeout=timeout), self.options, Stats))

    async def health(
        self,
        *,
        timeout: float | None = None,
    ) -> Health:
        """Get the health.

        Args:
            timeout: How many seconds an attempt may take, instead of the client's `timeout`.
        """
        return await self.arun(answered(Call("GET", "/health", accepts=503, timeout=timeout), self.options, Health))
