"""Calls without a network: retries, errors, what is refused before it is sent, records, lists, events."""

from __future__ import annotations

import base64
import datetime
import gzip
import json
import math
import pickle
import random
import re
import unittest
import uuid
from typing import Any

from support import answer, body, client, refused

from cairn_client import OMIT, Cairn, CairnError
from cairn_client._core import Answer, Lost, Request
from cairn_client._memories import Memories
from cairn_client._types import Session

SESSION = {"object": "session", "id": "sess_1", "state": {"step": 1}, "metadata": {}}
LOST = Lost("connection_failed", "reset")


def decoded(request: Request) -> bytes:
    content = request.content or b""
    return gzip.decompress(content) if request.headers.get("content-encoding") == "gzip" else content


class Retries(unittest.TestCase):
    def test_what_may_help_is_sent_again_under_the_same_key(self) -> None:
        firsts: list[Answer | Lost] = [LOST, *(refused(status, "service_unavailable") for status in (408, 429, 502, 503, 504))]
        for first in firsts:
            cairn, fake = client(first, first, answer(201, SESSION))
            self.assertEqual(cairn.sessions.create(agent_id="a").id, "sess_1")
            keys = [request.headers["idempotency-key"] for request in fake.requests]
            self.assertEqual(len(set(keys)), 1)
            self.assertRegex(keys[0], r"^[0-9a-f]{32}$")
            self.assertEqual(fake.waits, [0.25, 0.5])
            self.assertEqual([body(request) for request in fake.requests], [{"agent_id": "a"}] * 3)
        for status in (400, 401, 403, 404, 409, 413, 500):
            cairn, fake = client(refused(status, "invalid_request"))
            with self.assertRaises(CairnError) as caught:
                cairn.sessions.create(agent_id="a")
            self.assertEqual((caught.exception.status, len(fake.requests)), (status, 1))

    def test_each_change_has_a_key_of_its_own_unless_it_is_given_one_and_a_read_has_none(self) -> None:
        cairn, fake = client(answer(200, {**SESSION, "data": []}))
        cairn.sessions.create(agent_id="a")
        cairn.sessions.create(agent_id="a")
        cairn.sessions.create(agent_id="a", idempotency_key="order 17")
        cairn.memories.search(query="tea")
        keys = [request.headers.get("idempotency-key") for request in fake.requests]
        self.assertEqual((len(set(keys)), keys[2], keys[3]), (4, "order 17", None))

    def test_retries_end_as_many_as_were_asked_for_then_the_last_error(self) -> None:
        for retries in (0, 1, 5):
            cairn, fake = client(refused(503, "service_unavailable"), retries=retries, random=lambda: 0.5)
            with self.assertRaises(CairnError) as caught:
                cairn.memories.get("mem_1")
            self.assertEqual((caught.exception.code, caught.exception.request_id), ("service_unavailable", "req_1"))
            self.assertEqual(fake.waits, [0.125, 0.25, 0.5, 1, 2][:retries])
            self.assertEqual(len(fake.requests), retries + 1)

    def test_a_wait_is_at_least_what_retry_after_asks_for_and_over_a_minute_the_caller_gets_the_error(self) -> None:
        def ask(retry_after: str) -> list[float]:
            cairn, fake = client(refused(429, "rate_limit_exceeded", retry_after=retry_after), answer(200, SESSION), random=lambda: 0)
            cairn.sessions.get("sess_1")
            return fake.waits

        self.assertEqual(ask("7"), [7])
        self.assertEqual(ask("Thu, 07 May 2026 08:00:03 GMT"), [3])
        self.assertEqual(ask("Thu, 07 May 2026 07:00:00 GMT"), [0])
        self.assertEqual(ask("soon"), [0])
        with self.assertRaises(CairnError) as caught:
            ask("61")
        self.assertEqual((caught.exception.code, caught.exception.retry_after), ("rate_limit_exceeded", 61))

    def test_what_was_deleted_by_an_attempt_whose_answer_was_lost_is_deleted(self) -> None:
        cairn, _ = client(LOST, refused(404, "memory_not_found"))
        self.assertEqual(cairn.memories.delete("mem_1").to_dict(), {"object": "memory", "id": "mem_1", "deleted": True})
        cairn, _ = client(refused(404, "memory_not_found"))
        with self.assertRaises(CairnError):
            cairn.memories.delete("mem_1")

    def test_without_an_answer_the_error_says_why_and_from_something_else_it_is_unexpected(self) -> None:
        cases: list[tuple[Answer | Lost, str, int | None]] = [
            (Lost("timeout", "late"), "timeout", None),
            (LOST, "connection_failed", None),
            (answer(500, b"<h1>Bad gateway</h1>", content_type="text/html"), "unexpected_answer", 500),
            (answer(200, b"<h1>Sign in</h1>", content_type="text/html"), "unexpected_answer", 200),
            (answer(307, b""), "unexpected_answer", 307),
            (answer(400, {"error": "no"}), "unexpected_answer", 400),
        ]
        for given, code, status in cases:
            cairn, _ = client(given)
            with self.assertRaises(CairnError) as caught:
                cairn.stats()
            self.assertEqual((caught.exception.code, caught.exception.status), (code, status))

    def test_an_error_crosses_processes_and_a_client_does_not(self) -> None:
        error = CairnError("No.", code="version_conflict", status=409, param="expected_version", request_id="req_1", retry_after=2)
        self.assertEqual(vars(pickle.loads(pickle.dumps(error))), vars(error))
        for one in (client(answer(200, {}))[0], client(answer(200, {}))[0].documents):
            with self.assertRaisesRegex(TypeError, "make one in each process"):
                pickle.dumps(one)

    def test_a_body_of_64_kib_or_more_is_sent_in_gzip(self) -> None:
        cairn, fake = client(answer(200, {}))
        around = len(b'{"state":{"text":""}}')
        texts = ["x" * (65_535 - around), "x" * (65_536 - around), "ü" * 300_000, base64.b64encode(random.randbytes(100_000)).decode()]
        for text in texts:
            cairn.sessions.set_state("sess_1", {"text": text})
        self.assertEqual([request.headers.get("content-encoding") for request in fake.requests], [None, "gzip", "gzip", "gzip"])
        for request, text in zip(fake.requests[1:], texts[1:], strict=True):
            content = request.content or b""
            self.assertLess(len(content), len(text.encode()) * 0.8)
            self.assertEqual(json.loads(decoded(request)), {"state": {"text": text}})

    def test_a_timeout_of_a_call_takes_the_place_of_that_of_the_client(self) -> None:
        cairn, fake = client(answer(200, SESSION), timeout=7)
        cairn.sessions.get("sess_1")
        cairn.sessions.get("sess_1", timeout=math.inf)
        cairn.with_options(timeout=3, retries=0).sessions.get("sess_1")
        cairn.sessions.get("sess_1")
        self.assertEqual(fake.timeouts, [7, math.inf, 3, 7])
        for timeout in (-1, math.nan):
            with self.assertRaisesRegex(ValueError, "timeout must be a number of at least 0"):
                cairn.sessions.get("sess_1", timeout=timeout)


