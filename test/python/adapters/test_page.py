"""Each example of the page of the client runs as it is printed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from adapter_programs import run_program

from cairn_client import Cairn

PAGE = Path(__file__).parents[3] / "src/python/README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_page_runs_as_it_is_printed(example: str) -> None:
    cairn = Cairn()

    def delete_a_session() -> None:
        cairn.sessions.delete(cairn.sessions.create(agent_id="a", user_id="user-42").id)

    key, url = json.dumps(os.environ["CAIRN_API_KEY"]), os.environ["CAIRN_URL"]
    program = example.replace('"crn_…"', key).replace("http://127.0.0.1:8700", url)
    # The example with events ends with the first session that is deleted once it has begun.
    run_program(program, meanwhile=delete_a_session if "cairn.events" in example else None)
