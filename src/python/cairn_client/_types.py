"""Requests and answers of Cairn, made by scripts/python-client.ts from the OpenAPI document. Do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

from ._record import Record

OPEN = frozenset(["limit", "starting_after", "offset", "cursor", "order", "order_by", "deep", "values", "fields", "threshold", "explain", "history"])
"""Fields that have a default or say where a page begins: as None they let nothing more through."""

ErrorCode = Literal[
    "invalid_request",
    "authentication_failed",
    "permission_denied",
    "resource_not_found",
    "request_timeout",
    "session_not_found",
    "memory_not_found",
    "turn_not_found",
    "trace_not_found",
    "version_not_found",
    "already_exists",
    "version_conflict",
    "payload_too_large",
    "content_too_large",
    "rate_limit_exceeded",
    "internal_error",
    "service_unavailable",
    "connection_failed",
    "timeout",
    "unexpected_answer",
]


class AddedMemories(Record):
    """The memories of a batch."""

    __nested__: ClassVar[Mapping[str, str]] = {"data": "AddedMemory", "redacted": "Redaction"}
    object: Literal["list"]
    data: list[AddedMemory]
    """In the order of the request."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class AddedMemory(Record):
    """A memory that was added, or was there."""

    __nested__: ClassVar[Mapping[str, str]] = {"redacted": "Redaction", "similar": "MemoryResult"}
    object: Literal["memory"]
    id: str
    """`mem_` and 12 characters."""
    session_id: str | None
    """The session it was added to, which may have expired since; null without one."""
    user_id: str | None
    """The user it belongs to; null for an agent's alone."""
    agent_id: str | None
    """The agent it belongs to; null for a user's alone."""
    content: str
    """What to remember: 1 to 10000 characters; more is 413 `content_too_large`."""
    type: str
    """Standard types: fact, preference, event, policy, observation, general; others are accepted."""
    tags: list[str]
    """Tags."""
    metadata: dict[str, Any]
    """Custom metadata. At most 64 KiB as JSON."""
    external_id: str | None
    """The name that you gave it."""
    source: Literal["user", "agent", "tool", "import"]
    """Who says so."""
    importance: float | None
    """How important you said it is."""
    pinned: bool
    """Whether every context of its owner shows it."""
    occurred_at: str | None
    """When it happened, if that was given."""
    created_at: str
    """When the memory was added."""
    updated_at: str
    """When it was last changed."""
    expires_at: str | None
    """When it expires; null: never."""
    valid_from: str | None
    """Since when it holds; null: since ever."""
    valid_until: str | None
    """Until when it holds; null: for ever."""
    supersedes: list[str]
    """Ids of the memories whose place it took; some may be gone."""
    superseded_by: str | None
    """The memory that took its place."""
    superseded_at: str | None
    """When that one took it, or will."""
    secrets: list[str] | None = None
    """Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """
    embedding_id: str | None = None
    """ID of the vector, which changes with the content; left out when there is none."""
    vector_available: bool
    """Whether it has a vector. Until one is made, its words find it."""
    duplicate: Literal[True] | None = None
    """Set where the owner had said the same before (`on_duplicate`): then this is that memory."""
    similar: list[MemoryResult] | None = None
    """With `similar`: the current memories of its owner that are like it, as they were before; best first."""


class AddedTurns(Record):
    """The turns of a batch."""

    __nested__: ClassVar[Mapping[str, str]] = {"data": "Turn", "redacted": "Redaction"}
    object: Literal["list"]
    data: list[Turn]
    """In the order of the request."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class Agent(Record):
    """An agent that sessions or memories name."""

    object: Literal["agent"]
    id: str
    """The `agent_id` of sessions."""
    last_session_at: str | None
    """When the newest session was created; null when none is left."""


class ApiKey(Record):
    """An API key."""

    __nested__: ClassVar[Mapping[str, str]] = {"rate_limit": "RateLimit"}
    object: Literal["api_key"]
    id: str
    """`key_` and 12 characters."""
    kind: Literal["key", "session", "link", "oauth"]
    """`key`: made to be kept. `session`: made by signing in, for at most 12 hours. `link`: good for signing in once, within 10
    minutes, and for nothing else. `oauth`: an application that was connected by OAuth, whose tokens open `/mcp` alone.
    """
    name: str | None
    prefix: str
    """First 8 characters of the key: the actor in traces."""
    key: str | None = None
    """The key itself: only in the answer to the request that created it."""
    scopes: list[Literal["read", "write", "admin"]]
    """`read`: every GET, search and context. `write`: changes of records. `admin`: also keys, settings, webhooks, backups and
    erasures; implies the others.
    """
    tier: Literal["free", "pro", "enterprise"]
    user_id: str | None
    """The key is bound to this user; null: to none."""
    agent_id: str | None
    """The key is bound to this agent; null: to none."""
    rate_limit: RateLimit
    created_at: str
    """When the key was created."""
    expires_at: str | None
    """When it stops working."""
    last_used_at: str | None
    """When the key was last used; null: never. A crash of the server loses at most the last minute."""
    rolled_from: str | None
    """ID of the key this one replaced."""
    rolled_to: str | None
    """ID of the key that replaced this one."""
    source: str | None
    """ID of the key that a session key, or the consent to an application, came from, and ends with; null where a link signed in, and
    for other kinds.
    """
    client_id: str | None = None
    """`client_id` of the application: only of a key of the kind `oauth`."""


class AuditHead(Record):
    """What all traces lead to. Kept elsewhere, it shows later that none of them was changed or cut off."""

    __nested__: ClassVar[Mapping[str, str]] = {"chains": "SignedHead"}
    object: Literal["audit_head"]
    chains: list[SignedHead]
    """The heads of the chains that no later one names, oldest first."""


class AuditProof(Record):
    """What leads from a trace to a signed head."""

    __nested__: ClassVar[Mapping[str, str]] = {"head": "SignedHead", "erasure": "SignedErasure"}
    object: Literal["audit_proof"]
    trace_id: str
    """The trace."""
    key: str
    """Key of its row: the code of its action and the id."""
    row: str
    """Its row as an export has it, without `link`, byte for byte."""
    salt: str
    """Salt of its hash: SHA-256 of salt, line feed, key, line feed, row is the leaf."""
    place: int
    """Number of the trace in the chain, from 0."""
    before: str
    """Digest of the chain before the first of `leaves`. 32 bytes in base64url."""
    leaves: list[str]
    """Leaves of its segment: SHA-256 of digest and leaf is the next digest, and the last of them that of `head`. The one of the trace
    is at `place` modulo 256.
    """
    head: SignedHead
    erasure: SignedErasure


class Backup(Record):
    """The whole store at one moment, in one file."""

    object: Literal["backup"]
    id: str
    """`bkp_` and 12 characters."""
    trigger: Literal["request", "schedule"]
    """What had it made: a request, or the setting `backups.schedule`."""
    status: Literal["running", "ready", "failed"]
    """`running`: it is being made; `failed`: there is none, and the next one takes its place."""
    created_at: str
    """When it was asked for. It holds all that was there then, and what came until it was made."""
    bytes: int | None
    """Length of the file; null unless it is ready."""
    version: str | None
    """Version of the Cairn that made it; null unless it is ready."""
    error: str | None
    """Why it failed; in an event also why it could not be copied."""


class BackupTicket(Record):
    """A download that needs no key."""

    object: Literal["backup_ticket"]
    backup_id: str
    """The backup."""
    url: str
    """Where the file is, without a key, for one download."""
    expires_at: str
    """When the ticket ends unless it was used: after 60 s."""


class ChangedVersion(Record):
    """A version of a session's state, with what changed in it."""

    __nested__: ClassVar[Mapping[str, str]] = {"state_diff": "ChangedVersionStateDiff"}
    object: Literal["version"]
    version: int
    """0, 1, 2 … without gaps. Version 0 and the newest are kept (the setting `state_versions_kept`)."""
    created_at: str
    """When the version was made."""
    reasoning: str | None = None
    """Why the state changed, if that was given."""
    actor: str
    """First 8 characters of the API key that made it, or `local`, as in traces."""
    source: Literal["initial", "update", "rollback"]
    """What made it."""
    restored_from_version: int | None = None
    """The version whose state a rollback restored; left out where there was no rollback, and for one of an earlier Cairn."""
    secrets: list[str] | None = None
    """Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none."""
    state_diff: ChangedVersionStateDiff | None
    """What changed from the version before, from `{}` for version 0; null when that version is not kept any more."""


class ChangedVersionStateDiff(Record):
    """What changed from the version before, from `{}` for version 0; null when that version is not kept any more."""

    added: dict[str, Any]
    """Keys that the version before did not have, with their values."""
    removed: dict[str, Any]
    """Keys that only the version before had, with their values."""
    modified: dict[str, Any]
    """Keys whose values differ, each with `from` and `to`."""


class Context(Record):
    """All an agent needs for its next step."""

    __nested__: ClassVar[Mapping[str, str]] = {"memories": "ContextMemories", "recent_turns": "RecentTurn", "omitted": "Omitted", "messages": "ContextMessage"}
    state: dict[str, Any]
    """The current state."""
    memories: list[ContextMemories]
    """First those that are pinned, newest first, then the best; without a query the newest. What is new goes by `occurred_at`, or
    `created_at` without one.
    """
    partial: Literal[True] | None = None
    """Set where 10,000 memories were compared with the filter, and others were not: there may be better ones."""
    recent_turns: list[RecentTurn]
    """Newest first, by when they happened (`occurred_at`, or `created_at` without one)."""
    token_count: int | None = None
    """How many tokens it has as a block of text, counted from above. Set with `max_tokens`, or another `format` than `json`."""
    omitted: Omitted | None = None
    text: str | None = None
    """With `format: "text"`: all of it as a block for a prompt. Each text of yours is a JSON string within a line, so that none can
    pass for a heading or a role. The same records give the same text.
    """
    messages: list[ContextMessage] | None = None
    """With `format: "messages"`: state and memories in the first one, then the turns, oldest first."""
    retrieval_id: str | None = None
    """Where it is logged (`retrieval_log`): for `GET /v1/retrievals/{retrieval_id}` and feedback. Left out where it is not."""


class ContextMemories(Record):
    __nested__: ClassVar[Mapping[str, str]] = {"explanation": "MemoryExplanation"}
    id: str
    """`mem_` and 12 characters."""
    content: str
    """What to remember: 1 to 10000 characters; more is 413 `content_too_large`."""
    type: str
    """Standard types: fact, preference, event, policy, observation, general; others are accepted."""
    source: Literal["user", "agent", "tool", "import"]
    """Who says so."""
    score: float
    """0.0 to 1.0; 0.0 without a query, and of a pinned one that the query would not have found."""
    ranking_score: float | None = None
    """With `recency` or `importance_weight`: what it is ordered by, the score after both; never more than the score."""
    created_at: str
    """When the memory was added."""
    pinned: Literal[True] | None = None
    """Set where it is pinned. Left out for others."""
    truncated: Literal[True] | None = None
    """Set where not all of it fitted: its text ends with `…`. Left out for others."""
    explanation: MemoryExplanation | None = None


class ContextMessage(Record):
    """A message for a chat API."""

    role: Literal["user", "assistant"]
    """Who says so."""
    content: str
    """State and memories as a block, or a text of a turn as it is."""


class ContextReplay(Record):
    """A context of before, built again from the log of retrievals."""

    __nested__: ClassVar[Mapping[str, str]] = {"changes": "ReplayChange", "context": "Context"}
    object: Literal["context_replay"]
    retrieval_id: str
    """Its entry in the log of retrievals."""
    exact: bool
    """True if nothing of it was edited or deleted since: then it is what the agent got, but for `explanation` and `partial`."""
    changes: list[ReplayChange]
    """What was edited, hidden or deleted since."""
    created_at: str
    """When the agent got it."""
    context: Context


class ContextRequestRecency(TypedDict):
    """Puts what is newer first: orders by `ranking_score`, which is the score × (1 − weight + weight × 2^(−age / half-life)). Ages
    count from `occurred_at`, or else `created_at`, to now or `as_of`. `score` and `threshold` stay as they are.
    """

    half_life_days: float
    """After how many days half of what depends on age is left; with 0 nothing is left of what is not of this moment."""
    weight: float
    """How much depends on age: 0 nothing, 1 everything."""


