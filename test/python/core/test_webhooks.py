"""The check of signatures, with what the server signs: the test that starts this one gives a delivery."""

from __future__ import annotations

import base64
import hashlib
import hmac
import unittest

from cairn_client import verify_webhook

SECRET = "whsec_" + base64.b64encode(b"abcdefghijklmnopqrstuvwx").decode()
AT = 1_777_777_777
BODY = '{"type":"turn.added","data":"ü😀"}'


def sign(secret: bytes, body: str = BODY, at: int = AT) -> str:
    digest = hmac.new(secret, f"evt_1.{at}.{body}".encode(), hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


class Webhooks(unittest.TestCase):
    def check(self, body: str | bytes = BODY, now: float = AT, secret: str = SECRET, **changes: str) -> bool:
        headers = {
            "webhook-id": "evt_1",
            "webhook-timestamp": str(AT),
            "webhook-signature": f"{sign(b'older')} {sign(b'abcdefghijklmnopqrstuvwx')}",
        }
        headers.update({f"webhook-{name}": value for name, value in changes.items()})
        return verify_webhook(secret, headers, body, now=now)

    def test_what_was_signed_is_taken_as_text_and_as_bytes_with_headers_in_any_case(self) -> None:
        self.assertTrue(self.check())
        self.assertTrue(self.check(BODY.encode(), AT + 299))
        signed = {"Webhook-Id": ["evt_1"], "WEBHOOK-TIMESTAMP": str(AT), "webhook-signature": sign(b"sixteen characters at least")}
        self.assertTrue(verify_webhook("sixteen characters at least", signed, BODY, now=AT))

    def test_nothing_else_is_taken(self) -> None:
        wrong = [
            self.check(f"{BODY} "),
            self.check(now=AT - 301),
            self.check(now=AT + 301),
            self.check(secret="whsec_" + base64.b64encode(b"another secret").decode()),
            self.check(id="evt_2"),
            self.check(timestamp=str(AT + 1)),
            self.check(timestamp="NaN"),
            self.check(timestamp=""),
            self.check(timestamp="\u0661\u0667\u0667"),
            self.check(signature=""),
            self.check(signature="v1,??? v1, v2,AAAA nonsense"),
            self.check(signature=sign(b"abcdefghijklmnopqrstuvwx").replace("v1,", "v1a,")),
            verify_webhook(SECRET, {}, BODY, now=AT),
        ]
        self.assertEqual(wrong, [False] * len(wrong))

    def test_an_empty_secret_which_anybody_could_sign_with_is_refused(self) -> None:
        for secret in ("", "whsec_", "whsec_???"):
            with self.assertRaises(TypeError):
                self.check(secret=secret, signature=sign(b""))


if __name__ == "__main__":
    unittest.main()
