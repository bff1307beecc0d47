"""Verifies the traces of an export as src/docs/reference/audit-format.md describes it: verify_export.py FILE [PUBLIC KEY]"""

import json
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
tables: dict[str, dict] = {"audit_chains": {}, "audit_segments": {}, "audit_removals": {}}
traces: dict[tuple[str, int], tuple[str, str]] = {}
wrong: list[str] = []


def text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def data(encoded: str) -> bytes:
    return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


def check(public_key: str, signature: str, *lines: object) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(data(public_key)).verify(data(signature), "\n".join(map(str, lines)).encode())
    except InvalidSignature:
        wrong.append(f"signature: {lines[1]}")


with open(sys.argv[1], encoding="utf-8", newline="\n") as export:
    lines = export.readlines()
for line in lines:
    record = json.loads(line)
    if record.get("table") in tables:
        tables[record["table"]][record["key"]] = record["row"]
    elif record.get("table") == "traces" and "link" in record["row"]:
        link = record["row"]["link"]
        row = line.rstrip("\n")[len(f'{{"table":"traces","key":"{record["key"]}","row":') : -1].replace(f'"link":"{link}",', "", 1)
        chain, place, salt, _ = link.split(".")
        traces[chain, int(place)] = (record["key"], text(sha256(f"{salt}\n{record['key']}\n{row}".encode()).digest()))

for chain, begun in tables["audit_chains"].items():
    heads = [f"{head['chain']} {head['count']} {head['digest']}" for head in begun["previous"]]
    start = ["cairn audit chain 1", chain, begun["publicKey"], begun["startedAt"], begun["after"], *heads]
    digest = sha256("\n".join(map(str, start)).encode()).digest()
    if len(sys.argv) > 2 and begun["publicKey"] != sys.argv[2]:
        wrong.append(f"key: {chain}")
    for key, signed in sorted((key, row) for key, row in tables["audit_segments"].items() if key.startswith(chain)):
        first = sum(DIGITS.index(digit) * 62**i for i, digit in enumerate(reversed(key[12:]))) * 256
        names = text(sha256(signed["traces"].encode()).digest()) if "traces" in signed else signed["names"]
        check(begun["publicKey"], signed["signature"], "cairn audit head 1", chain, signed["count"], signed["digest"], names, signed["at"])
        gone = tables["audit_removals"].get(key)
        if gone is not None:
            what = json.dumps(gone.get("all", gone.get("removed")), separators=(",", ":"))
            check(gone["publicKey"], gone["signature"], "cairn audit removals 1", key, what)
        removed = {one["place"]: one for one in (gone or {}).get("removed", [])}
        for place in range(len(signed.get("leaves", "")) // 43):
            leaf = signed["leaves"][place * 43 : place * 43 + 43]
            digest = sha256(digest + data(leaf)).digest()
            expected = removed[place].get("now") if place in removed else leaf
            found = traces.pop((chain, first + place), ("", None))
            if found[1] != expected:
                wrong.append(f"trace: {signed['traces'][place * 13 + 1 : place * 13 + 13]}")
        if "leaves" not in signed:
            digest = data(signed["digest"])
        if text(digest) != signed["digest"]:
            wrong.append(f"digest: {chain} at {signed['count']}")

wrong += [f"not signed: {key[1:]}" for key, _ in traces.values()]
print("\n".join(wrong) or "nothing was changed")
sys.exit(1 if wrong else 0)