class Refused(unittest.TestCase):
    """What is wrong in a program is an error of Python, before anything is sent."""

    def test_a_filter_or_condition_that_is_none_is_refused_by_its_name(self) -> None:
        cairn, fake = client(answer(200, {"data": [], "has_more": False, "last_id": None}))
        none: Any = None
        at = ["orders"]
        calls: list[tuple[str, Any]] = [
            ("user_id", lambda: cairn.sessions.list(user_id=none)),
            ("session_id", lambda: cairn.memories.list(session_id=none)),
            ("tags", lambda: cairn.memories.search(query="tea", tags=none)),
            ("query", lambda: cairn.memories.search(query=none)),
            ("user_id", lambda: cairn.events(user_id=none)),
            ("user_id", lambda: cairn.keys.create(user_id=none)),
            ("agent_id", lambda: cairn.documents.of(user_id="ada", agent_id=none)),
            ("session_id", lambda: cairn.documents.of_session(none)),
            ("before", lambda: cairn.documents.list(at, before=none)),
            ("filter", lambda: cairn.documents.search(at, "tea", filter=none)),
            ("key", lambda: cairn.documents.query([{"op": "get", "namespace": at, "key": none}])),
            ("key", lambda: cairn.documents.batch([{"op": "put", "namespace": at, "key": none, "value": {}}])),
            ("key", lambda: cairn.documents.put(at, none, {})),
            ("if_version", lambda: cairn.documents.put(at, "A-17", {}, if_version=none)),
            ("expected_version", lambda: cairn.sessions.set_state("sess_1", {}, expected_version=none)),
        ]
        for name, call in calls:
            with self.assertRaisesRegex(TypeError, f"^{name} must not be None, which would be none at all: leave it out"):
                call()
        self.assertEqual(fake.requests, [])
        cairn.sessions.list(limit=None, starting_after=None, user_id=OMIT)
        self.assertEqual(fake.requests[0].url, "http://cairn.test/v1/sessions")
        cairn, fake = client(answer(200, {"object": "settings"}))
        cairn.settings.update(region=None)
        self.assertEqual(body(fake.requests[0]), {"region": None})

    def test_a_text_is_no_namespace_and_an_id_no_other_path(self) -> None:
        cairn, fake = client(answer(200, {"id": "x"}))
        namespace: Any = "orders"
        for call in (lambda: cairn.documents.get(namespace, "a"), lambda: cairn.documents.list(namespace)):
            with self.assertRaisesRegex(TypeError, "namespace must be a list of texts; got 'orders'"):
                call()
        bad: list[Any] = ["", ".", "..", None, b"a"]
        for id_ in bad:
            with self.assertRaisesRegex(TypeError, "An id in /v1/users/"):
                cairn.users.erase(id_)
        self.assertEqual(fake.requests, [])
        for id_ in ("a/b?c#d %", "😀\udc00"):
            cairn.users.get(id_)
        self.assertEqual(
            [request.url.removeprefix("http://cairn.test") for request in fake.requests],
            ["/v1/users/a%2Fb%3Fc%23d%20%25", "/v1/users/%F0%9F%98%80%ED%B0%80"],
        )

    def test_what_is_no_json_is_refused_by_its_path(self) -> None:
        cairn, fake = client(answer(200, SESSION))
        holds_itself: list[Any] = []
        holds_itself.append(holds_itself)
        for value, error, says in (
            (math.nan, ValueError, r"state\.a\[1\] must be a finite number; got nan"),
            (b"x", TypeError, r"state\.a\[1\] must be JSON; got bytes"),
            (datetime.datetime(2026, 5, 7), TypeError, r"state\.a\[1\] must be JSON; got datetime"),
            (uuid.UUID(int=1), TypeError, r"state\.a\[1\] must be JSON; got UUID"),
            ({1}, TypeError, r"state\.a\[1\] must be JSON; got set"),
            ("\ud83d", ValueError, r"state\.a\[1\] has half of a surrogate pair"),
            ({("a", "b"): 1}, TypeError, r"A name in state\.a\[1\] must be a text"),
            (holds_itself, ValueError, "nested too deeply"),
        ):
            with self.assertRaisesRegex(error, says):
                cairn.sessions.set_state("sess_1", {"a": [0, value]})
        self.assertEqual(fake.requests, [])
        made_at: Any = datetime.datetime(2026, 5, 7)
        with self.assertRaisesRegex(TypeError, "created_after must be a text, a number or a mapping"):
            cairn.sessions.list(created_after=made_at)

    def test_a_key_and_an_address_are_checked_when_the_client_is_made(self) -> None:
        for key in ("", "crn_…", "crn_1\nHost: elsewhere"):
            with self.assertRaisesRegex(TypeError, "api_key must be an API key of Cairn"):
                Cairn(key)
        with self.assertRaisesRegex(TypeError, "base_url must be an address such as"):
            Cairn("crn_1", "localhost:8700")
        with self.assertRaisesRegex(ValueError, "retries must be at least 0"):
            Cairn("crn_1", retries=-1)


