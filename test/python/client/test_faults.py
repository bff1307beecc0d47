"""Writes over a connection that fails by chance: each is made exactly once."""

from __future__ import annotations

import os
import random
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from conftest import Colour

WRITES = int(os.environ.get("CAIRN_TEST_FAULTS", "1000"))
FAULTS = ["before", "within", "after", "slow", "429", "503", "none"]


class Proxy:
    """Passes requests on, one for each connection, and does something to them by chance, but never to the fourth attempt of one."""

    def __init__(self, seed: int) -> None:
        url = urlsplit(os.environ["CAIRN_URL"])
        self._server = (url.hostname or "", url.port or 80)
        self._random = random.Random(seed)
        self._attempts: dict[bytes, int] = {}
        self._lock = threading.Lock()
        self.faults: dict[str, int] = dict.fromkeys(FAULTS, 0)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=500)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _fault(self, head: bytes) -> str:
        [key] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"idempotency-key:")]
        with self._lock:
            self._attempts[key] = self._attempts.get(key, 0) + 1
            fault = self._random.choice(FAULTS) if self._attempts[key] < 4 else "none"
            self.faults[fault] += 1
        return fault

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = whole(connection)
                fault = self._fault(request.split(b"\r\n\r\n")[0])
                if fault == "before":
                    return
                if fault in ("429", "503"):
                    code = "rate_limit_exceeded" if fault == "429" else "service_unavailable"
                    body = b'{"error":{"code":"%s","message":"No."}}' % code.encode()
                    connection.sendall(
                        b"HTTP/1.1 %s No\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (fault.encode(), len(body), body)
                    )
                    return
                with socket.create_connection(self._server) as server:
                    server.sendall(request.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
                    answer = whole(server).replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
                if fault == "after":
                    return
                if fault == "slow":
                    for at in range(0, len(answer), 50):
                        connection.sendall(answer[at : at + 50])
                        threading.Event().wait(0.005)
                    return
                if fault == "within":
                    connection.sendall(answer[: len(answer) // 2])
                    return
                connection.sendall(answer)
            except OSError:
                return

    def close(self) -> None:
        self._listener.close()


def whole(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65_536)
        if not piece:
            raise OSError("closed")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < (lengths[0] if lengths else 0):
        piece = connection.recv(65_536)
        if not piece:
            raise OSError("closed")
        body += piece
    return head + b"\r\n\r\n" + body


@pytest.fixture
def proxy(request: pytest.FixtureRequest) -> Any:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    made = Proxy(seed)
    yield made
    made.close()


def test_each_write_is_made_exactly_once_whatever_happens_to_its_connection(colour: Colour, proxy: Proxy) -> None:
    count = WRITES // 3 + 1

    async def writes() -> None:
        cairn = colour.client(base_url=proxy.url, retries=3)
        cairn.options = cairn.options._replace(random=lambda: 0.0)
        namespace = ["faults", colour.name]
        direct = colour.client().documents.of(user_id=f"faults-{proxy.url}")
        through = cairn.documents.of(user_id=f"faults-{proxy.url}")

        async def write(i: int) -> None:
            await colour.result(through.append(namespace, {"i": i}))

        limiter = anyio.CapacityLimiter(20)

        async def limited(i: int) -> None:
            async with limiter:
                await write(i)

        if colour.name == "blocking":
            for i in range(count):
                await write(i)
        else:
            async with anyio.create_task_group() as group:
                for i in range(count):
                    group.start_soon(limited, i)
        found = [one.value["i"] for one in await colour.everything(direct.list(namespace, limit=1000))]
        assert sorted(found) == list(range(count))

    colour.run(writes)
    assert all(proxy.faults.values()), proxy.faults
