"""The session for the OpenAI Agents SDK beside the SDK's own, with the SDK's runner, and with several agents at once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import contexture
import pytest

pytest.importorskip("agents")

from agents import SQLiteSession  # noqa: E402
from agents.memory import SessionSettings  # noqa: E402
from contexture.openai_agents import Session  # noqa: E402

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[3] / "docs/python.md"


def _item(some: random.Random, number: int) -> Any:
    text = f"text {number} é \u0000"
    items = [
        {"role": "user", "content": text},
        {"content": text, "role": "developer"},
        {"role": "user", "content": [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": "https://x/y.png"}]},
        {"id": f"msg_{number % 3}", "content": [{"annotations": [], "text": text, "type": "output_text"}], "role": "assistant",
         "status": "completed", "type": "message"},
        {"arguments": "{\"n\": 1.0}", "call_id": f"call_{number}", "name": "weather", "type": "function_call", "id": "fc_1"},
        {"call_id": f"call_{number - 1}", "output": text, "type": "function_call_output"},
        {"type": "function_call_output", "call_id": "of nobody", "output": [{"type": "input_text", "text": text}]},
        {"id": "rs_1", "summary": [], "type": "reasoning", "encrypted_content": "x"},
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": text}},
        {"type": "of_another_year", "n": 1.0, "big": 12345678901234567890123, "none": None},
        {"type": "message", "role": "user", "content": 7},
    ]  # fmt: skip
    return some.choice(items)


def test_random_calls_have_the_answers_of_the_sdk(address: str, soak: bool) -> None:
    """The same calls on the SDK's own session: equal in each byte of JSON, the order of members included."""
    seed = int(os.environ.get("CONTEXTURE_SEED", "24"))
    print(f"CONTEXTURE_SEED={seed}")
    some = random.Random(seed)

    async def run() -> None:
        async with contexture.AsyncEngine(address) as engine:
            ours, theirs = Session(engine, "ada / 42"), SQLiteSession("ada / 42")
            for number in range(600 if soak else 30):
                call = some.choice(["add", "add", "add", "get", "pop", "pop", "clear" if number % 4 == 0 else "get"])
                if call == "add":
                    items = [_item(some, number) for _ in range(some.randrange(4))]
                    got = [await one.add_items(items) for one in (ours, theirs)]
                elif call == "get":
                    limit = some.choice([None, None, 0, 1, 3, 100, -1])
                    got = [await one.get_items(limit) for one in (ours, theirs)]
                elif call == "pop":
                    got = [await one.pop_item() for one in (ours, theirs)]
                else:
                    got = [await one.clear_session() for one in (ours, theirs)]
                assert json.dumps(got[0]) == json.dumps(got[1]), (number, call)
                if some.randrange(8) == 0:
                    # Another process goes on with the session.
                    ours = Session(engine, "ada / 42")
            theirs.close()

    asyncio.run(run())


def test_what_is_taken_back_is_kept(file: str) -> None:
    async def run() -> None:
        async with contexture.AsyncEngine(file) as engine:
            session = Session(engine, "ada", session_settings=SessionSettings(limit=2))
            await session.add_items([{"role": "user", "content": f"marmalade {n}"} for n in range(30)])
            assert [item["content"] for item in await session.get_items()] == ["marmalade 28", "marmalade 29"]  # type: ignore[typeddict-item]
            for _ in range(10):
                await session.pop_item()
            # One branch leads to all ten.
            assert len(await session.conversation.branches()) == 2
            await session.add_items([{"role": "user", "content": "jam"}])
            await session.clear_session()
            await session.clear_session()
            assert await session.get_items() == [] and await session.pop_item() is None
            assert len(await engine.search("marmalade", limit=100)) == 30
            lines = [len(await session.conversation.on(one.name).messages()) for one in await session.conversation.branches()]
            assert sorted(lines) == [0, 21, 30]

    asyncio.run(run())


def test_odd_items_are_kept_and_others_are_searched(address: str) -> None:
    """What SQLiteSession can store is stored; an item that is refused takes nothing else out of the search."""
    deep: Any = "end"
    for _ in range(200):
        deep = [deep]
    odd: list[Any] = [
        {"role": "user", "content": "marmalade \ud83d"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\": \"\ude00 jam\"}"},
        {"type": "function_call_output", "call_id": "c1", "output": 7},
        {"type": "of_another_year", "n": float("inf")},
        {"type": "of_another_year", "deep": deep},
        {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}", "id": "fc_1"},
        {"type": "function_call", "call_id": "c3", "name": "weather", "arguments": "{}", "id": "fc_1"},
    ]
    items = [*odd, *({"role": "user", "content": f"honey {n}"} for n in range(20))]

    async def run() -> None:
        async with contexture.AsyncEngine(address) as engine:
            ours, theirs = Session(engine, "ada"), SQLiteSession("ada")
            for one in (ours, theirs):
                await one.add_items(items)
            assert json.dumps(await ours.get_items()) == json.dumps(await theirs.get_items()) == json.dumps(items)
            theirs.close()
            assert len(await engine.search("honey", limit=100)) == 20
            assert [hit.snippet.text for hit in await engine.search("marmalade")] == ["marmalade \ufffd"]
            assert len(await engine.search("jam")) == 1

    asyncio.run(run())