class DeletedApiKey(Record):
    """What was deleted."""

    __nested__: ClassVar[Mapping[str, str]] = {"redacted": "Redaction"}
    object: Literal["api_key"]
    id: str
    deleted: Literal[True]
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class DeletedBackup(Record):
    """What was deleted."""

    __nested__: ClassVar[Mapping[str, str]] = {"redacted": "Redaction"}
    object: Literal["backup"]
    id: str
    deleted: Literal[True]
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class DeletedMemory(Record):
    """What was deleted."""

    __nested__: ClassVar[Mapping[str, str]] = {"redacted": "Redaction"}
    object: Literal["memory"]
    id: str
    deleted: Literal[True]
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class DeletedSession(Record):
    """What was deleted."""

    __nested__: ClassVar[Mapping[str, str]] = {"redacted": "Redaction"}
    object: Literal["session"]
    id: str
    deleted: Literal[True]
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class DeletedWebhook(Record):
    """What was deleted."""

    __nested__: ClassVar[Mapping[str, str]] = {"redacted": "Redaction"}
    object: Literal["webhook"]
    id: str
    deleted: Literal[True]
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class Document(Record):
    """A document."""

    object: Literal["document"]
    namespace: list[str]
    """1 to 16 texts, from the general to the particular."""
    key: str
    """Its key in the namespace."""
    version: int
    """Counts the changes since it was created: 1, 2, 3 …"""
    created_at: str
    """When the document was created."""
    updated_at: str
    """When it was last put; `touch` leaves that as it is."""
    expires_at: str | None = None
    """When the document expires, by the year 9999 at the latest; left out of one that does not."""
    index: bool | list[str] | None = None
    """What of the value `search` finds it by, if anything: all of it, or what these paths lead to."""
    value: dict[str, Any]
    """The JSON object, or the `fields` of it that were asked for."""


class DocumentChange(TypedDict):
    """A change of documents."""

    op: Literal["put", "touch", "delete", "delete_all", "copy_all", "pop"]
    """`put` creates or replaces a document, `touch` gives one another end, `delete` removes one, `delete_all` all of a namespace and
    below it, `copy_all` puts those under another namespace too, `pop` gives back the last one of a namespace and removes it.
    """
    namespace: Sequence[str]
    """1 to 16 texts, from the general to the particular."""
    key: NotRequired[str]
    """For `put`, `touch` and `delete`. Without one `put` gives the document a key that is greater than all given before: it appends."""
    value: NotRequired[Mapping[str, Any]]
    """For `put`, which needs it."""
    index: NotRequired[bool | Sequence[str]]
    """For `put`: what `search` finds the document by: `true` for all texts and numbers of the value, each after the name of its
    member, or paths to some of them, such as `title`, `author.name`, `lines[0].text`, `lines[*].text` or `$` for all. By default it
    is not found. What they lead to has at most 10,000 characters.
    """
    if_version: NotRequired[int]
    """For `put` and `delete`: change nothing unless this is the document's version, 0 for none (409 `version_conflict` otherwise)."""
    if_exists: NotRequired[Literal["replace", "keep"]]
    """For `put` with a key: `keep` leaves a document that is there as it is, and its result says `kept`. `replace` is the default."""
    session_id: NotRequired[str]
    """For `put`: the document goes when this session does."""
    ttl_seconds: NotRequired[float | Literal["never"]]
    """For `put` and `touch`: seconds until the document expires, however many and with fractions, or `never`. A `put` without it makes
    a document that does not expire; a `touch` without it counts from now what the document was given last.
    """
    order: NotRequired[Literal["asc", "desc"]]
    """`asc` begins with the first, by key unless `order_by` says otherwise."""
    to: NotRequired[Sequence[str]]
    """For `copy_all`: the namespace that takes the place of `namespace` in the copies. A copy has the key, value, index, session and
    end of its original, and replaces what is there. Neither namespace can be below the other.
    """
    filter: NotRequired[Mapping[str, Any]]
    cursor: NotRequired[str]
    """For `copy_all` and `delete_all` with a `filter`: the `next_cursor` of the operation before. A batch looks at 1,000 documents at
    most for all of its operations, or at fewer large ones, and deletes or copies 200 of them.
    """


class DocumentChangeResults(Record):
    """What the operations have done."""

    __nested__: ClassVar[Mapping[str, str]] = {"redacted": "Redaction"}
    object: Literal["list"]
    data: list[DocumentWritten | DocumentTouched | DocumentsDeleted | DocumentsCopied | Document | None]
    """The result of each operation, in their order."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class DocumentCount(Record):
    """How many documents there are."""

    count: int


class DocumentHead(Record):
    """A document without its value (`values: false`)."""

    object: Literal["document"]
    namespace: list[str]
    """1 to 16 texts, from the general to the particular."""
    key: str
    """Its key in the namespace."""
    version: int
    """Counts the changes since it was created: 1, 2, 3 …"""
    created_at: str
    """When the document was created."""
    updated_at: str
    """When it was last put; `touch` leaves that as it is."""
    expires_at: str | None = None
    """When the document expires, by the year 9999 at the latest; left out of one that does not."""
    index: bool | list[str] | None = None
    """What of the value `search` finds it by, if anything: all of it, or what these paths lead to."""


class DocumentHeadPage(Record):
    """A page of documents without their values."""

    __nested__: ClassVar[Mapping[str, str]] = {"data": "DocumentHead"}
    object: Literal["list"]
    has_more: bool
    """Whether there may be more after this page, which can be short or empty."""
    next_cursor: str | None
    """The next page's `cursor`; null on the last page."""
    data: list[DocumentHead]


class DocumentMatch(Record):
    """A document that was found by meaning."""

    object: Literal["document"]
    namespace: list[str]
    """1 to 16 texts, from the general to the particular."""
    key: str
    """Its key in the namespace."""
    version: int
    """Counts the changes since it was created: 1, 2, 3 …"""
    created_at: str
    """When the document was created."""
    updated_at: str
    """When it was last put; `touch` leaves that as it is."""
    expires_at: str | None = None
    """When the document expires, by the year 9999 at the latest; left out of one that does not."""
    index: bool | list[str] | None = None
    """What of the value `search` finds it by, if anything: all of it, or what these paths lead to."""
    value: dict[str, Any]
    """The JSON object, or the `fields` of it that were asked for."""
    score: float
    """0 to 1, as of memories: 0.7 and more is about the query."""


class DocumentMatchHead(Record):
    """A document that was found by meaning, without its value (`values: false`)."""

    object: Literal["document"]
    namespace: list[str]
    """1 to 16 texts, from the general to the particular."""
    key: str
    """Its key in the namespace."""
    version: int
    """Counts the changes since it was created: 1, 2, 3 …"""
    created_at: str
    """When the document was created."""
    updated_at: str
    """When it was last put; `touch` leaves that as it is."""
    expires_at: str | None = None
    """When the document expires, by the year 9999 at the latest; left out of one that does not."""
    index: bool | list[str] | None = None
    """What of the value `search` finds it by, if anything: all of it, or what these paths lead to."""
    score: float
    """0 to 1, as of memories: 0.7 and more is about the query."""


class DocumentPage(Record):
    """A page of documents."""

    __nested__: ClassVar[Mapping[str, str]] = {"data": "Document"}
    object: Literal["list"]
    has_more: bool
    """Whether there may be more after this page, which can be short or empty."""
    next_cursor: str | None
    """The next page's `cursor`; null on the last page."""
    data: list[Document]


class DocumentQueryOperation(TypedDict):
    """What to look for."""

    op: Literal["get", "list", "search", "count", "namespaces"]
    """`get` gives one document, `list` those of a namespace, `search` those of a namespace and below it that a query is about, `count`
    how many there are, `namespaces` those that have documents.
    """
    namespace: NotRequired[Sequence[str]]
    """1 to 16 texts, from the general to the particular."""
    key: NotRequired[str]
    """For `get`."""
    deep: NotRequired[bool]
    """For `list` and `count`: also all namespaces below."""
    order: NotRequired[Literal["asc", "desc"]]
    """`asc` begins with the first, by key unless `order_by` says otherwise."""
    order_by: NotRequired[Literal["key", "updated_at"]]
    """For `list` that is not `deep`: `updated_at` lists documents as they were put last, `key` is the default. One that is put again
    between two pages comes at the end of the list.
    """
    after: NotRequired[str]
    """For `list` that is not `deep`: only keys after this one."""
    before: NotRequired[str]
    """For `list` that is not `deep`: only keys before this one."""
    filter: NotRequired[Mapping[str, Any]]
    query: NotRequired[str]
    """For `search`: what the documents are to be about."""
    threshold: NotRequired[float]
    """For `search`: the lowest score of a document that is found; default 0."""
    prefix: NotRequired[Sequence[str]]
    """For `namespaces`: how they begin; `*` is any text."""
    suffix: NotRequired[Sequence[str]]
    """For `namespaces`: how they end; `*` is any text."""
    max_depth: NotRequired[int]
    """For `namespaces`: longer ones are cut to this length."""
    limit: NotRequired[int]
    """How many at most; default 100, for `search` 10. Of a search limit and offset together are at most 200."""
    offset: NotRequired[int]
    """How many to leave out first; default 0. None on further pages: what is left of it is in the `cursor`."""
    cursor: NotRequired[str]
    """The `next_cursor` of the page before."""
    values: NotRequired[bool]
    """For `get`, `list` and `search`: `false` leaves the values out; default true."""
    fields: NotRequired[Sequence[str]]
    """For `get`, `list` and `search`: dotted paths; of each value only the members that they lead to are given, as far as they are
    there.
    """


class DocumentQueryResults(Record):
    """What the operations have found."""

    object: Literal["list"]
    data: list[Document | DocumentHead | DocumentPage | DocumentHeadPage | DocumentSearchPage | DocumentSearchHeadPage | DocumentCount | NamespacePage | None]
    """The result of each operation, in their order."""


class DocumentSearchHeadPage(Record):
    """The best documents first, without their values."""

    __nested__: ClassVar[Mapping[str, str]] = {"data": "DocumentMatchHead"}
    object: Literal["list"]
    has_more: bool
    """Whether there may be more after this page: at the `offset` of this one plus the length of `data`, or with a filter among
    documents that were not looked at.
    """
    data: list[DocumentMatchHead]


class DocumentSearchPage(Record):
    """The best documents first; of equal ones those that were put last."""

    __nested__: ClassVar[Mapping[str, str]] = {"data": "DocumentMatch"}
    object: Literal["list"]
    has_more: bool
    """Whether there may be more after this page: at the `offset` of this one plus the length of `data`, or with a filter among
    documents that were not looked at.
    """
    data: list[DocumentMatch]


class DocumentTouched(Record):
    """What `touch` has renewed."""

    key: str
    version: int
    expires_at: str | None
    """When the document expires now; null if it does not."""


class DocumentWritten(Record):
    """What `put` has written."""

    key: str
    version: int
    kept: Literal[True] | None = None
    """Set where `if_exists` kept the document that was there: this is its version."""


class DocumentsCopied(Record):
    """How many documents were copied."""

    copied: int
    next_cursor: str | None
    """The `cursor` of the operation that continues here; null once all is copied."""


class DocumentsDeleted(Record):
    """How many documents were deleted."""

    deleted: int
    next_cursor: str | None = None
    """The `cursor` of the operation that continues here, of a `delete_all` with a `filter`; null once all is looked at."""


class EmbeddingTrial(Record):
    """Whether a provider works, and what it does with a pair of texts."""

    object: Literal["embedding_trial"]
    works: bool
    """Whether it answers with vectors that can be used."""
    reason: str | None
    """Why it does not work."""
    param: str | None
    """The setting that is most likely wrong."""
    duration_ms: float | None
    """Milliseconds that the vector of `query` took."""
    vector_length: int | None
    """Length of the provider's own vectors; null for the built-in one."""
    separation: float | None
    """Share of the probes that it puts on the right side; null for the built-in one."""
    score: float | None
    """The score that a search for `query` would give to `content`, 0.0 to 1.0."""