class Answers(unittest.TestCase):
    def test_a_record_has_its_members_as_attributes_and_cannot_be_changed(self) -> None:
        cairn, _ = client(answer(200, {**SESSION, "of_a_newer_server": 1}))
        session = cairn.sessions.get("sess_1")
        self.assertEqual((session.state, session.external_id, session.__dict__["of_a_newer_server"]), ({"step": 1}, None, 1))
        with self.assertRaises(AttributeError):
            session.id = "sess_2"  # type: ignore[misc]
        self.assertEqual(pickle.loads(pickle.dumps(session)), session)
        self.assertEqual(session.to_dict(), {**SESSION, "of_a_newer_server": 1})
        self.assertRegex(repr(session), r"^Session\(object='session', id='sess_1', ")
        self.assertNotEqual(session, Session(**{**session.to_dict(), "id": "sess_2"}))

    def test_records_within_records_are_records_and_can_be_sent_again(self) -> None:
        turn = {"object": "turn", "id": "turn_1", "input": {"type": "text", "content": "a"}, "output": {"type": "text", "content": "b"}}
        entry = {"object": "timeline_entry", "id": "entry_1", "kind": "turn", "turn": turn}
        page = answer(200, {"object": "list", "data": [entry], "has_more": False, "first_id": "entry_1", "last_id": "entry_1"})
        cairn, fake = client(page, answer(201, turn))
        [found] = cairn.sessions.timeline("sess_1").data
        assert found.turn is not None
        self.assertEqual((found.turn.input.content, found.version), ("a", None))
        given: Any = found.turn.input
        cairn.turns.add("sess_1", input=given, output={"type": "text", "content": "c"})
        self.assertEqual(body(fake.requests[1]), {"input": turn["input"], "output": {"type": "text", "content": "c"}})
        self.assertEqual(found.to_dict(), entry)

    def test_a_list_gives_its_first_page_and_iterated_everything(self) -> None:
        def page(ids: list[str], has_more: bool) -> Answer:
            data = [{"id": id_} for id_ in ids]
            return answer(200, {"object": "list", "data": data, "has_more": has_more, "first_id": ids[0], "last_id": ids[-1]})

        cairn, fake = client(page(["a", "b"], True), page(["c"], True), page(["d"], False))
        found = cairn.sessions.list(agent_id="x", exact_user=True)
        self.assertEqual(
            ([one.id for one in found.data], found.has_more, found.first_id, found.last_id, len(found)), (["a", "b"], True, "a", "b", 2)
        )
        self.assertEqual([one.id for one in found], ["a", "b", "c", "d"])
        self.assertEqual(
            [request.url.split("?")[1] for request in fake.requests],
            [
                "agent_id=x&exact_user=true",
                "agent_id=x&exact_user=true&limit=100&starting_after=b",
                "agent_id=x&exact_user=true&limit=100&starting_after=c",
            ],
        )
        cairn, fake = client(page(["a"], True), refused(403, "permission_denied"))
        with self.assertRaises(CairnError):
            list(cairn.sessions.list(limit=1))
        self.assertEqual(fake.requests[1].url.split("?")[1], "limit=1&starting_after=a")
        cairn, fake = client(page(["a"], True))
        for _ in cairn.sessions.list():
            break
        self.assertEqual(len(fake.requests), 1)

    def test_memories_of_any_number_and_size_are_added_in_requests_that_the_server_takes(self) -> None:
        for contents in ([f"{i}" for i in range(250)], ["\u00fc" * 9_990 + f"{i:03}" for i in range(150)]):
            cairn, fake = client(answer(201, {"object": "list", "data": []}))
            cairn.run(Memories(cairn, "user-42", OMIT).add_all([{"content": content} for content in contents]))
            sent = [json.loads(decoded(request))["memories"] for request in fake.requests]
            self.assertEqual([one["content"] for part in sent for one in part], contents)
            self.assertEqual({(one["user_id"], one["on_duplicate"]) for part in sent for one in part}, {("user-42", "return")})
            self.assertTrue(all(len(part) <= 100 for part in sent))
            self.assertTrue(all(len(json.dumps(part, ensure_ascii=False).encode()) <= 1024 * 1024 for part in sent))
            self.assertEqual(len(sent), 3 if len(contents) == 250 else 4)

    def test_a_tag_with_a_comma_is_one_tag(self) -> None:
        cairn, fake = client(answer(200, {"data": [], "has_more": False, "last_id": None}))
        cairn.memories.list(tags=["contact, by"])
        cairn.memories.list(tags=["a", "b"])
        self.assertEqual([request.url.split("?")[1] for request in fake.requests], ["tags=contact%2C+by&tags=", "tags=a&tags=b"])

    def test_a_filter_of_a_list_is_sent_as_json(self) -> None:
        cairn, fake = client(answer(200, {"data": [], "has_more": False, "last_id": None}))
        cairn.memories.list(filter={"tags": {"$contains": "é"}})
        [request] = fake.requests
        self.assertEqual(request.url.split("?")[1], "filter=%7B%22tags%22%3A%7B%22%24contains%22%3A%22%C3%A9%22%7D%7D")
        with self.assertRaisesRegex(TypeError, r"metadata\.at must be JSON; got datetime"):
            cairn.memories.list(filter={"metadata.at": datetime.datetime(2026, 5, 7)})

    def test_pages_of_documents_continue_after_their_cursor(self) -> None:
        def page(keys: list[str], cursor: str | None) -> Answer:
            data = [{"key": key, "value": {}} for key in keys]
            return answer(200, {"object": "list", "data": [{"data": data, "has_more": cursor is not None, "next_cursor": cursor}]})

        cairn, fake = client(page(["a"], "c1"), page(["b"], None))
        found = cairn.documents.of(user_id="ada").list(["x"], limit=1, offset=2)
        self.assertEqual((found.next_cursor, [one.key for one in found]), ("c1", ["a", "b"]))
        sent = {"op": "list", "namespace": ["x"], "limit": 1}
        self.assertEqual(
            [body(request) for request in fake.requests],
            [
                {"user_id": "ada", "operations": [{**sent, "offset": 2}]},
                {"user_id": "ada", "operations": [{**sent, "cursor": "c1", "offset": 0}]},
            ],
        )

    def test_documents_of_a_session_go_with_it(self) -> None:
        results = [{"key": "k", "version": 1}, None, {"deleted": 0}]
        cairn, fake = client(answer(200, {"object": "list", "data": results}))
        documents = cairn.documents.of(agent_id="bot").of_session("sess_1")
        written, popped, deleted = documents.batch(
            [
                {"op": "put", "namespace": ["x"], "key": "k", "value": {}},
                {"op": "pop", "namespace": ["x"]},
                {"op": "delete", "namespace": ["x"], "key": "l"},
            ]
        )
        self.assertEqual((written.version, popped, deleted.deleted), (1, None, 0))
        self.assertEqual(body(fake.requests[0])["operations"][0]["session_id"], "sess_1")
        self.assertNotIn("session_id", body(fake.requests[0])["operations"][1])