def test_batches_are_cut_by_bytes(file: str) -> None:
    async def run() -> None:
        async with contexture.AsyncEngine(file) as engine:
            session = Session(engine, "ada")
            items: list[Any] = [{"type": "of_another_year", "n": n, "text": "x" * 8_000_000} for n in range(10)]
            await session.add_items(items)
            assert await session.get_items() == items
            with pytest.raises(contexture.InvalidInput, match="item_bytes"):
                await session.add_items([{"type": "of_another_year", "text": "x" * 17_000_000}])  # type: ignore[typeddict-item]

    asyncio.run(run())


def test_agents_at_once_lose_nothing(address: str) -> None:
    """Two processes, as two engines: they add and take back at the same time. Each item is there or was returned by one pop."""

    async def run() -> None:
        async with contexture.AsyncEngine(address) as first, contexture.AsyncEngine(address) as second:
            sessions = [Session(one, "shared") for one in (first, second)]
            popped: list[Any] = []

            async def add(number: int) -> None:
                pair: Any = [{"role": "user", "content": f"{number} {part}"} for part in ("first", "second")]
                await sessions[number % 2].add_items(pair)

            async def pop(number: int) -> None:
                popped.append(await sessions[number % 2].pop_item())

            await asyncio.gather(*(add(n) for n in range(12)), *(pop(n) for n in range(6)))
            left = await sessions[0].get_items()
            assert left == await sessions[1].get_items()
            # What an agent adds at once stays together: of a pair, only the second may be taken back.
            order = [item["content"].split() for item in left]
            for number, part in order:
                if part == "second":
                    assert order[order.index([number, part]) - 1] == [number, "first"]
            texts = [item["content"] for item in (*left, *popped) if item is not None]
            assert sorted(texts) == sorted(f"{n} {part}" for n in range(12) for part in ("first", "second"))

    asyncio.run(run())


# What the program of the page gets as its model: each turn calls a tool, then answers. It is killed where it is told to be.
MODEL = '''
import os, pathlib
from agents import Model, ModelResponse, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

CALLED = pathlib.Path("called")

class ScriptedModel(Model):
    async def get_response(self, system_instructions, input, *_, **__):
        number = len(CALLED.read_bytes()) if CALLED.exists() else 0
        if number == int(os.environ["KILLED_AT"]):
            os.kill(os.getpid(), 9)
        with CALLED.open("a") as called:
            called.write("x")
        if input[-1].get("type") != "function_call_output":
            call = ResponseFunctionToolCall(arguments='{"city": "Rome"}', call_id=f"call_{number}", name="weather", type="function_call")
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        turns = sum(item.get("role") == "user" for item in input)
        text = ResponseOutputText(annotations=[], text=f"{turns}: {input[-1]['output']}", type="output_text")
        message = ResponseOutputMessage(id=f"msg_{number}", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    async def stream_response(self, *_, **__):
        raise NotImplementedError
'''


def _program() -> str:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return next(block for block in blocks if "contexture.openai_agents" in block)


@pytest.mark.skipif(os.name == "nt", reason="kill -9")
def test_program_of_the_page_goes_on_after_a_kill(tmp_path: Path) -> None:
    code = _program().replace('model="gpt-4o"', "model=ScriptedModel()")
    (tmp_path / "scripted_model.py").write_text(MODEL)
    (tmp_path / "agent.py").write_text("from scripted_model import ScriptedModel\n" + code)
    paths = os.pathsep.join([str(tmp_path), *sys.path])

    def start(killed_at: int) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ, "KILLED_AT": str(killed_at), "PYTHONPATH": paths, "OPENAI_AGENTS_DISABLE_TRACING": "1"
        }  # fmt: skip
        words = [sys.executable, "agent.py"]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)

    # In the second turn, between the tool and the answer.
    assert start(3).returncode == -signal.SIGKILL
    ended = start(-1)
    assert ended.returncode == 0, ended.stderr

    async def stored() -> tuple[list[Any], int]:
        async with contexture.AsyncEngine(str(tmp_path / "agents.db")) as engine:
            session = Session(engine, "ada")
            return await session.get_items(), len(await session.conversation.branches())

    items, branches = asyncio.run(stored())
    assert [item["content"] for item in items if item.get("role") == "user"] == ["What about Rome?", "And Oslo?", "And Lima?"]
    assert ended.stdout.splitlines() == ["2: Rome: sunny", "3: Rome: sunny"]
    # The turn that was interrupted was asked again; what there was of it is on a branch of its own.
    kinds = [item.get("type", "message") for item in items]
    assert kinds == ["message", "function_call", "function_call_output", "message"] * 3 and branches == 2