class EmbeddingTryEmbedding(TypedDict):
    """The embedding provider. A change is tried before it is set; one of provider, model, prefix or length embeds all memories again
    in the background.
    """

    provider: NotRequired[Literal["builtin", "words", "openai", "local"] | None]
    """`builtin` is a neural network of a hundred languages; `words` finds by words alone; `openai` is any server that speaks
    `/v1/embeddings`. `local` is read as `builtin`.
    """
    base_url: NotRequired[str | None]
    """Address of the provider's server, up to and including `/v1`. A key that was set for another server is not sent to it; an address
    of a cloud metadata service is refused.
    """
    model: NotRequired[str | None]
    """The provider's model."""
    api_key: NotRequired[str | None]
    """The provider's key. It is kept, and never shown."""
    query_prefix: NotRequired[str | None]
    """Text that the model expects before a query."""
    document_prefix: NotRequired[str | None]
    """Text that the model expects before a memory."""
    dimensions: NotRequired[int | None]
    """Length of the vectors to ask the provider for; null for the model's own. For models that can shorten their vectors; without it
    one with vectors of more than 1536 numbers is asked for 1536.
    """
    relevant_cosine: NotRequired[float | None]
    """From which cosine similarity to the query a memory counts as relevant, with a score of 0.7; null while it is not known, and for
    the built-in provider. One that is set takes the place of what the probes measure.
    """


class ForgetResult(Record):
    """What was forgotten, or would be."""

    __nested__: ClassVar[Mapping[str, str]] = {"examples": "Memory", "redacted": "Redaction"}
    object: Literal["forget_result"]
    dry_run: bool
    """true where nothing was deleted."""
    count: int
    """How many memories were deleted, or would be."""
    examples: list[Memory] | None = None
    """Up to 10 of them, newest first; of a dry run alone."""
    token: str | None = None
    """Token of a dry run. With the same filter and `dry_run: false` exactly those go that it counted: if one was changed or is gone
    since, it is 409 `version_conflict` and nothing goes.
    """
    has_more: bool
    """true where more pass: ask again for these."""
    partial: Literal[True] | None = None
    """Set where 10,000 memories were compared with the filter, and others were not: there may be better ones."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class Health(Record):
    """What the server can do now."""

    __nested__: ClassVar[Mapping[str, str]] = {"certificate": "HealthCertificate"}
    status: Literal["ready", "degraded"]
    """`degraded` while the store cannot be read or takes no changes, the vector index has failed, or the server is stopping."""
    reason: str | None = None
    """Why it is degraded."""
    version: str
    """Version of Cairn."""
    durability: Literal["strict", "relaxed"]
    """Whether a write is answered after it is on disk (`strict`) or before (`relaxed`)."""
    region: str | None = None
    """Label of this deployment, if it has one."""
    max_body_bytes: int
    """Largest body of a request, as it comes out of gzip (setting `max_body_bytes`)."""
    certificate: HealthCertificate | None = None
    """The certificate of a server that gets its own (`--domain`)."""


class HealthCertificate(Record):
    """The certificate of a server that gets its own (`--domain`)."""

    expires_at: str | None
    """When it ends."""
    overdue: bool
    """True if it should have been renewed long before."""
    error: str | None
    """Why the last order failed; null once one has succeeded since."""


class History(Record):
    """What the servers of this store have seen. It is kept over a restart; a crash forgets the last minute, which other servers do not
    know yet.
    """

    __nested__: ClassVar[Mapping[str, str]] = {"points": "HistoryPoint"}
    bucket_seconds: int
    """Seconds that each point covers."""
    points: list[HistoryPoint]
    """Oldest first; the last one is still being counted."""


class HistoryPoint(Record):
    """What happened in one part of the time span."""

    at: str
    """When this part of the time span began."""
    requests: int
    """Requests answered."""
    errors: int
    """Requests answered with a status of 500 or more."""
    changes: int
    """Changes made, by requests and by the server itself."""
    memories: int
    """Memories created."""
    searches: int
    """Searches in memories and turns, and contexts."""
    p50_ms: float | None
    """Milliseconds within which half of the requests were answered; null where there was none."""
    p99_ms: float | None
    """Milliseconds within which 99 % of the requests were answered; null where there was none."""


class Memory(Record):
    """A memory."""

    __nested__: ClassVar[Mapping[str, str]] = {"redacted": "Redaction"}
    object: Literal["memory"]
    id: str
    """`mem_` and 12 characters."""
    session_id: str | None
    """The session it was added to, which may have expired since; null without one."""
    user_id: str | None
    """The user it belongs to; null for an agent's alone."""
    agent_id: str | None
    """The agent it belongs to; null for a user's alone."""
    content: str
    """What to remember: 1 to 10000 characters; more is 413 `content_too_large`."""
    type: str
    """Standard types: fact, preference, event, policy, observation, general; others are accepted."""
    tags: list[str]
    """Tags."""
    metadata: dict[str, Any]
    """Custom metadata. At most 64 KiB as JSON."""
    external_id: str | None
    """The name that you gave it."""
    source: Literal["user", "agent", "tool", "import"]
    """Who says so."""
    importance: float | None
    """How important you said it is."""
    pinned: bool
    """Whether every context of its owner shows it."""
    occurred_at: str | None
    """When it happened, if that was given."""
    created_at: str
    """When the memory was added."""
    updated_at: str
    """When it was last changed."""
    expires_at: str | None
    """When it expires; null: never."""
    valid_from: str | None
    """Since when it holds; null: since ever."""
    valid_until: str | None
    """Until when it holds; null: for ever."""
    supersedes: list[str]
    """Ids of the memories whose place it took; some may be gone."""
    superseded_by: str | None
    """The memory that took its place."""
    superseded_at: str | None
    """When that one took it, or will."""
    secrets: list[str] | None = None
    """Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """
    embedding_id: str | None = None
    """ID of the vector, which changes with the content; left out when there is none."""
    vector_available: bool
    """Whether it has a vector. Until one is made, its words find it."""


class MemoryContent(Record):
    """A content that a memory has or had."""

    content: str
    """What to remember: 1 to 10000 characters; more is 413 `content_too_large`."""
    written_at: str
    """When it was written."""
    actor: str | None
    """First characters of the API key that wrote it; null where that was not noted."""
    reason: str | None
    """Why, as given with that change."""


class MemoryExplanation(Record):
    """Why a memory was found, and stands where it does."""

    __nested__: ClassVar[Mapping[str, str]] = {"matches": "MemoryExplanationMatches", "passage": "MemoryExplanationPassage", "recency": "MemoryExplanationRecency", "importance": "MemoryExplanationImportance"}
    semantic: float
    """Similarity in meaning, 0.0 to 1.0: half of the score, and up to three quarters with another provider."""
    lexical: float
    """The share of the query that the memory's words cover, 0.0 to 1.0: the rest of the score."""
    matches: list[MemoryExplanationMatches]
    """At most 50 words, those that cover most of the query, in its order. A word is cut after 64 characters."""
    omitted: int | None = None
    """Number of further matching words, if there are any."""
    passage: MemoryExplanationPassage | None = None
    """Of a content of more than about 100 words: the passage of it that is nearest in meaning, which `semantic` is of. Counted in
    Unicode code points.
    """
    filters: list[str] | None = None
    """The filters of the request, if it has any; the memory has passed them all."""
    recency: MemoryExplanationRecency | None = None
    """With `recency` or `importance_weight`."""
    importance: MemoryExplanationImportance | None = None
    """With `recency` or `importance_weight`."""


class MemoryExplanationImportance(Record):
    """With `recency` or `importance_weight`."""

    importance: float | None
    """Its importance; null, which nobody has said, counts as 0.5."""
    factor: float
    """By what its importance multiplies the score: `ranking_score` is the score times both factors, to six digits."""


class MemoryExplanationMatches(Record):
    word: str
    """A word of the query."""
    matched_by: str
    """`word`: the memory has the word."""
    matched_word: str | None = None
    """The matching word of the memory."""
    share: float
    """Share of the query that this word covers."""


class MemoryExplanationPassage(Record):
    """Of a content of more than about 100 words: the passage of it that is nearest in meaning, which `semantic` is of. Counted in
    Unicode code points.
    """

    start: int
    """Its first character."""
    end: int
    """The character behind its last one."""


class MemoryExplanationRecency(Record):
    """With `recency` or `importance_weight`."""

    age_days: float
    """Since it happened, or was added; 0 for what is to come."""
    factor: float
    """By what its age multiplies the score."""


class MemoryHistory(Record):
    """What a memory said before, and its neighbours in time."""

    __nested__: ClassVar[Mapping[str, str]] = {"data": "MemoryContent"}
    object: Literal["list"]
    data: list[MemoryContent]
    """Newest first, beginning with the present one; of those before as many as the setting `memory_versions_kept` says."""
    supersedes: list[str]
    """Ids of the memories whose place it took; some may be gone."""
    superseded_by: str | None
    """The memory that took its place."""


class MemoryResult(Record):
    """A memory that a search found."""

    __nested__: ClassVar[Mapping[str, str]] = {"explanation": "MemoryExplanation"}
    id: str
    """`mem_` and 12 characters."""
    session_id: str | None
    """The session it was added to, which may have expired since; null without one."""
    user_id: str | None
    """The user it belongs to; null for an agent's alone."""
    agent_id: str | None
    """The agent it belongs to; null for a user's alone."""
    content: str
    """What to remember: 1 to 10000 characters; more is 413 `content_too_large`."""
    type: str
    """Standard types: fact, preference, event, policy, observation, general; others are accepted."""
    source: Literal["user", "agent", "tool", "import"]
    """Who says so."""
    tags: list[str]
    """Tags."""
    score: float
    """0.0 to 1.0, higher is more relevant; from 0.7 on it is about the query."""
    ranking_score: float | None = None
    """With `recency` or `importance_weight`: what it is ordered by, the score after both; never more than the score."""
    created_at: str
    """When the memory was added."""
    explanation: MemoryExplanation | None = None


class MemoryResults(Record):
    """What a search found, best first."""

    __nested__: ClassVar[Mapping[str, str]] = {"data": "MemoryResult"}
    object: Literal["list"]
    query: str
    """The query, as it was sent."""
    data: list[MemoryResult]
    partial: Literal[True] | None = None
    """Set where 10,000 memories were compared with the filter, and others were not: there may be better ones."""
    retrieval_id: str | None = None
    """Where it is logged (`retrieval_log`): for `GET /v1/retrievals/{retrieval_id}` and feedback. Left out where it is not."""


class MemorySearchRecency(TypedDict):
    """Puts what is newer first: orders by `ranking_score`, which is the score × (1 − weight + weight × 2^(−age / half-life)). Ages
    count from `occurred_at`, or else `created_at`, to now or `as_of`. `score` and `threshold` stay as they are.
    """

    half_life_days: float
    """After how many days half of what depends on age is left; with 0 nothing is left of what is not of this moment."""
    weight: float
    """How much depends on age: 0 nothing, 1 everything."""


class NamespacePage(Record):
    """A page of namespaces."""

    object: Literal["list"]
    has_more: bool
    """Whether there may be more after this page, which can be short or empty."""
    next_cursor: str | None
    """The next page's `cursor`; null on the last page."""
    data: list[list[str]]