def event(trace_id: str, data: bool = True) -> bytes:
    trace = {"id": trace_id, "action": "state.updated", "session_id": "ü"}
    return f"id: {trace_id}\n{f'data: {json.dumps(trace, ensure_ascii=False)}' if data else ''}\n\n".encode()


class Events(unittest.TestCase):
    def test_events_continue_after_a_connection_that_broke_and_none_is_lost_or_repeated(self) -> None:
        first = event("t1") + event("t2")
        cairn, fake = client(
            [event("t0", data=False), first[:50], first[50:97], first[97:], LOST],
            refused(503, "service_unavailable"),
            [event("t2") + event("t3")],
            [b": \n\n", event("t4")],
        )
        seen: list[str] = []
        for trace in cairn.events(user_id="ada"):
            seen.append(trace.id)
            if trace.id == "t4":
                break
        self.assertEqual(seen, ["t1", "t2", "t3", "t4"])
        self.assertEqual([request.headers.get("last-event-id") for request in fake.requests], [None, "t2", "t2", "t3"])
        self.assertTrue(all(re.search(r"/v1/events\?user_id=ada$", request.url) for request in fake.requests))
        self.assertEqual(fake.closed, 4)

    def test_events_that_cannot_begin_end_with_the_error(self) -> None:
        cairn, fake = client(refused(401, "authentication_failed"))
        with self.assertRaises(CairnError) as caught:
            next(cairn.events())
        self.assertEqual((caught.exception.code, len(fake.requests)), ("authentication_failed", 1))
        cairn, fake = client(refused(503, "service_unavailable"))
        with self.assertRaises(CairnError):
            next(cairn.events(last_event_id="t1"))
        self.assertEqual((len(fake.requests), fake.requests[0].headers["last-event-id"]), (3, "t1"))

    def test_a_file_comes_piece_by_piece_and_breaks_off_with_an_error(self) -> None:
        cairn, _ = client([b"ab", b"c"])
        self.assertEqual(b"".join(cairn.backups.download("bkp_1")), b"abc")
        cairn, _ = client([b"ab", LOST])
        with self.assertRaises(CairnError):
            list(cairn.backups.download("bkp_1"))


if __name__ == "__main__":
    unittest.main()
