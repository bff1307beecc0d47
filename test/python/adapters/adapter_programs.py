"""Programs of frameworks that tests run in processes of their own."""

from __future__ import annotations

import subprocess
import sys


def run_program(program: str, *arguments: str) -> str:
    """Runs a program and returns the last line that it prints."""
    ended = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip().splitlines()[-1]