class NewMemory(TypedDict):
    """A memory to add."""

    session_id: NotRequired[str]
    """The session it belongs to, and with it that session's user and agent: it goes when the session is deleted. Without one,
    `user_id` or `agent_id` is required, unless the API key is bound to one.
    """
    user_id: NotRequired[str]
    """Whose memory it is. With `session_id` it is the user of that session, or left out. Not `.` or `..`, which a path cannot name."""
    agent_id: NotRequired[str]
    """The agent whose memory it is. With `session_id` it is the agent of that session, or left out."""
    content: str
    """What to remember: 1 to 10000 characters; more is 413 `content_too_large`."""
    type: NotRequired[str]
    """Standard types: fact, preference, event, policy, observation, general; others are accepted. Default `general`."""
    tags: NotRequired[Sequence[str]]
    """Tags, for filters."""
    metadata: NotRequired[Mapping[str, Any]]
    """Custom metadata; default `{}`. At most 64 KiB as JSON."""
    embed: NotRequired[bool]
    """false: keep it out of semantic search."""
    external_id: NotRequired[str]
    """A name of your own, such as the id of a row. No two memories of a user have the same, or of an agent where there is no user; it
    is free again once its memory is deleted or has expired.
    """
    if_exists: NotRequired[Literal["error", "update", "return"]]
    """What happens when the owner has a memory of that `external_id`: `error` is 409 `already_exists`; `return` answers 200 with it,
    as it is; `update` answers 200 once its content, and what else is sent, has taken the place of what was there. Default `error`.
    """
    on_duplicate: NotRequired[Literal["allow", "return", "update"]]
    """What happens when the owner has a current memory of the same type that says the same, whatever its case, spaces and forms of
    characters: `return` answers 200 with it, as it is, and `duplicate: true`; `update` gives it the tags, metadata, times and what
    else is sent before. A memory of that `external_id` comes first. Of a session without a user the memories of that session are
    compared. Default `allow`.
    """
    source: NotRequired[Literal["user", "agent", "tool", "import"]]
    """Who says so; `agent` unless given. A context shows it."""
    importance: NotRequired[float]
    """How important it is to you, 0.0 to 1.0."""
    pinned: NotRequired[bool]
    """Show it first in every context of its user, whatever the query: at most 20 current ones of a user, more are 409
    `version_conflict`. Of a session without a user, in that session's contexts.
    """
    occurred_at: NotRequired[str]
    """When it happened, for history that is moved in: at most a day ahead. ISO 8601, such as `2027-05-07T08:00:00Z`."""
    expires_at: NotRequired[str]
    """When it expires: from that moment on nothing shows it, and it is removed with the event `memory.expired`. ISO 8601, such as
    `2027-05-07T08:00:00Z`.
    """
    ttl_seconds: NotRequired[int]
    """Instead of `expires_at`: seconds until then, from now."""
    valid_from: NotRequired[str]
    """Since when it holds; since ever unless given, or since now where it supersedes another one. ISO 8601, such as
    `2027-05-07T08:00:00Z`.
    """
    valid_until: NotRequired[str]
    """Until when it holds: from then on it is past, and stays. ISO 8601, such as `2027-05-07T08:00:00Z`."""
    supersedes: NotRequired[Sequence[str]]
    """Ids of memories of the same owner whose place it takes: each is past from `valid_from` on, and current again if this one is
    deleted or expires. One that is superseded already is 409 `version_conflict`.
    """
    reason: NotRequired[str]
    """Why; for the history of the memory and the trace."""
    similar: NotRequired[NewMemorySimilar]
    """Have the answer list the owner's current memories that are nearest in meaning, as they were before: one that says otherwise by
    now can be superseded with the next call. Needs a key with the scope `read`.
    """


class NewMemorySimilar(TypedDict):
    """Have the answer list the owner's current memories that are nearest in meaning, as they were before: one that says otherwise by
    now can be superseded with the next call. Needs a key with the scope `read`.
    """

    limit: NotRequired[int]
    """How many; default 5."""
    threshold: NotRequired[float]
    """Lowest score; default 0.7."""


class NewStepOutput(TypedDict):
    type: Literal["text", "audio", "image", "tool_result", "error", "tool_response"]
    """What went out; `tool_response` is read as `tool_result`."""
    content: str
    """The text, a transcription, a description or what a tool was given or gave."""


class NewTurn(TypedDict):
    """A turn to log."""

    input: TurnInputParam
    output: NewTurnOutput
    reasoning: NotRequired[str]
    """Why the agent answered so."""
    metadata: NotRequired[Mapping[str, Any]]
    """Custom metadata; default `{}`. At most 64 KiB as JSON."""
    external_id: NotRequired[str]
    """A name of your own, such as the id of a message, unique in its session: where a turn has it already that one is answered, as it
    is, with 200, and nothing is changed.
    """
    occurred_at: NotRequired[str]
    """When it happened, for history that is moved in: contexts and timelines go by it, lists by `created_at`. At most a day in the
    future.
    """
    state_before: NotRequired[Mapping[str, Any]]
    """A snapshot; logging a turn never changes the state."""
    state_after: NotRequired[Mapping[str, Any]]
    """A snapshot; logging a turn never changes the state."""


class NewTurnOutput(TypedDict):
    type: Literal["text", "audio", "image", "tool_result", "error", "tool_response"]
    """What went out; `tool_response` is read as `tool_result`."""
    content: str
    """The text, a transcription, a description or what a tool was given or gave."""


class OAuthGrant(Record):
    """An application that was connected."""

    __nested__: ClassVar[Mapping[str, str]] = {"key": "ApiKey"}
    object: Literal["oauth_grant"]
    key: ApiKey
    redirect_to: str
    """Where to send the browser: it has the code, which is good for a minute, once."""


class OAuthRequest(Record):
    """An application that asks for access."""

    object: Literal["oauth_request"]
    client_id: str
    client_name: str
    """The name that the application gives itself."""
    client_host: str | None
    """Host of its document; null for a registration, which anybody can make under any name."""
    redirect_host: str
    """Host that gets the answer."""
    redirects_to_this_machine: bool
    """Whether any program on the machine of the browser could be that host."""
    resource: str
    scopes: list[Literal["read", "write"]]
    refreshes: bool
    """Whether it stays connected for longer than an hour."""
    denial: str
    """Where to send the browser if the answer is no."""


class Omitted(Record):
    """What was found within the limits and did not fit. Set where `token_count` is."""

    memories: int
    """How many memories did not fit."""
    pinned: int
    """How many pinned memories did not fit."""
    turns: int
    """How many turns did not fit."""
    state: int
    """1 where the state did not fit; it stands whole or not at all."""


class RateLimit(Record):
    """How often the key may be used."""

    per_minute: int
    """Requests per minute."""
    burst: int
    """Requests allowed at once after a pause."""


class RateLimitParam(TypedDict):
    """How often the key may be used."""

    per_minute: int
    """Requests per minute."""
    burst: int
    """Requests allowed at once after a pause."""


class RecentTurn(Record):
    """A turn, in short."""

    __nested__: ClassVar[Mapping[str, str]] = {"input": "TurnInput", "output": "TurnOutput"}
    id: str
    """`turn_` and 12 characters."""
    input: TurnInput
    output: TurnOutput
    created_at: str
    """When the turn was logged."""
    occurred_at: str | None = None
    """When it happened, if that was given: for history that was moved in."""
    truncated: Literal[True] | None = None
    """Set where not all of it fitted: its text ends with `…`. Left out for others."""


class Redaction(Record):
    """A kind of secret that was taken out at one place of a request."""

    path: str
    """Where in the request it was."""
    kind: str
    """What it was."""
    count: int
    """How many of the kind were there."""


class ReplayChange(Record):
    """Something that is not as it was."""

    kind: Literal["memory", "turn", "state", "request"]
    """What has changed."""
    id: str | None
    """The memory or the turn; null for others, and for memories that are `hidden`."""
    change: Literal["edited", "rewritten", "rolled_back", "gone", "hidden"]
    """`edited`: shown with the content that it had then. `rewritten`: that content is no longer kept, and the present one is shown.
    `rolled_back`: a turn that is hidden now, shown as it was. `gone`: deleted, expired, or no longer kept, and left out; of the
    `request`, which was too long to keep, `max_tokens` and `format` are. `hidden`: memories of other users or agents, which this
    key may not see, were there too.
    """


