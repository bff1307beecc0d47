"""Google's Agent Development Kit on Cairn: a session service and a memory service.

[…, "sessions", app, user]           session id -> its own state and the time of its last event, as text
[…, "events", app, user, session]    rising key -> an event, as text
[…, "ids", app, user, session]       event id -> the hashes of the events that have it
[…, "app", app], […, "user", app, user]   name with its prefix -> a value, as text
[…, "parts", app, user, session]     a piece of a text of the session that is larger than a request
[…, "app-parts", app, name], […, "user-parts", app, user, name]   the same of a value

An append is one transaction, which names the version of the session that it has read.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ._async import AsyncDocuments
from ._core import Sleep, Steps
from ._stored import PAGE_MAX
from ._sync import Documents
from ._texts import PAUSE_SECONDS_MAX, TRIES, TextStore, is_large
from ._types import Document
from .errors import CairnError

try:
    from google.adk.errors._stale_session_error import StaleSessionError
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
    from google.adk.sessions.session import Session
    from google.adk.sessions.state import State
    from pydantic_core import to_jsonable_python

    from ._google_adk_memory import NAMESPACE, CairnMemoryService
except ImportError as cause:
    raise ImportError("CairnSessionService needs Google's ADK: pip install 'cairn-client[google-adk]'") from cause

Json = dict[str, Any]

__all__ = ["CairnMemoryService", "CairnSessionService"]

EVENTS_AT_ONCE = 100


class CairnSessionService(BaseSessionService):
    """A session service of the Agent Development Kit.

    Example:
        runner = Runner(app_name="support", agent=agent, session_service=CairnSessionService(AsyncCairn("crn_…").documents))
    """

    def __init__(self, documents: Documents | AsyncDocuments, *, namespace: Sequence[str] = NAMESPACE) -> None:
        """Makes a session service.

        Args:
            documents: `cairn.documents` of either client.
            namespace: Under which the sessions are.
        """
        self._store = TextStore(documents, namespace)

    async def create_session(self, *, app_name: str, user_id: str, state: Json | None = None, session_id: str | None = None) -> Session:
        """Makes a session.

        Raises:
            AlreadyExistsError: There is one of this id.
        """
        id_ = (session_id or "").strip() or str(uuid.uuid4())
        session = Session(app_name=app_name, user_id=user_id, id=id_, last_update_time=datetime.now(UTC).timestamp())
        scoped = by_scope(state or {})
        await self._store.client.arun(self._store.until_unchanged(lambda: self._create(session, scoped)))
        found = await self.get_session(app_name=app_name, user_id=user_id, session_id=id_)
        return session if found is None else found

    async def get_session(self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None) -> Session | None:
        """Returns a session with its state, that of the app and of the user, and its events, or the newest of them; None without one."""
        of = (app_name, user_id, session_id.strip())
        if not of[2]:
            return None
        return await self._store.client.arun(self._store.until_whole(lambda: self._session(*of, config or GetSessionConfig())))

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Returns the sessions of a user, or of all, without their events; the one that was used last is the last."""
        steps = self._store.until_whole(lambda: self._sessions(app_name, user_id))
        found = await self._store.client.arun(steps)
        return ListSessionsResponse(sessions=sorted(found, key=lambda one: (one.last_update_time, one.user_id, one.id)))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Deletes a session with its events and its own state, if there is one."""
        of = (app_name, user_id, session_id.strip())
        if of[2]:
            await self._store.client.arun(self._delete(*of))

    async def get_user_state(self, *, app_name: str, user_id: str) -> Json:
        """Returns the state of a user in an app, by names without their prefix."""
        steps = self._store.until_whole(lambda: self._user_state(app_name, user_id))
        return {name.removeprefix(State.USER_PREFIX): value for name, value in (await self._store.client.arun(steps)).items()}

    async def append_event(self, session: Session, event: Event) -> Event:
        """Appends an event; one that is sent again is there once.

        Raises:
            SessionNotFoundError: There is no such session.
            StaleSessionError: Another process or copy has appended since this session was read.
        """
        if event.partial:
            return event
        steps = self._store.until_whole(lambda: self._store.until_unchanged(lambda: self._append(session, event)))
        if not await self._store.client.arun(steps):
            return event
        await super().append_event(session=session, event=event)
        session.last_update_time = event.timestamp
        return event

    def _user(self, app_name: str, user_id: str) -> list[str]:
        return [*self._store.root, "user", app_name, user_id]

    def _of(self, kind: str, app_name: str, user_id: str, session_id: str) -> list[str]:
        return [*self._store.root, kind, app_name, user_id, session_id]

    def _head(self, app_name: str, user_id: str, session_id: str) -> Json:
        return {"namespace": [*self._store.root, "sessions", app_name, user_id], "key": session_id}

    def _parts(self, at: Json) -> list[str]:
        """Returns the namespace of the parts of a value that sessions share."""
        kind, *of = at["namespace"][len(self._store.root) :]
        return [*self._store.root, f"{kind}-parts", *of, at["key"]]

    def _change(
        self,
        of: tuple[str, str, str],
        texts: Sequence[str],
        change: Callable[[Sequence[Json]], Sequence[Json]],
        state: Mapping[str, Json],
    ) -> Steps[None]:
        """Makes a change of a session with texts of it, and puts what sessions share."""
        app, user = [*self._store.root, "app", of[0]], self._user(*of[:2])
        shared: list[Json] = [{"namespace": at, "key": name} for at, kind in ((app, "app"), (user, "user")) for name in state[kind]]
        values = [json.dumps(value) for kind in ("app", "user") for value in state[kind].values()]

        def operations(found: list[Json]) -> list[Json]:
            puts = (self._store.replacement(at, self._parts(at), value) for at, value in zip(shared, found[len(texts) :], strict=True))
            all_puts = [*change(found[: len(texts)]), *itertools.chain.from_iterable(puts)]
            # What depends on others comes first, and with it what leads to parts: more than a request takes is several transactions.
            return sorted(all_puts, key=lambda one: "if_version" not in one and "parts" not in one.get("value", ()))

        own = self._of("parts", *of)
        all_texts = [*((own, text) for text in texts), *((self._parts(at), text) for at, text in zip(shared, values, strict=True))]
        yield from self._store.add_texts(all_texts, operations, self._store.change)
        for at, text in zip(shared, values, strict=True):
            if is_large(text):
                yield from self._store.sweep_after(at, self._parts(at))

    def _create(self, session: Session, state: Mapping[str, Json]) -> Steps[None]:
        of = (session.app_name, session.user_id, session.id)
        head: Json = {"op": "put", **self._head(*of), "if_version": 0}
        text = json.dumps({"state": state["session"], "time": session.last_update_time})
        try:
            yield from self._change(of, [text], lambda values: [{**head, "value": values[0]}], state)
        except CairnError as error:
            if error.code != "version_conflict":
                raise
            [found] = yield from self._store.query([{"op": "get", **self._head(*of), "values": False}])
            if found is None:
                raise  # others have deleted it while it was created
            raise AlreadyExistsError(f"Session with id {session.id} already exists.") from None

    def _values(self, found: Sequence[Document]) -> Steps[Json]:
        """Returns values by the last part of their namespace, and by their names."""
        values: Json = {}
        for document in found:
            of = values.setdefault(document.namespace[-1], {})
            at: Json = {"namespace": document.namespace, "key": document.key}
            of[document.key] = json.loads((yield from self._store.text_of(self._parts(at), document.value)))
        return values

    def _user_state(self, app_name: str, user_id: str) -> Steps[Json]:
        found = yield from self._store.everything({"op": "list", "namespace": self._user(app_name, user_id)})
        values: Json = (yield from self._values(found)).get(user_id, {})
        return values

    def _session(self, app_name: str, user_id: str, session_id: str, config: GetSessionConfig) -> Steps[Session | None]:
        get: Json = {"op": "get", **self._head(app_name, user_id, session_id)}
        lists: list[Json] = [
            {"op": "list", "namespace": [*self._store.root, "app", app_name]},
            {"op": "list", "namespace": self._user(app_name, user_id)},
        ]
        newest = Newest(self._of("events", app_name, user_id, session_id), config)
        for _ in range(TRIES):
            head, app, user, page, after = yield from self._store.query([get, *lists, newest.listing({}), get])
            if head is None:
                return None
            shared: list[Document] = []
            for listing, first in zip(lists, (app, user), strict=True):
                shared += first.data if first.next_cursor is None else (yield from self._store.everything(listing))
            found = newest.of(page)
            while not newest.is_whole(found, page):
                [page] = yield from self._store.query([newest.listing({"cursor": page.next_cursor})])
                found += newest.of(page)
            if len(found) > len(newest.of(page)) or app.next_cursor or user.next_cursor:
                [after] = yield from self._store.query([get])
            # What every change of a session changes is read before and after its events.
            if after is not None and (after.version, after.created_at) == (head.version, head.created_at):
                values = yield from self._values(shared)
                return (yield from self._read(head, values.get(app_name, {}), values.get(user_id, {}), found[: config.num_recent_events]))
            yield Sleep(PAUSE_SECONDS_MAX / 10)
        raise StaleSessionError(f"The session {session_id!r} was changed each of the {TRIES} times it was read.")

    def _read(self, head: Document, app: Json, user: Json, newest: Sequence[Document]) -> Steps[Session]:
        """Returns the session of a head, with its events, of which the newest comes first."""
        app_name, user_id = head.namespace[-2:]
        parts = self._of("parts", app_name, user_id, head.key)
        stored = json.loads((yield from self._store.text_of(parts, head.value)))
        events: list[Event] = []
        for document in reversed(newest):
            events.append(Event.model_validate_json((yield from self._store.text_of(parts, document.value))))
        state = {**stored["state"], **app, **user}
        return Session(app_name=app_name, user_id=user_id, id=head.key, state=state, events=events, last_update_time=stored["time"])

    def _sessions(self, app_name: str, user_id: str | None) -> Steps[list[Session]]:
        of_all = user_id is None
        below = [app_name] if user_id is None else [app_name, user_id]
        listing: Json = {"op": "list", "namespace": [*self._store.root, "sessions", *below], **({"deep": True} if of_all else {})}
        heads = yield from self._store.everything(listing)
        app = yield from self._values(
            (yield from self._store.everything({"op": "list", "namespace": [*self._store.root, "app", app_name]}))
        )
        users = {**listing, "namespace": [*self._store.root, "user", *below]}
        user = yield from self._values((yield from self._store.everything(users)))
        sessions: list[Session] = []
        for head in heads:
            sessions.append((yield from self._read(head, app.get(app_name, {}), user.get(head.namespace[-1], {}), [])))
        return sessions

    def _append(self, session: Session, event: Event) -> Steps[bool]:
        """Stores an event. It returns False for one that is there."""
        of = (session.app_name, session.user_id, session.id)
        ids_at = {"namespace": self._of("ids", *of), "key": event.id}
        at = self._head(*of)
        [head, ids] = yield from self._store.query([{"op": "get", **at}, {"op": "get", **ids_at}])
        if head is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        known: list[str] = [] if ids is None else ids.value["hashes"]
        if hash_of(event) in known:
            return False
        stored = json.loads((yield from self._store.text_of(self._of("parts", *of), head.value)))
        if stored["time"] != session.last_update_time:
            raise StaleSessionError(f"The session {session.id!r} has changed since it was read: read it again.")
        kept = without_temporary(event)
        state = by_scope(kept.actions.state_delta)
        new_head = json.dumps({"state": {**stored["state"], **state["session"]}, "time": event.timestamp})
        yield from self._change(
            of,
            [new_head, kept.model_dump_json(exclude_none=True)],
            lambda values: [
                {"op": "put", **at, "value": values[0], "if_version": head.version},
                {"op": "put", "namespace": self._of("events", *of), "value": {**values[1], "time": json.dumps(event.timestamp)}},
                {"op": "put", **ids_at, "value": {"hashes": [*known, hash_of(kept)]}},
            ],
            state,
        )
        yield from self._store.change(self._store.removals(self._of("parts", *of), head.value))
        return True

    def _delete(self, app_name: str, user_id: str, session_id: str) -> Steps[None]:
        of = (app_name, user_id, session_id)
        deleted = ({"op": "delete_all", "namespace": self._of(kind, *of)} for kind in ("events", "ids", "parts"))
        yield from self._store.together([{"op": "delete", **self._head(*of)}, *deleted])


class Newest:
    """The newest events of a session that are asked for."""

    def __init__(self, namespace: Sequence[str], config: GetSessionConfig) -> None:
        self._namespace = namespace
        self._count = config.num_recent_events
        self._since = config.after_timestamp

    def listing(self, cursor: Json) -> Json:
        limit = EVENTS_AT_ONCE if self._since is not None else PAGE_MAX
        limit = limit if self._count is None else max(1, min(limit, self._count))
        return {"op": "list", "namespace": self._namespace, "order": "desc", "limit": limit, **cursor}

    def of(self, page: Any) -> list[Document]:
        """Returns the events of a page up to the first that is too old."""
        found: list[Document] = page.data
        return list(itertools.takewhile(lambda one: self._since is None or json.loads(one.value["time"]) >= self._since, found))

    def is_whole(self, found: Sequence[Document], page: Any) -> bool:
        is_enough = self._count is not None and len(found) >= self._count
        return is_enough or page.next_cursor is None or len(self.of(page)) < len(page.data)


def by_scope(state: Mapping[str, Any]) -> dict[str, Json]:
    """Returns state as JSON by whose it is, without what is temporary.

    Raises:
        PydanticSerializationError: A value has no form in JSON.
    """
    scopes: dict[str, Json] = {"app": {}, "user": {}, "session": {}}
    for name, value in state.items():
        if not name.startswith(State.TEMP_PREFIX):
            kind = "app" if name.startswith(State.APP_PREFIX) else "user" if name.startswith(State.USER_PREFIX) else "session"
            scopes[kind][name] = to_jsonable_python(value)
    return scopes


def without_temporary(event: Event) -> Event:
    delta = {name: value for name, value in event.actions.state_delta.items() if not name.startswith(State.TEMP_PREFIX)}
    return event.model_copy(update={"actions": event.actions.model_copy(update={"state_delta": delta})})


def hash_of(event: Event) -> str:
    return hashlib.sha256(event.model_dump_json(exclude_none=True).encode()).hexdigest()
