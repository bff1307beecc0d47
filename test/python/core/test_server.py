"""The client against a server, by `http.client`: CAIRN_URL and CAIRN_API_KEY name it."""

from __future__ import annotations

import os
import unittest
from uuid import uuid4

from support import HttpClient

from cairn_client import Cairn, CairnError, verify_webhook
from cairn_client._core import Answer, Lost, Request


class LosesAnswers(HttpClient):
    """Loses the answer of every first attempt of a change, after it was made."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def send(self, request: Request, timeout: float) -> Answer:
        found = super().send(request, timeout)
        key = request.headers.get("idempotency-key", request.url)
        if request.method != "GET" and key not in self._seen:
            self._seen.add(key)
            raise Lost("connection_failed", "reset")
        return found


class Server(unittest.TestCase):
    def test_a_conversation(self) -> None:
        cairn = Cairn(http_client=HttpClient())
        session = cairn.sessions.create(agent_id="support-bot", user_id=f"user-{uuid4()}", initial_state={"step": 0})
        cairn.sessions.set_state(session.id, {"step": 1})
        patched = cairn.sessions.patch_state(session.id, {"order": "A-17"})
        self.assertEqual((patched.version, patched.state), (2, {"step": 1, "order": "A-17"}))
        turn = cairn.turns.add(
            session.id,
            input={"type": "text", "content": "Where is my order?"},
            output={"type": "text", "content": "It arrives tomorrow."},
        )
        self.assertEqual(cairn.turns.get(session.id, turn.id).to_dict(), turn.to_dict())
        memory = cairn.memories.add(session_id=session.id, content="The customer prefers e-mail to phone calls.", tags=["contact, by"])
        context = cairn.sessions.context(session.id, query="How does the customer prefer to be contacted?")
        self.assertEqual(([one.id for one in context.memories], len(context.recent_turns)), ([memory.id], 1))
        self.assertEqual([one.id for one in cairn.memories.list(session_id=session.id, tags=["contact, by"])], [memory.id])
        self.assertEqual(cairn.sessions.rollback(session.id, version=1).state_version, 3)
        self.assertEqual([one.version for one in cairn.sessions.versions(session.id, limit=2)], [3, 2, 1, 0])
        self.assertEqual(cairn.memories.delete(memory.id, reason="asked to").deleted, True)
        with self.assertRaises(CairnError) as caught:
            cairn.memories.get(memory.id)
        self.assertEqual((caught.exception.code, caught.exception.status, caught.exception.param), ("memory_not_found", 404, "memory_id"))

    def test_a_large_body_is_what_the_server_has(self) -> None:
        cairn = Cairn(http_client=HttpClient())
        state = {"text": "ü😀" * 100_000}
        session = cairn.sessions.create(agent_id="a", initial_state=state)
        self.assertEqual(cairn.sessions.state(session.id).state, state)

    def test_a_change_whose_answer_is_lost_is_made_once(self) -> None:
        cairn = Cairn(http_client=LosesAnswers())
        session = cairn.sessions.create(agent_id="a")
        memory = cairn.memories.add(session_id=session.id, content="only once")
        self.assertEqual(cairn.sessions.get(session.id).memory_count, 1)
        self.assertEqual(cairn.memories.delete(memory.id).id, memory.id)
        documents = cairn.documents.of_session(session.id)
        for i in range(5):
            documents.append(["log", session.id], {"i": i})
        self.assertEqual([one.value["i"] for one in documents.list(["log", session.id], limit=2)], [0, 1, 2, 3, 4])

    def test_events_come_and_a_file_is_downloaded(self) -> None:
        cairn = Cairn(http_client=HttpClient())
        session = cairn.sessions.create(agent_id="a")
        [created] = cairn.traces.list(session_id=session.id).data
        for i in range(3):
            cairn.sessions.set_state(session.id, {"i": i})
        seen: list[int] = []
        for trace in cairn.events(session_id=session.id, last_event_id=created.id):
            seen.append(trace.details["version"])
            if len(seen) == 3:
                break
        self.assertEqual(seen, [1, 2, 3])

    def test_the_signature_of_a_delivery_is_taken(self) -> None:
        headers = {f"webhook-{name}": os.environ[f"DELIVERY_{name.upper()}"] for name in ("id", "timestamp", "signature")}
        at = int(headers["webhook-timestamp"])
        self.assertTrue(verify_webhook(os.environ["DELIVERY_SECRET"], headers, os.environ["DELIVERY_BODY"], now=at))
        self.assertFalse(verify_webhook(os.environ["DELIVERY_SECRET"], headers, os.environ["DELIVERY_BODY"] + " ", now=at))


if __name__ == "__main__":
    unittest.main()