class Retrieval(Record):
    """What a search or a context found for a query."""

    __nested__: ClassVar[Mapping[str, str]] = {"memories": "RetrievedMemory", "feedback": "RetrievalFeedback", "redacted": "Redaction"}
    object: Literal["retrieval"]
    id: str
    """`ret_` and 12 characters."""
    session_id: str | None
    """The session that the search or the context was of; null for a search that named none."""
    user_id: str | None
    """The user of the session, or of a search that named none."""
    agent_id: str | None
    """The agent of the session, or of a search that named none."""
    operation: Literal["search", "context", "turn_search"]
    """What was asked for: `search` is one of memories."""
    query: str
    """The query, its first 1000 characters."""
    limit: int
    """How many memories were asked for, or turns."""
    threshold: float
    """The lowest score that was asked for; 0 for a context."""
    filtered: bool
    """Whether a filter narrowed what was looked for: `type`, `types`, `tags`, `filter`, or times."""
    request: dict[str, Any] | None
    """What else was asked for, as it was sent; null where that has more than 4000 characters, or was not kept."""
    memories: list[RetrievedMemory]
    """What was found, best first; for a bound key, only memories of its user and agent."""
    state_version: int | None
    """The version of the state that a context showed; null for a search."""
    turns: list[str]
    """Ids of the turns of a context, newest first, before a budget left any out, or of those that a search in turns found, best first."""
    feedback: RetrievalFeedback
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """
    actor: str
    """First 8 characters of the API key that asked."""
    turn_id: str | None
    """The turn that came of it: the next one of the session; null while there is none."""
    created_at: str
    """When it was found, give or take a tenth of a second."""


class RetrievalFeedback(Record):
    """What was said of it last; null until then."""

    useful: list[str]
    """Ids of memories and turns of the retrieval that helped."""
    not_useful: list[str]
    """Ids of those that did not."""
    note: str | None
    """The note."""
    created_at: str
    """When it was given."""


class RetrievedMemory(Record):
    """A memory that was found."""

    id: str
    """The memory, which may have been deleted since."""
    score: float
    """Its score in the answer, 0.0 to 1.0."""
    content_preview: str | None
    """The first 100 characters of what the memory says now; null when it is gone."""
    status: Literal["unchanged", "changed", "gone"]
    """`unchanged` since, `changed`, or `gone`: deleted, expired or erased."""


class Session(Record):
    """A session."""

    __nested__: ClassVar[Mapping[str, str]] = {"redacted": "Redaction"}
    object: Literal["session"]
    id: str
    """`sess_` and 12 characters."""
    agent_id: str
    """Identifies the agent."""
    user_id: str | None
    """The user the agent acts for; null if none was given."""
    external_id: str | None = None
    """The name that you gave it; left out if there is none."""
    created_at: str
    """When the session was created."""
    occurred_at: str | None = None
    """When the conversation began, if that was given: for history that was moved in."""
    updated_at: str
    """When its state, metadata, turns or memories last changed."""
    state: dict[str, Any]
    """The current state."""
    state_version: int
    """Version of `state`; 0 is the initial state."""
    metadata: dict[str, Any]
    """Custom metadata. A fork has `forked_from` and `forked_version` here. At most 64 KiB as JSON."""
    memory_count: int
    """Memories that were added to the session, without those that a fork shows of the session it was forked from."""
    turn_count: int
    """Turns in the session that are shown: with those of the session it was forked from, without those that a rollback has hidden."""
    index_turns: Literal["off", "words", "meaning"] | None = None
    """By what its turns are found, if that was given; left out where the setting `index_turns` says it."""
    secrets: list[str] | None = None
    """Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """
    ttl_expires_at: str | None
    """When the session expires; null if it does not."""
    first_input: str | None = None
    """In a list with `include` `first_input`: the input of the first turn that was logged in the session, at most 200 characters of
    it; left out where there is none. Turns that a fork shows of the session it was forked from do not count; those that a rollback
    has hidden do.
    """
    rollback_count: int | None = None
    """In a list with `include` `rollback_count`: how often the session was rolled back, since Cairn counts it."""


class SessionFork(Record):
    """Another session that starts from a version of this one."""

    session_id: str
    """The new session."""
    version: int
    """The version of this session that it starts from."""
    created_at: str
    """When the session was forked."""


class Settings(Record):
    """Every setting with its value, its default and where the value comes from."""

    __nested__: ClassVar[Mapping[str, str]] = {"memories_on_expiry": "SettingsMemoriesOnExpiry", "endless_sessions_for_all": "SettingsEndlessSessionsForAll", "trace_retention_days": "SettingsTraceRetentionDays", "retrieval_log": "SettingsRetrievalLog", "retrieval_log_days": "SettingsRetrievalLogDays", "index_turns": "SettingsIndexTurns", "index_turns_share": "SettingsIndexTurnsShare", "secrets": "SettingsSecrets", "secret_kinds": "SettingsSecretKinds", "max_body_bytes": "SettingsMaxBodyBytes", "region": "SettingsRegion", "state_versions_kept": "SettingsStateVersionsKept", "memory_versions_kept": "SettingsMemoryVersionsKept", "max_store_bytes": "SettingsMaxStoreBytes", "oauth_clients": "SettingsOauthClients", "backups": "SettingsBackups", "webhooks": "SettingsWebhooks", "embedding": "SettingsEmbedding"}
    object: Literal["settings"]
    memories_on_expiry: SettingsMemoriesOnExpiry
    """What becomes of the memories of a session that expires."""
    endless_sessions_for_all: SettingsEndlessSessionsForAll
    """Whether keys without the scope `admin` may create sessions that do not expire (`ttl_seconds: "never"`). Such sessions stay until
    they are deleted. Turned off, it changes no session that is there.
    """
    trace_retention_days: SettingsTraceRetentionDays
    """How many days traces made with an enterprise key are kept."""
    retrieval_log: SettingsRetrievalLog
    """Whether the server logs which memories a search or a context found, with the query. `GET /v1/sessions/{session_id}/retrievals`
    lists them, and `GET /v1/retrievals` the searches that named no session. They are kept for `retrieval_log_days`, and no longer
    than the session.
    """
    retrieval_log_days: SettingsRetrievalLogDays
    """How many days the log of retrievals keeps what was found, with the query. A change concerns what is logged from then on."""
    index_turns: SettingsIndexTurns
    """By what searches find turns: `off`, by their `words`, or by `meaning` too. `meaning` embeds every turn, passage by passage. A
    session can be created with another one. After a change the turns that are there follow in the background; `/v1/stats` says how
    far that is.
    """
    index_turns_share: SettingsIndexTurnsShare
    """The share of its time that the server indexes turns in the background, 0.01 to 1. Both the turns that are there after a change
    of `index_turns` and the vectors of new ones are made within it.
    """
    secrets: SettingsSecrets
    """What becomes of secrets in turns, states, memories and documents that clients send: `off`, `tag`, `redact` or `block`. `tag`
    stores them and marks the record with their kinds; `redact` stores `[redacted:KIND]` in their place, and the answer says so;
    `block` refuses the request. Records that are there stay as they are.
    """
    secret_kinds: SettingsSecretKinds
    """What counts as a secret: one or more of keys, cards, email, phone, separated by commas. `keys` are keys and tokens of known
    forms, private keys, JWTs and passwords in URLs; `cards` numbers of cards; `email` addresses and `phone` telephone numbers.
    """
    max_body_bytes: SettingsMaxBodyBytes
    """Largest body of a request."""
    region: SettingsRegion
    """A label for this deployment, shown in `/health` to everybody. Without control characters."""
    state_versions_kept: SettingsStateVersionsKept
    """How many of the newest versions of a session's state are kept, including the current one; version 0 is always kept. Each new
    version removes up to 8 older ones, so a lower number takes effect as states change.
    """
    memory_versions_kept: SettingsMemoryVersionsKept
    """How many contents that a memory had are kept, besides the present one, for its history. A lower number takes effect with the
    next change of each memory's content.
    """
    max_store_bytes: SettingsMaxStoreBytes
    """How many bytes the store may take on disk; beyond that new records are refused with 503. `cairn_store_used_bytes` in `/metrics`
    says how many it takes. New sessions, states, turns and memories are answered 503 `service_unavailable`, and so is a PATCH of
    one that does not make it smaller, and a request with an Idempotency-Key whose answer has no space to be kept; deletion, keys,
    webhooks, settings, expiry and retention keep working. The size is checked twice a second and after large writes, so it can
    exceed the limit slightly.
    """
    oauth_clients: SettingsOauthClients
    """Applications that may ask for access by OAuth: any, or known and hosts such as notes.example.com, separated by commas. `known`
    are those whose documents are built in; a host is where an application has its document. Unless it is `any`, no application can
    register itself. Those that are connected stay connected.
    """
    backups: SettingsBackups
    """Backups that the server makes by itself."""
    webhooks: SettingsWebhooks
    """How events are delivered, from the next attempt on."""
    embedding: SettingsEmbedding
    """The embedding provider. A change is tried before it is set; one of provider, model, prefix or length embeds all memories again
    in the background.
    """


class SettingsBackups(Record):
    """Backups that the server makes by itself."""

    __nested__: ClassVar[Mapping[str, str]] = {"schedule": "SettingsBackupsSchedule", "keep": "SettingsBackupsKeep", "keep_days": "SettingsBackupsKeepDays", "copy_to": "SettingsBackupsCopyTo"}
    schedule: SettingsBackupsSchedule
    """When the server makes a backup by itself: a time of day in UTC such as 03:00, a day and a time such as sun 03:00, or a wait of
    10m to 31d such as 6h; null or empty for never. A backup of any kind that was made since its time counts as one. One that fails
    is tried again after 5 minutes, later after an hour. Not for a store on PostgreSQL, which has backups of its own.
    """
    keep: SettingsBackupsKeep
    """How many backups of the schedule are kept; older ones are deleted once a newer one is complete."""
    keep_days: SettingsBackupsKeepDays
    """How many days a backup of the schedule is kept; the newest always is. Null: as many as `backups.keep` says, however old."""
    copy_to: SettingsBackupsCopyTo
    """A bucket that the newest backup is copied to: s3:// with the name of a bucket and, where wanted, a prefix, such as
    s3://backups/cairn; null or empty for none. It keeps as many copies as `backups.keep` and `backups.keep_days` say. The variables
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and, for a server that is not Amazon's, AWS_ENDPOINT_URL give the access.
    """


class SettingsBackupsCopyTo(Record):
    """A bucket that the newest backup is copied to: s3:// with the name of a bucket and, where wanted, a prefix, such as
    s3://backups/cairn; null or empty for none. It keeps as many copies as `backups.keep` and `backups.keep_days` say. The variables
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and, for a server that is not Amazon's, AWS_ENDPOINT_URL give the access.
    """

    value: str | None
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsBackupsKeep(Record):
    """How many backups of the schedule are kept; older ones are deleted once a newer one is complete."""

    value: int
    default: int | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsBackupsKeepDays(Record):
    """How many days a backup of the schedule is kept; the newest always is. Null: as many as `backups.keep` says, however old."""

    value: int | None
    default: int | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsBackupsSchedule(Record):
    """When the server makes a backup by itself: a time of day in UTC such as 03:00, a day and a time such as sun 03:00, or a wait of
    10m to 31d such as 6h; null or empty for never. A backup of any kind that was made since its time counts as one. One that fails
    is tried again after 5 minutes, later after an hour. Not for a store on PostgreSQL, which has backups of its own.
    """

    value: str | None
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsChangesBackups(TypedDict):
    """Backups that the server makes by itself."""

    schedule: NotRequired[str | None]
    """When the server makes a backup by itself: a time of day in UTC such as 03:00, a day and a time such as sun 03:00, or a wait of
    10m to 31d such as 6h; null or empty for never. A backup of any kind that was made since its time counts as one. One that fails
    is tried again after 5 minutes, later after an hour. Not for a store on PostgreSQL, which has backups of its own.
    """
    keep: NotRequired[int | None]
    """How many backups of the schedule are kept; older ones are deleted once a newer one is complete."""
    keep_days: NotRequired[int | None]
    """How many days a backup of the schedule is kept; the newest always is. Null: as many as `backups.keep` says, however old."""
    copy_to: NotRequired[str | None]
    """A bucket that the newest backup is copied to: s3:// with the name of a bucket and, where wanted, a prefix, such as
    s3://backups/cairn; null or empty for none. It keeps as many copies as `backups.keep` and `backups.keep_days` say. The variables
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and, for a server that is not Amazon's, AWS_ENDPOINT_URL give the access.
    """


class SettingsChangesEmbedding(TypedDict):
    """The embedding provider. A change is tried before it is set; one of provider, model, prefix or length embeds all memories again
    in the background.
    """

    provider: NotRequired[Literal["builtin", "words", "openai", "local"] | None]
    """`builtin` is a neural network of a hundred languages; `words` finds by words alone; `openai` is any server that speaks
    `/v1/embeddings`. `local` is read as `builtin`.
    """
    base_url: NotRequired[str | None]
    """Address of the provider's server, up to and including `/v1`. A key that was set for another server is not sent to it; an address
    of a cloud metadata service is refused.
    """
    model: NotRequired[str | None]
    """The provider's model."""
    api_key: NotRequired[str | None]
    """The provider's key. It is kept, and never shown."""
    query_prefix: NotRequired[str | None]
    """Text that the model expects before a query."""
    document_prefix: NotRequired[str | None]
    """Text that the model expects before a memory."""
    dimensions: NotRequired[int | None]
    """Length of the vectors to ask the provider for; null for the model's own. For models that can shorten their vectors; without it
    one with vectors of more than 1536 numbers is asked for 1536.
    """
    relevant_cosine: NotRequired[float | None]
    """From which cosine similarity to the query a memory counts as relevant, with a score of 0.7; null while it is not known, and for
    the built-in provider. One that is set takes the place of what the probes measure.
    """


class SettingsChangesWebhooks(TypedDict):
    """How events are delivered, from the next attempt on."""

    allow_private: NotRequired[bool | None]
    """Whether webhooks may lead into private networks, and to this machine wherever the server listens. Everybody with an admin key
    can then make the server call addresses that only it can reach. Addresses of cloud metadata services stay refused.
    """
    timeout: NotRequired[str | None]
    """How long a receiver has to answer an attempt: a time such as 15s or 500ms, of at most 1h."""
    retry_schedule: NotRequired[str | None]
    """The waits before each further attempt: times such as 200ms,5s,5m,2h: at most 20, and 7d in all. A wait that has begun stays as
    it is.
    """


class SettingsEmbedding(Record):
    """The embedding provider. A change is tried before it is set; one of provider, model, prefix or length embeds all memories again
    in the background.
    """

    __nested__: ClassVar[Mapping[str, str]] = {"provider": "SettingsEmbeddingProvider", "base_url": "SettingsEmbeddingBaseUrl", "model": "SettingsEmbeddingModel", "api_key": "SettingsEmbeddingApiKey", "query_prefix": "SettingsEmbeddingQueryPrefix", "document_prefix": "SettingsEmbeddingDocumentPrefix", "dimensions": "SettingsEmbeddingDimensions", "relevant_cosine": "SettingsEmbeddingRelevantCosine", "state": "SettingsEmbeddingState", "vectors": "SettingsEmbeddingVectors"}
    provider: SettingsEmbeddingProvider
    """`builtin` is a neural network of a hundred languages; `words` finds by words alone; `openai` is any server that speaks
    `/v1/embeddings`. `local` is read as `builtin`.
    """
    base_url: SettingsEmbeddingBaseUrl
    """Address of the provider's server, up to and including `/v1`. A key that was set for another server is not sent to it; an address
    of a cloud metadata service is refused.
    """
    model: SettingsEmbeddingModel
    """The provider's model."""
    api_key: SettingsEmbeddingApiKey
    """The provider's key. It is kept, and never shown."""
    query_prefix: SettingsEmbeddingQueryPrefix
    """Text that the model expects before a query."""
    document_prefix: SettingsEmbeddingDocumentPrefix
    """Text that the model expects before a memory."""
    dimensions: SettingsEmbeddingDimensions
    """Length of the vectors to ask the provider for; null for the model's own. For models that can shorten their vectors; without it
    one with vectors of more than 1536 numbers is asked for 1536.
    """
    relevant_cosine: SettingsEmbeddingRelevantCosine
    """From which cosine similarity to the query a memory counts as relevant, with a score of 0.7; null while it is not known, and for
    the built-in provider. One that is set takes the place of what the probes measure.
    """
    separation: float | None
    """Share of the probes that the provider puts on the right side: 0.5 is chance, 1 perfect. It decides how much words count in a
    score: half at 0.8 or less, a quarter at 0.9 or more.
    """
    vector_length: int | None
    """How many numbers the provider's vectors have."""
    state: SettingsEmbeddingState
    """Whether searches can be answered."""
    vectors: SettingsEmbeddingVectors
    """Progress after a change of provider, or while it is down."""


