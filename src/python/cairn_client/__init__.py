"""Cairn from Python: sessions with versioned state, logged turns, memories that are found by meaning, and a trace of every change.

Example:
    from cairn_client import Cairn

    cairn = Cairn("crn_…")
    session = cairn.sessions.create(agent_id="support-bot", user_id="user-42")
    cairn.memories.add(session_id=session.id, content="Prefers e-mail to phone calls.")
"""

from ._async import AsyncCairn, AsyncDocuments
from ._given import OMIT, Omit
from ._page import AsyncPage, Listing, Page
from ._record import Record
from ._sync import Cairn, Documents
from .errors import CairnError
from .webhooks import verify_webhook

__all__ = [
    "OMIT",
    "AsyncCairn",
    "AsyncDocuments",
    "AsyncPage",
    "Cairn",
    "CairnError",
    "Documents",
    "Listing",
    "Omit",
    "Page",
    "Record",
    "verify_webhook",
]
