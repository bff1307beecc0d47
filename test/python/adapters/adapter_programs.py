"""Programs of frameworks that tests run in processes of their own."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable


def run_program(program: str, *arguments: str, meanwhile: Callable[[], None] | None = None) -> str:
    """Runs a program in a fork, where frameworks need not be imported again, and returns the last line that it prints.

    Args:
        program: Its source.
        arguments: Those of its command line.
        meanwhile: Is done again and again until it ends.
    """
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            _become(program, arguments, output.fileno())
        ended, status = os.waitpid(child, 0 if meanwhile is None else os.WNOHANG)
        while meanwhile is not None and not ended:
            meanwhile()
            ended, status = os.waitpid(child, os.WNOHANG)
        output.seek(0)
        said = output.read()
    assert status == 0, said
    return (said.strip().splitlines() or [""])[-1]


def _become(program: str, arguments: tuple[str, ...], output: int) -> None:
    code = 1
    try:
        for stream in (1, 2):
            os.dup2(output, stream)
        sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1)
        sys.argv = ["program", *arguments]
        exec(compile(program, "program", "exec", dont_inherit=True), {"__name__": "__main__"})
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)