class SettingsEmbeddingApiKey(Record):
    """The provider's key. It is kept, and never shown."""

    set: bool
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsEmbeddingBaseUrl(Record):
    """Address of the provider's server, up to and including `/v1`. A key that was set for another server is not sent to it; an address
    of a cloud metadata service is refused.
    """

    value: str
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsEmbeddingDimensions(Record):
    """Length of the vectors to ask the provider for; null for the model's own. For models that can shorten their vectors; without it
    one with vectors of more than 1536 numbers is asked for 1536.
    """

    value: int | None
    default: int | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsEmbeddingDocumentPrefix(Record):
    """Text that the model expects before a memory."""

    value: str
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsEmbeddingModel(Record):
    """The provider's model."""

    value: str
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsEmbeddingProvider(Record):
    """`builtin` is a neural network of a hundred languages; `words` finds by words alone; `openai` is any server that speaks
    `/v1/embeddings`. `local` is read as `builtin`.
    """

    value: Literal["builtin", "words", "openai", "local"]
    default: Literal["builtin", "words", "openai", "local"] | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsEmbeddingQueryPrefix(Record):
    """Text that the model expects before a query."""

    value: str
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsEmbeddingRelevantCosine(Record):
    """From which cosine similarity to the query a memory counts as relevant, with a score of 0.7; null while it is not known, and for
    the built-in provider. One that is set takes the place of what the probes measure.
    """

    value: float | None
    default: float | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsEmbeddingState(Record):
    """Whether searches can be answered."""

    available: bool
    reason: str | None = None
    """What is wrong."""


class SettingsEmbeddingVectors(Record):
    """Progress after a change of provider, or while it is down."""

    ready: int
    """Memories and documents that searches find."""
    pending: int
    """Memories and documents that wait for a vector."""


class SettingsEndlessSessionsForAll(Record):
    """Whether keys without the scope `admin` may create sessions that do not expire (`ttl_seconds: "never"`). Such sessions stay until
    they are deleted. Turned off, it changes no session that is there.
    """

    value: bool
    default: bool | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsIndexTurns(Record):
    """By what searches find turns: `off`, by their `words`, or by `meaning` too. `meaning` embeds every turn, passage by passage. A
    session can be created with another one. After a change the turns that are there follow in the background; `/v1/stats` says how
    far that is.
    """

    value: Literal["off", "words", "meaning"]
    default: Literal["off", "words", "meaning"] | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsIndexTurnsShare(Record):
    """The share of its time that the server indexes turns in the background, 0.01 to 1. Both the turns that are there after a change
    of `index_turns` and the vectors of new ones are made within it.
    """

    value: float
    default: float | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsMaxBodyBytes(Record):
    """Largest body of a request."""

    value: int
    default: int | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsMaxStoreBytes(Record):
    """How many bytes the store may take on disk; beyond that new records are refused with 503. `cairn_store_used_bytes` in `/metrics`
    says how many it takes. New sessions, states, turns and memories are answered 503 `service_unavailable`, and so is a PATCH of
    one that does not make it smaller, and a request with an Idempotency-Key whose answer has no space to be kept; deletion, keys,
    webhooks, settings, expiry and retention keep working. The size is checked twice a second and after large writes, so it can
    exceed the limit slightly.
    """

    value: int | None
    default: int | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsMemoriesOnExpiry(Record):
    """What becomes of the memories of a session that expires."""

    value: Literal["keep", "delete"]
    default: Literal["keep", "delete"] | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsMemoryVersionsKept(Record):
    """How many contents that a memory had are kept, besides the present one, for its history. A lower number takes effect with the
    next change of each memory's content.
    """

    value: int
    default: int | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsOauthClients(Record):
    """Applications that may ask for access by OAuth: any, or known and hosts such as notes.example.com, separated by commas. `known`
    are those whose documents are built in; a host is where an application has its document. Unless it is `any`, no application can
    register itself. Those that are connected stay connected.
    """

    value: str
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsRegion(Record):
    """A label for this deployment, shown in `/health` to everybody. Without control characters."""

    value: str | None
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsRetrievalLog(Record):
    """Whether the server logs which memories a search or a context found, with the query. `GET /v1/sessions/{session_id}/retrievals`
    lists them, and `GET /v1/retrievals` the searches that named no session. They are kept for `retrieval_log_days`, and no longer
    than the session.
    """

    value: bool
    default: bool | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsRetrievalLogDays(Record):
    """How many days the log of retrievals keeps what was found, with the query. A change concerns what is logged from then on."""

    value: int
    default: int | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsSecretKinds(Record):
    """What counts as a secret: one or more of keys, cards, email, phone, separated by commas. `keys` are keys and tokens of known
    forms, private keys, JWTs and passwords in URLs; `cards` numbers of cards; `email` addresses and `phone` telephone numbers.
    """

    value: str
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsSecrets(Record):
    """What becomes of secrets in turns, states, memories and documents that clients send: `off`, `tag`, `redact` or `block`. `tag`
    stores them and marks the record with their kinds; `redact` stores `[redacted:KIND]` in their place, and the answer says so;
    `block` refuses the request. Records that are there stay as they are.
    """

    value: Literal["off", "tag", "redact", "block"]
    default: Literal["off", "tag", "redact", "block"] | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsStateVersionsKept(Record):
    """How many of the newest versions of a session's state are kept, including the current one; version 0 is always kept. Each new
    version removes up to 8 older ones, so a lower number takes effect as states change.
    """

    value: int
    default: int | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsTraceRetentionDays(Record):
    """How many days traces made with an enterprise key are kept."""

    value: int
    default: int | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsWebhooks(Record):
    """How events are delivered, from the next attempt on."""

    __nested__: ClassVar[Mapping[str, str]] = {"allow_private": "SettingsWebhooksAllowPrivate", "timeout": "SettingsWebhooksTimeout", "retry_schedule": "SettingsWebhooksRetrySchedule"}
    allow_private: SettingsWebhooksAllowPrivate
    """Whether webhooks may lead into private networks, and to this machine wherever the server listens. Everybody with an admin key
    can then make the server call addresses that only it can reach. Addresses of cloud metadata services stay refused.
    """
    timeout: SettingsWebhooksTimeout
    """How long a receiver has to answer an attempt: a time such as 15s or 500ms, of at most 1h."""
    retry_schedule: SettingsWebhooksRetrySchedule
    """The waits before each further attempt: times such as 200ms,5s,5m,2h: at most 20, and 7d in all. A wait that has begun stays as
    it is.
    """


class SettingsWebhooksAllowPrivate(Record):
    """Whether webhooks may lead into private networks, and to this machine wherever the server listens. Everybody with an admin key
    can then make the server call addresses that only it can reach. Addresses of cloud metadata services stay refused.
    """

    value: bool
    default: bool | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsWebhooksRetrySchedule(Record):
    """The waits before each further attempt: times such as 200ms,5s,5m,2h: at most 20, and 7d in all. A wait that has begun stays as
    it is.
    """

    value: str
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SettingsWebhooksTimeout(Record):
    """How long a receiver has to answer an attempt: a time such as 15s or 500ms, of at most 1h."""

    value: str
    default: str | None = None
    source: Literal["default", "environment", "setting", "probes", "built-in"]
    """Where the value comes from."""


class SignedErasure(Record):
    """Set where the content of the trace was erased: its leaf in the chain is then `leaf` of its place in the signed text, and that of
    its row `now`.
    """

    public_key: str
    """Public key of Ed25519 that signs the chain. 32 bytes in base64url."""
    signed_text: str
    """The text that is signed."""
    signature: str
    """Its signature. 64 bytes in base64url."""


class SignedHead(Record):
    """The signed end of a chain of traces."""

    chain: str
    """Id of the chain."""
    public_key: str
    """Public key of Ed25519 that signs the chain. 32 bytes in base64url."""
    count: int
    """Number of traces of the chain up to here."""
    digest: str
    """Digest of the chain here. 32 bytes in base64url."""
    names: str
    """SHA-256 of the keys of the last segment's traces. 32 bytes in base64url."""
    signed_at: str
    """When it was signed."""
    signed_text: str
    """The text that is signed, in UTF-8."""
    signature: str
    """Its signature. 64 bytes in base64url."""


class State(Record):
    """The current state of a session."""

    __nested__: ClassVar[Mapping[str, str]] = {"redacted": "Redaction"}
    object: Literal["state"]
    session_id: str
    """The session."""
    version: int
    """Version of `state`; 0 is the initial state."""
    state: dict[str, Any]
    """The current state."""
    created_at: str
    """When the session was created."""
    updated_at: str
    """When this version was made."""
    secrets: list[str] | None = None
    """Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class StateVersion(Record):
    """A version of a session's state."""

    object: Literal["version"]
    version: int
    """0, 1, 2 … without gaps. Version 0 and the newest are kept (the setting `state_versions_kept`)."""
    created_at: str
    """When the version was made."""
    reasoning: str | None = None
    """Why the state changed, if that was given."""
    actor: str
    """First 8 characters of the API key that made it, or `local`, as in traces."""
    source: Literal["initial", "update", "rollback"]
    """What made it."""
    restored_from_version: int | None = None
    """The version whose state a rollback restored; left out where there was no rollback, and for one of an earlier Cairn."""
    secrets: list[str] | None = None
    """Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none."""
    state: dict[str, Any] | None = None
    """The state; left out in lists."""


class Stats(Record):
    """Counts of records, and recent traffic."""

    __nested__: ClassVar[Mapping[str, str]] = {"vectors": "StatsVectors", "turn_index": "StatsTurnIndex", "deliveries": "StatsDeliveries", "store": "StatsStore", "backups": "StatsBackups", "certificate": "StatsCertificate", "history": "History"}
    object: Literal["stats"]
    sessions: int
    """Sessions, including those that have expired and are not removed yet."""
    turns: int
    """Turns."""
    versions: int
    """Versions of states."""
    memories: int
    """Memories."""
    traces: int
    """Traces."""
    vectors: StatsVectors
    turn_index: StatsTurnIndex
    """How far the index of turns is."""
    deliveries: StatsDeliveries
    store: StatsStore
    backups: StatsBackups | None
    """Backups, and how their schedule stands; null on PostgreSQL, which has backups of its own."""
    certificate: StatsCertificate | None
    """The certificate that the server gets and renews by itself; null where it has no `--domain`."""
    uptime_seconds: int
    """Seconds since the start of the server."""
    history: History | None = None


class StatsBackups(Record):
    """Backups, and how their schedule stands; null on PostgreSQL, which has backups of its own."""

    __nested__: ClassVar[Mapping[str, str]] = {"copies": "StatsBackupsCopies"}
    schedule: str | None
    """The setting `backups.schedule`; null while none are made by themselves."""
    newest_at: str | None
    """When the newest backup was made, by request or by the schedule; null where there is none."""
    age_seconds: int | None
    """Seconds since then."""
    next_at: str | None
    """When the next one is due; null without a schedule."""
    error: str | None
    """Why the last one failed; null once one has been made since."""
    failures: int
    """Backups of the schedule that have failed since the start of the server."""
    overdue: bool
    """True if one, or its copy, has been due for more than an hour."""
    copies: StatsBackupsCopies | None
    """Copies in a bucket; null while none are made."""


class StatsBackupsCopies(Record):
    """Copies in a bucket; null while none are made."""

    url: str
    """The setting `backups.copy_to`."""
    newest_at: str | None
    """When the newest backup in the bucket was made; null where there is none, or it is not known yet."""
    error: str | None
    """Why the last copy failed; null once one has been made since."""
    failures: int
    """Copies that have failed since the start of the server."""
    overdue: bool
    """True if the newest backup has had no copy for more than an hour."""


class StatsCertificate(Record):
    """The certificate that the server gets and renews by itself; null where it has no `--domain`."""

    domains: list[str]
    """Names that it is for."""
    expires_at: str | None
    """When the certificate in use ends; null while there is none."""
    renews_at: str | None
    """When the next one is ordered."""
    overdue: bool
    """True if it ends in less than 20 days, or less than 2/9 of the time for which it was given."""
    error: str | None
    """Why the last order failed; null once one has succeeded since."""
    failures: int
    """Orders that have failed since the last one that succeeded."""


class StatsDeliveries(Record):
    pending: int
    """Deliveries of webhooks that are still to be made, those that failed and are tried again included."""
    failed: int
    """Attempts that failed in this hour and the 24 before it, the first ones of a delivery included."""
    exhausted: int
    """Deliveries that are not tried again: all their attempts have failed."""


