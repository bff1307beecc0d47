"""Whether a delivery of a webhook comes from Cairn: the signature of Standard Webhooks (www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Mapping, Sequence

TOLERANCE_SECONDS = 300
PREFIX = "whsec_"


def verify_webhook(secret: str, headers: Mapping[str, str | Sequence[str]], body: bytes | str, *, now: float | None = None) -> bool:
    """Returns whether a request was signed with the secret of the webhook, at most five minutes ago or ahead.

    Args:
        secret: That of the webhook, `whsec_…`.
        headers: Those of the request, in any case.
        body: As it came: JSON that was parsed and written again has other bytes.
        now: The time in seconds; that of the clock unless given.

    Raises:
        TypeError: The secret is none: an empty key would verify what anybody can sign.
    """
    key = from_base64(secret.removeprefix(PREFIX)) if secret.startswith(PREFIX) else secret.encode()
    if not key:
        raise TypeError("secret must be the secret of the webhook: whsec_…")
    given = {name.lower(): value for name, value in headers.items()}
    id_, timestamp, signatures = (header(given, name) for name in ("id", "timestamp", "signature"))
    if not id_ or not signatures or not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return False
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = f"{id_}.{timestamp}.".encode() + (body.encode() if isinstance(body, str) else body)
    expected = hmac.new(key, signed, hashlib.sha256).digest()
    # While a secret is replaced there is a signature of each.
    found = (from_base64(one.removeprefix("v1,")) for one in signatures.split(" ") if one.startswith("v1,"))
    return any(one is not None and hmac.compare_digest(one, expected) for one in found)


def header(headers: Mapping[str, str | Sequence[str]], name: str) -> str:
    value = headers.get(f"webhook-{name}", "")
    return value if isinstance(value, str) else next(iter(value), "")


def from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
