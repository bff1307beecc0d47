"""Figures of the client next to bare httpx2 and the standard library: scripts/python test/python/figures.py

It needs a server that is used by nobody else (CAIRN_URL, CAIRN_API_KEY), prints the ratios, and fails where one is above what is promised.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import httpx2

from cairn_client import AsyncCairn, Cairn

CALLS = 600
WRITES = 500
NAMESPACE = ["figures"]
PROMISED = {"one call": 1.3, f"{WRITES} writes at once": 1.3, "import without the transport": 3.0}


def timed(run: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def one_call(headers: dict[str, str], url: str) -> float:
    cairn, http = Cairn(), httpx2.Client()
    cairn.documents.put(NAMESPACE, "k", {"a": 1})
    body = {"operations": [{"op": "get", "namespace": NAMESPACE, "key": "k"}]}
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(CALLS):
        bare.append(timed(lambda: http.post(f"{url}/v1/documents/query", json=body, headers=headers).json()))
        ours.append(timed(lambda: cairn.documents.get(NAMESPACE, "k")))
    return statistics.median(ours) / statistics.median(bare)


async def writes_at_once(headers: dict[str, str], url: str) -> float:
    cairn = AsyncCairn()
    http = httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=100, max_keepalive_connections=20))

    async def bare(i: int) -> None:
        operation = {"op": "put", "namespace": NAMESPACE, "key": str(i), "value": {"i": i}}
        own = {**headers, "idempotency-key": os.urandom(16).hex()}
        (await http.post(f"{url}/v1/documents/batch", json={"operations": [operation]}, headers=own)).json()

    async def ours(i: int) -> None:
        await cairn.documents.put(NAMESPACE, str(i), {"i": i})

    times: dict[Any, list[float]] = {bare: [], ours: []}
    for _ in range(6):
        for write, taken in times.items():
            begun = time.perf_counter()
            await asyncio.gather(*(write(i) for i in range(WRITES)))
            taken.append(time.perf_counter() - begun)
    # The first of each makes its connections.
    return statistics.median(times[ours][1:]) / statistics.median(times[bare][1:])


def import_of(code: str) -> float:
    program = f"import time\nbegun = time.process_time()\nimport {code}\nprint(time.process_time() - begun)"
    runs = (subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(15))
    return statistics.median(float(run.stdout) for run in runs)


def main() -> int:
    url, headers = os.environ["CAIRN_URL"], {"x-api-key": os.environ["CAIRN_API_KEY"]}
    ratios = [
        one_call(headers, url),
        asyncio.run(writes_at_once(headers, url)),
        import_of("cairn_client") / import_of("json, http.client"),
    ]
    for (name, most), ratio in zip(PROMISED.items(), ratios, strict=True):
        print(f"{name}: {ratio:.2f}, at most {most}")
    Cairn().documents.delete_all(NAMESPACE)
    return int(any(ratio > most for ratio, most in zip(ratios, PROMISED.values(), strict=True)))


if __name__ == "__main__":
    sys.exit(main())