class StatsStore(Record):
    bytes: int
    """Size of the store on disk."""
    used_bytes: int
    """Bytes of it that hold records."""
    max_bytes: int | None
    """The setting `max_store_bytes`; null without a limit."""


class StatsTurnIndex(Record):
    """How far the index of turns is."""

    index_turns: Literal["off", "words", "meaning"]
    """The setting."""
    state: Literal["ready", "indexing", "unused"]
    """`indexing` while the turns that were there before follow a change of the setting; `unused` under `words` until turns are
    searched for the first time, with which their index begins.
    """
    looked_at: int
    """Turns that follow the setting already."""
    indexed: int
    """Turns that searches find."""
    pending: int
    """Turns whose vectors are still to be made."""


class StatsVectors(Record):
    stored: int
    """Vectors of memories and documents."""
    pending: int
    """Vectors that are still to be made."""


class Step(Record):
    """A turn that was logged, with the memories that were added with it."""

    __nested__: ClassVar[Mapping[str, str]] = {"input": "TurnInput", "output": "TurnOutput", "redacted": "Redaction", "memories": "AddedMemory"}
    object: Literal["turn"]
    id: str
    """`turn_` and 12 characters."""
    session_id: str
    """The session."""
    turn_number: int
    """1, 2, 3 … in the order of the session."""
    state_version: int
    """Version of the session's state that was current when the turn was logged; 0 for one that a fork has from its parent. For one
    that a Cairn without this field has logged it follows from the versions that are kept.
    """
    forked_from: str | None = None
    """The session that this one was forked from, for a turn that it has from there; left out for others."""
    rolled_back_at: str | None = None
    """When a rollback hid the turn; left out for those that are shown."""
    external_id: str | None = None
    """The name that you gave it; left out if there is none."""
    created_at: str
    """When the turn was logged."""
    occurred_at: str | None = None
    """When it happened, if that was given: for history that was moved in."""
    input: TurnInput
    output: TurnOutput
    reasoning: str | None = None
    """Left out when none was given."""
    metadata: dict[str, Any]
    """Custom metadata. At most 64 KiB as JSON."""
    state_before: dict[str, Any] | None
    """The state before the turn, if given."""
    state_after: dict[str, Any] | None
    """The state after the turn, if given."""
    secrets: list[str] | None = None
    """Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """
    memories: list[AddedMemory] | None = None
    """The memories of the step, in the order of the request."""


class StepMemory(TypedDict):
    """A memory to add to the session."""

    session_id: NotRequired[str]
    """The session of the step, or left out."""
    user_id: NotRequired[str]
    """The user of the session of the step, or left out."""
    agent_id: NotRequired[str]
    """The agent of the session of the step, or left out."""
    content: str
    """What to remember: 1 to 10000 characters; more is 413 `content_too_large`."""
    type: NotRequired[str]
    """Standard types: fact, preference, event, policy, observation, general; others are accepted. Default `general`."""
    tags: NotRequired[Sequence[str]]
    """Tags, for filters."""
    metadata: NotRequired[Mapping[str, Any]]
    """Custom metadata; default `{}`. At most 64 KiB as JSON."""
    embed: NotRequired[bool]
    """false: keep it out of semantic search."""
    external_id: NotRequired[str]
    """A name of your own, such as the id of a row. No two memories of a user have the same, or of an agent where there is no user; it
    is free again once its memory is deleted or has expired.
    """
    if_exists: NotRequired[Literal["error", "update", "return"]]
    """What happens when the owner has a memory of that `external_id`: `error` is 409 `already_exists`; `return` answers 200 with it,
    as it is; `update` answers 200 once its content, and what else is sent, has taken the place of what was there. Default `error`.
    """
    on_duplicate: NotRequired[Literal["allow", "return", "update"]]
    """What happens when the owner has a current memory of the same type that says the same, whatever its case, spaces and forms of
    characters: `return` answers 200 with it, as it is, and `duplicate: true`; `update` gives it the tags, metadata, times and what
    else is sent before. A memory of that `external_id` comes first. Of a session without a user the memories of that session are
    compared. Default `allow`.
    """
    source: NotRequired[Literal["user", "agent", "tool", "import"]]
    """Who says so; `agent` unless given. A context shows it."""
    importance: NotRequired[float]
    """How important it is to you, 0.0 to 1.0."""
    pinned: NotRequired[bool]
    """Show it first in every context of its user, whatever the query: at most 20 current ones of a user, more are 409
    `version_conflict`. Of a session without a user, in that session's contexts.
    """
    occurred_at: NotRequired[str]
    """When it happened, for history that is moved in: at most a day ahead. ISO 8601, such as `2027-05-07T08:00:00Z`."""
    expires_at: NotRequired[str]
    """When it expires: from that moment on nothing shows it, and it is removed with the event `memory.expired`. ISO 8601, such as
    `2027-05-07T08:00:00Z`.
    """
    ttl_seconds: NotRequired[int]
    """Instead of `expires_at`: seconds until then, from now."""
    valid_from: NotRequired[str]
    """Since when it holds; since ever unless given, or since now where it supersedes another one. ISO 8601, such as
    `2027-05-07T08:00:00Z`.
    """
    valid_until: NotRequired[str]
    """Until when it holds: from then on it is past, and stays. ISO 8601, such as `2027-05-07T08:00:00Z`."""
    supersedes: NotRequired[Sequence[str]]
    """Ids of memories of the same owner whose place it takes: each is past from `valid_from` on, and current again if this one is
    deleted or expires. One that is superseded already is 409 `version_conflict`.
    """
    reason: NotRequired[str]
    """Why; for the history of the memory and the trace."""


class TimelineEntry(Record):
    """Something that happened in a session: a turn, a version of its state, a memory, a retrieval or a fork."""

    __nested__: ClassVar[Mapping[str, str]] = {"turn": "Turn", "version": "ChangedVersion", "memory": "Memory", "retrieval": "Retrieval", "fork": "SessionFork"}
    object: Literal["timeline_entry"]
    id: str
    """`entry_` and 12 characters, which are those of the record's own id, if it has one."""
    kind: Literal["turn", "version", "memory", "retrieval", "fork"]
    """What happened, and the name of the member that holds the record."""
    turn: Turn | None = None
    version: ChangedVersion | None = None
    memory: Memory | None = None
    retrieval: Retrieval | None = None
    fork: SessionFork | None = None


class Trace(Record):
    """A trace: one change and who made it."""

    object: Literal["trace"]
    id: str
    """`trace_` and 12 characters."""
    session_id: str | None
    """The session it concerns; null for traces of administration, and of memories without a session."""
    user_id: str | None = None
    """The user whose record it concerns; left out when there is none."""
    action: Literal["turn.added", "state.updated", "memory.created", "session.created", "session.expired", "session.updated", "session.deleted", "session.forked", "state.rolled_back", "memory.updated", "memory.deleted", "memory.superseded", "memory.expired", "retrieval.rated", "api_key.created", "api_key.rolled", "api_key.revoked", "backup.started", "backup.created", "backup.failed", "backup.copied", "backup.copy_failed", "backup.downloaded", "backup.deleted", "user.erased", "settings.updated", "webhook.created", "webhook.updated", "webhook.disabled", "webhook.secret_rotated", "webhook.deleted"]
    """What happened."""
    actor: str
    """First 8 characters of the API key that did it, `local` for programs of the server's own user such as `cairn mcp`, or `system`."""
    timestamp: str
    """When it happened."""
    details: dict[str, Any]
    """Depends on the action; only `erased` for a user who was erased. A diff has `added`, `removed` and `modified`, which has `from`
    and `to` for each key; `changes` has `from` and `to` for each name. Secrets are left out: a webhook's URL is cut to its origin,
    a provider's key to whether one is set.

    - `turn.added`: turn_number, input_type, output_type, reasoning
    - `state.updated`: reasoning, state_diff, version
    - `memory.created`: memory_id, content_preview, type, tags, embedded
    - `session.created`: agent_id, user_id, external_id, initial_state
    - `session.expired`: ttl_seconds, last_activity
    - `session.updated`: metadata_diff, ttl_seconds
    - `session.deleted`: session_id, reason, turn_count, memory_count
    - `session.forked`: source_session_id, source_session, fork_version, turns
    - `state.rolled_back`: from_version, to_version, reason, turns
    - `memory.updated`: memory_id, content_changed, tags_changed
    - `memory.deleted`: memory_id, content_preview, reason
    - `memory.superseded`: memory_id, content_preview, superseded_by, superseded_at
    - `memory.expired`: memory_id, content_preview, expires_at
    - `retrieval.rated`: retrieval_id, useful, not_useful, unnamed_count
    - `api_key.created`: key_id, kind, prefix, name, scopes, tier, user_id, agent_id, source, rate_limit, expires_at
    - `api_key.rolled`: key_id, kind, prefix, name, scopes, tier, user_id, agent_id, rolled_to, rolled_to_prefix, ends_at,
    expires_at
    - `api_key.revoked`: key_id, kind, prefix, name, scopes, tier, user_id, agent_id, reason
    - `backup.started`: backup_id
    - `backup.created`: backup_id
    - `backup.failed`: backup_id, reason
    - `backup.copied`: backup_id, url
    - `backup.copy_failed`: backup_id, url, reason
    - `backup.downloaded`: backup_id
    - `backup.deleted`: backup_id, reason
    - `user.erased`: user_id, started_at, freed_space, sessions, turns, versions, retrievals, memories, documents, traces,
    deliveries, answers
    - `settings.updated`: changes
    - `webhook.created`: webhook_id, url, events, description, enabled
    - `webhook.updated`: webhook_id, changes
    - `webhook.disabled`: webhook_id, url, reason
    - `webhook.secret_rotated`: webhook_id, url, previous_valid_until
    - `webhook.deleted`: webhook_id, url, reason
    """
    metadata: dict[str, Any]
    """`request_id` and `latency_ms` of the request."""


class Turn(Record):
    """A turn: what came in and what went out."""

    __nested__: ClassVar[Mapping[str, str]] = {"input": "TurnInput", "output": "TurnOutput", "redacted": "Redaction"}
    object: Literal["turn"]
    id: str
    """`turn_` and 12 characters."""
    session_id: str
    """The session."""
    turn_number: int
    """1, 2, 3 … in the order of the session."""
    state_version: int
    """Version of the session's state that was current when the turn was logged; 0 for one that a fork has from its parent. For one
    that a Cairn without this field has logged it follows from the versions that are kept.
    """
    forked_from: str | None = None
    """The session that this one was forked from, for a turn that it has from there; left out for others."""
    rolled_back_at: str | None = None
    """When a rollback hid the turn; left out for those that are shown."""
    external_id: str | None = None
    """The name that you gave it; left out if there is none."""
    created_at: str
    """When the turn was logged."""
    occurred_at: str | None = None
    """When it happened, if that was given: for history that was moved in."""
    input: TurnInput
    output: TurnOutput
    reasoning: str | None = None
    """Left out when none was given."""
    metadata: dict[str, Any]
    """Custom metadata. At most 64 KiB as JSON."""
    state_before: dict[str, Any] | None
    """The state before the turn, if given."""
    state_after: dict[str, Any] | None
    """The state after the turn, if given."""
    secrets: list[str] | None = None
    """Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """


class TurnInput(Record):
    type: Literal["text", "audio", "image", "tool_call"]
    """What came in."""
    content: str
    """The text, a transcription, a description or what a tool was given or gave."""


class TurnInputParam(TypedDict):
    type: Literal["text", "audio", "image", "tool_call"]
    """What came in."""
    content: str
    """The text, a transcription, a description or what a tool was given or gave."""


class TurnOutput(Record):
    type: Literal["text", "audio", "image", "tool_result", "error"]
    """What went out."""
    content: str
    """The text, a transcription, a description or what a tool was given or gave."""


class TurnPassage(Record):
    """The passage that has most of what was asked; null where the turn has no text."""

    text: str
    """At most 300 characters."""
    field: Literal["input", "output", "reasoning"]
    """Where it stands: in the content of the input or of the output, or in the reasoning."""
    start: int
    """Its first character in that text, counted in Unicode code points."""
    end: int
    """The character behind its last one."""


