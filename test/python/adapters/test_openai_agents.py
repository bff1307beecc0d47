"""CairnSession against the SQLite session of the OpenAI Agents SDK, and an agent that goes on in another process."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from typing import Any

from adapter_programs import run_program
from agents.memory import SessionSettings, SQLiteSession

from cairn_client import AsyncCairn, Cairn
from cairn_client.openai_agents import CairnSession

OPERATIONS = 500


def test_operations_by_chance_give_what_the_sqlite_session_gives() -> None:
    seed = int(os.environ.get("CAIRN_TEST_SEED") or random.randrange(2**31))
    print(f"CAIRN_TEST_SEED={seed}")
    chance = random.Random(seed)
    namespace = ["openai", uuid.uuid4().hex]

    async def all_of() -> None:
        client = AsyncCairn()
        settings = [None, SessionSettings(limit=2)]
        ours = [CairnSession(client.documents, f"s{i}", namespace=namespace, session_settings=one) for i, one in enumerate(settings)]
        theirs = [SQLiteSession(f"s{i}", session_settings=one) for i, one in enumerate(settings)]
        for _ in range(OPERATIONS):
            i = chance.randrange(2)
            match chance.randrange(9):
                case 0 | 1 | 2:
                    items = [item_by(chance) for _ in range(chance.randrange(4))]
                    for session in (ours[i], theirs[i]):
                        await session.add_items(items)
                case 3 | 4 | 5:
                    limit = chance.choice([None, None, 0, 1, 3, 1_000, -1])
                    assert repr(await ours[i].get_items(limit)) == repr(await theirs[i].get_items(limit))
                case 6 | 7:
                    assert repr(await ours[i].pop_item()) == repr(await theirs[i].pop_item())
                case _ if chance.random() < 0.2:
                    await ours[i].clear_session()
                    await theirs[i].clear_session()
                case _:
                    pass

    asyncio.run(all_of())
    assert Cairn().documents.count([*namespace, "s0", "parts"]) <= 40


def item_by(chance: random.Random) -> Any:
    small = chance.choice(["Hello", "ü😀", "\ud800", "", 1.0, 2**70, {"10": 1, "2": None}])
    content = '"' * 500_000 if chance.random() < 0.02 else small
    return {"role": chance.choice(["user", "assistant"]), "content": content}


AGENT = """
import asyncio, sys
from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from cairn_client import AsyncCairn
from cairn_client.openai_agents import CairnSession

set_tracing_disabled(True)

class Fake(Model):
    async def get_response(self, system_instructions, input, *args, **more):
        said = [item["content"] for item in input if item.get("role") == "user"]
        text = ResponseOutputText(type="output_text", text=" | ".join(said), annotations=[])
        message = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args, **more):
        raise NotImplementedError

session = CairnSession(AsyncCairn().documents, "conversation", namespace=["openai", sys.argv[1]])
print(asyncio.run(Runner.run(Agent(name="support", model=Fake()), sys.argv[2], session=session)).final_output)
"""


def test_an_agent_goes_on_in_another_process() -> None:
    name = uuid.uuid4().hex
    assert run_program(AGENT, name, "Where is my order?") == "Where is my order?"
    assert run_program(AGENT, name, "And the invoice?") == "Where is my order? | And the invoice?"