class TurnResult(Record):
    """A turn that a search found."""

    __nested__: ClassVar[Mapping[str, str]] = {"input": "TurnInput", "output": "TurnOutput", "redacted": "Redaction", "passage": "TurnPassage"}
    object: Literal["turn"]
    id: str
    """`turn_` and 12 characters."""
    session_id: str
    """The session."""
    turn_number: int
    """1, 2, 3 … in the order of the session."""
    state_version: int
    """Version of the session's state that was current when the turn was logged; 0 for one that a fork has from its parent. For one
    that a Cairn without this field has logged it follows from the versions that are kept.
    """
    forked_from: str | None = None
    """The session that this one was forked from, for a turn that it has from there; left out for others."""
    rolled_back_at: str | None = None
    """When a rollback hid the turn; left out for those that are shown."""
    external_id: str | None = None
    """The name that you gave it; left out if there is none."""
    created_at: str
    """When the turn was logged."""
    occurred_at: str | None = None
    """When it happened, if that was given: for history that was moved in."""
    input: TurnInput
    output: TurnOutput
    reasoning: str | None = None
    """Left out when none was given."""
    metadata: dict[str, Any]
    """Custom metadata. At most 64 KiB as JSON."""
    state_before: dict[str, Any] | None
    """The state before the turn, if given."""
    state_after: dict[str, Any] | None
    """The state after the turn, if given."""
    secrets: list[str] | None = None
    """Kinds of secrets in it, where it was written with the setting `secrets` at `tag`; left out for none."""
    redacted: list[Redaction] | None = None
    """In the answer to a change whose request had secrets, with the setting `secrets` at `redact`: what was taken out, and is now
    `[redacted:KIND]`. After 100 places the others are counted together, with the path `…`.
    """
    score: float
    """0.0 to 1.0, higher is more relevant; from 0.7 on it is about the query."""
    passage: TurnPassage


class TurnResults(Record):
    """What a search found, best first."""

    __nested__: ClassVar[Mapping[str, str]] = {"data": "TurnResult"}
    object: Literal["list"]
    query: str
    """The query, as it was sent."""
    index_turns: Literal["off", "words", "meaning"]
    """By what the turns were searched: as the session says, or else the setting. With `off` none is found."""
    data: list[TurnResult]
    partial: Literal[True] | None = None
    """Others may be about the query too: there are more than 1,000 turns to search that are not all indexed yet (`turn_index` of
    `/v1/stats` says how far the index is), or more than one request compares with its filter.
    """
    retrieval_id: str | None = None
    """Where it is logged (`retrieval_log`): for `GET /v1/retrievals/{retrieval_id}` and feedback. Left out where it is not."""


class User(Record):
    """A user that sessions, memories or documents name, with how much there is."""

    object: Literal["user"]
    id: str
    """The `user_id` of sessions."""
    last_session_at: str | None
    """When the newest session was created; null when none is left."""
    last_seen_at: str | None
    """When the newest session was created, to the minute, also if it is gone by now; null where that is not known."""
    sessions: int
    """Sessions. At most 100 are counted in a list, and 10000 of one user."""
    memories: int
    """Memories. At most 100 are counted in a list, and 10000 of one user."""
    documents: int
    """Documents of the user, those kept with an agent too, but not those that go with a session."""
    more: bool
    """Whether one of the counts stopped before all were counted."""


class UserDetails(Record):
    """A user with how much there is of them, be it documents or traces alone."""

    object: Literal["user"]
    id: str
    """The `user_id` of sessions."""
    last_session_at: str | None
    """When the newest session was created; null when none is left."""
    last_seen_at: str | None
    """When the newest session was created, to the minute, also if it is gone by now; null where that is not known."""
    sessions: int
    """Sessions. At most 100 are counted in a list, and 10000 of one user."""
    memories: int
    """Memories. At most 100 are counted in a list, and 10000 of one user."""
    documents: int
    """Documents of the user, those kept with an agent too, but not those that go with a session."""
    more: bool
    """Whether one of the counts stopped before all were counted."""
    last_session_id: str | None
    """The newest session."""
    traces: int
    """Traces, at most 10000."""


class UserErasure(Record):
    """What an erasure has removed."""

    object: Literal["user_erasure"]
    user_id: str
    status: Literal["running", "done"]
    """`running`: nothing of the user is shown any more, and the rest is being removed."""
    started_at: str
    """When the erasure began."""
    freed_space: Literal["pending", "overwritten", "vacuum"] | None = None
    """What becomes of the space in the store's files that the removed rows have left. `overwritten`: with a `done`, no page of the
    data file holds any of it; until then `pending`. `vacuum`, on PostgreSQL: the database keeps it in its files until it has
    vacuumed them and used the space again; `VACUUM FULL` of the schema `cairn` rewrites them at once. Left out of what a Cairn did
    that overwrote nothing.
    """
    sessions: int
    """Sessions removed so far."""
    turns: int
    """Turns removed with them."""
    versions: int
    """Versions of states removed with them."""
    retrievals: int
    """Retrievals removed with them."""
    memories: int
    """Memories removed, with their vectors."""
    documents: int
    """Documents removed, but those that a session brought with it."""
    traces: int
    """Traces that have lost their content."""
    deliveries: int
    """Deliveries and events removed."""
    answers: int
    """Answers removed that were kept for an Idempotency-Key."""


class Webhook(Record):
    """A webhook."""

    __nested__: ClassVar[Mapping[str, str]] = {"last_failure": "WebhookLastFailure"}
    object: Literal["webhook"]
    id: str
    """`whk_` and 12 characters."""
    url: str
    """Where events are posted: `http` or `https`, no user name. It must not lead into a private network unless the operator allows
    that.
    """
    events: list[Literal["session.created", "session.updated", "session.deleted", "session.expired", "turn.added", "memory.created", "memory.superseded", "memory.expired", "backup.created", "backup.failed", "trace.created", "trace.rollback", "trace.error"]]
    """The events it subscribes to. Those of sessions, turns and memories carry the record; those of traces the trace, `trace.error`
    that of a turn whose output has the type `error`.
    """
    description: str | None
    """What the webhook is for."""
    enabled: bool
    """Whether events are delivered."""
    disabled_reason: str | None
    """Why Cairn disabled it: the receiver answered 410, or failed for 5 days."""
    failing_since: str | None
    """When the first attempt since the last success failed; null while attempts succeed."""
    last_failure: WebhookLastFailure | None
    """The last attempt that failed; null while attempts succeed."""
    next_attempt_at: str | None
    """When the next attempt is due; null while there is nothing to deliver, and while it is disabled."""
    secret: str | None = None
    """The signing secret: only in the answers to the requests that create and rotate it."""
    created_at: str
    """When the webhook was created."""
    updated_at: str
    """When the webhook was last changed."""


class WebhookDelivery(Record):
    """One event for one webhook, and its outcome."""

    object: Literal["webhook_delivery"]
    id: str
    """`dlv_` and 12 characters."""
    webhook_id: str
    """The webhook."""
    event_id: str
    """The event: the header `webhook-id`, the same in every attempt."""
    event_type: Literal["session.created", "session.updated", "session.deleted", "session.expired", "turn.added", "memory.created", "memory.superseded", "memory.expired", "backup.created", "backup.failed", "trace.created", "trace.rollback", "trace.error", "webhook.test"]
    """The event's type."""
    session_id: str | None = None
    """The session the event is about; left out for one without a session."""
    status: Literal["pending", "delivered", "failed"]
    """`failed`: not tried again."""
    attempts: int
    """Attempts made so far."""
    failed_attempts: int
    """Attempts that have failed since the last one that did not, or since it was retried by hand."""
    created_at: str
    """When the delivery was created."""
    last_attempt_at: str | None
    """When the last attempt began."""
    next_attempt_at: str | None
    """When the next attempt is due; null when there is none, and while an earlier event of the session is pending."""
    response_code: int | None
    """Status of the last answer; null without one."""
    response_body: str | None
    """The first 2 KiB of the last answer; null without one, and where it is withheld."""
    response_withheld: bool
    """Whether there was an answer that is not shown, because the receiver is on this machine or in a private network."""
    duration_ms: float | None
    """Milliseconds that the last attempt took."""
    error: str | None
    """Why the last attempt failed."""


class WebhookDeliveryDetails(Record):
    """One event for one webhook, with what is posted and the latest attempts."""

    __nested__: ClassVar[Mapping[str, str]] = {"recent_attempts": "WebhookDeliveryDetailsRecentAttempts"}
    object: Literal["webhook_delivery"]
    id: str
    """`dlv_` and 12 characters."""
    webhook_id: str
    """The webhook."""
    event_id: str
    """The event: the header `webhook-id`, the same in every attempt."""
    event_type: Literal["session.created", "session.updated", "session.deleted", "session.expired", "turn.added", "memory.created", "memory.superseded", "memory.expired", "backup.created", "backup.failed", "trace.created", "trace.rollback", "trace.error", "webhook.test"]
    """The event's type."""
    session_id: str | None = None
    """The session the event is about; left out for one without a session."""
    status: Literal["pending", "delivered", "failed"]
    """`failed`: not tried again."""
    attempts: int
    """Attempts made so far."""
    failed_attempts: int
    """Attempts that have failed since the last one that did not, or since it was retried by hand."""
    created_at: str
    """When the delivery was created."""
    last_attempt_at: str | None
    """When the last attempt began."""
    next_attempt_at: str | None
    """When the next attempt is due; null when there is none, and while an earlier event of the session is pending."""
    response_code: int | None
    """Status of the last answer; null without one."""
    response_body: str | None
    """The first 2 KiB of the last answer; null without one, and where it is withheld."""
    response_withheld: bool
    """Whether there was an answer that is not shown, because the receiver is on this machine or in a private network."""
    duration_ms: float | None
    """Milliseconds that the last attempt took."""
    error: str | None
    """Why the last attempt failed."""
    payload: dict[str, Any]
    """What is posted: an event, as the operation that creates a webhook describes it. Empty once its user has been erased."""
    recent_attempts: list[WebhookDeliveryDetailsRecentAttempts]
    """The latest attempts, at most 10, the last one first."""


class WebhookDeliveryDetailsRecentAttempts(Record):
    at: str
    """When the attempt began."""
    duration_ms: float
    """Milliseconds that it took."""
    response_code: int | None
    """Status of the answer; null without one."""
    response_body: str | None
    """The first 2 KiB of the answer; null without one, and where it is withheld."""
    response_withheld: bool
    """Whether there was an answer that is not shown, because the receiver is on this machine or in a private network."""
    error: str | None
    """Why it failed."""


class WebhookLastFailure(Record):
    """The last attempt that failed; null while attempts succeed."""

    at: str
    """When the attempt began."""
    response_code: int | None
    """Status of the answer; null without one."""
    error: str
    """Why it failed."""


class WebhookRecovered(Record):
    """How many deliveries are made again."""

    object: Literal["webhook_recovery"]
    webhook_id: str
    """The webhook."""
    recovered: int
    """Deliveries that are made again."""
    complete: bool
    """Whether these were all; if not, repeat the request."""


class WebhookStats(Record):
    """What became of the deliveries of the last day, and the attempts that failed."""

    __nested__: ClassVar[Mapping[str, str]] = {"hours": "WebhookStatsHours"}
    object: Literal["webhook_stats"]
    webhook_id: str
    """The webhook."""
    since: str
    """Deliveries created since then are counted: the beginning of the hour a day ago, or later if there are `more`."""
    pending: int
    """Deliveries that are tried, or tried again."""
    delivered: int
    """Deliveries that the receiver took."""
    failed: int
    """Attempts that failed in this time, the first ones of a delivery included."""
    exhausted: int
    """Deliveries that are not tried again: all their attempts have failed."""
    more: bool
    """Whether there were more than 5000 of one status in the last day: the newest are counted, and of the others those since then."""
    hours: list[WebhookStatsHours]
    """The hours of the clock (UTC) since then, the oldest first."""


class WebhookStatsHours(Record):
    start: str
    """When the hour begins."""
    pending: int
    """Deliveries that are tried, or tried again."""
    delivered: int
    """Deliveries that the receiver took."""
    failed: int
    """Attempts that failed in this time, the first ones of a delivery included."""
    exhausted: int
    """Deliveries that are not tried again: all their attempts have failed."""
