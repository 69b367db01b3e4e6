"""The loop of an agent: compile, record, answer tool calls, check them, see what it used."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import contexture
import pytest
from contexture import DoesNotFit, Engine, tool_output
from scripted import answer

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("weather", "delete_all")
]
POLICY: dict[str, Any] = {
    "limit_tokens": 4000,
    "preview": 800,
    "clear": {"keep_recent": 3},
    "compact": "manifest",
    "memory": {"of": "owner", "tools": True},
    "tools": {"deny": ["delete_*"]},
}


def test_loop_answers_its_own_tools_and_refuses_denied_ones(engine: Engine) -> None:
    chat = engine.open("trip")
    chat.append("What about Rome?")
    call = chat.compile(model="gpt-4o", to="openai-chat", tools=TOOLS, policy=POLICY)
    offered = [tool["function"]["name"] for tool in call.payload["tools"]]
    assert "weather" in offered and "delete_all" not in offered
    assert not call.owns("weather")
    own = next(name for name in call.own_tools if "memory" in name)
    asked = answer(
        calls=[("c1", "weather", {"city": "Rome"}), ("c2", "delete_all", {}), ("c3", own, {"key": "city", "value": "Rome"})]
    )
    recorded = chat.record(call, asked)
    assert recorded.latched and [one.by for one in recorded.calls] == ["caller", "server", "server"]
    assert recorded.calls[0].input == {"city": "Rome"}
    assert chat.check("weather", call=call)
    refused = chat.check("delete_all", call=call)
    assert not refused and refused.refusal
    handled = chat.handle(call)
    assert {one.call_id for one in handled.answered} == {"c2", "c3"}
    (waiting,) = handled.waiting
    chat.append(tool_output(waiting, "sunny, 21 degrees"))
    assert chat.handle().waiting == []
    call = chat.compile(tools=TOOLS, policy=POLICY)
    roles = [message["role"] for message in call.payload["messages"]]
    assert roles.count("tool") == 3
    recorded = chat.record(call, answer("Sunny."))
    assert recorded.calls == []
    assert chat.record(call, answer("Sunny.")).replayed
    assert chat.info().items == 8


def test_request_only_grows_until_an_epoch_opens(memory: Engine) -> None:
    chat = memory.open("grows")
    before: list[str] = []
    for turn in range(12):
        chat.append(f"Question {turn}? " + "lorem ipsum dolor sit " * 40)
        call = chat.compile(model="gpt-4o", to="openai-chat", window=3000, reserve=500)
        now = [json.dumps(message) for message in call.payload["messages"]]
        epoch = call.report.to_dict()["epoch"]
        if turn and epoch["reason"] is None:
            assert now[: len(before)] == before, turn
        before = now
        chat.record(call, answer(f"Answer {turn}."))
    assert chat.log().entries


def test_what_does_not_fit_is_refused_with_figures(memory: Engine) -> None:
    chat = memory.open("narrow")
    chat.append("lorem ipsum dolor sit " * 2000)
    with pytest.raises(DoesNotFit) as raised:
        chat.compile(model="gpt-4", window=2000)
    error = raised.value
    assert error.needed is not None and error.allowed is not None and error.needed > error.allowed
    assert error.segments and error.hint


def test_explanations_tell_and_store_nothing(memory: Engine) -> None:
    chat = memory.open("why")
    chat.append("Hello")
    chat.record(chat.compile(model="gpt-4o", to="openai-chat"), answer("Hi."))
    before = chat.info().events
    explained = chat.explain(model="gpt-4o", text=True)
    assert "history" in str(explained) and explained._repr_html_().startswith("<iframe")
    told = chat.what_if(model="gpt-4o-mini")
    assert told.dollars is not None
    assert chat.info().events == before


def test_stateless_compile_takes_and_gives_a_plan(memory: Engine) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]
    first = memory.compile_messages(messages, model="gpt-4o", to="openai-chat")
    assert first.id is None and first.plan is not None
    messages += [{"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Bye"}]
    second = memory.compile_messages(json.dumps(messages).encode(), model="gpt-4o", to="openai-chat", plan=first.plan)
    assert second.payload["messages"][0] == first.payload["messages"][0]
    assert list(memory.conversations()) == []


def test_usage_is_recorded(engine: Engine) -> None:
    chat = engine.open("spent")
    chat.append("Hello")
    chat.record(chat.compile(model="gpt-4o", to="openai-chat"), answer("Hi.", tokens=1000))
    (call,) = chat.calls()
    assert call.tokens is not None and call.tokens.input == 1000
    assert engine.call(call.id, include=["sent"]).sent is not None
    usage = engine.usage("model")
    assert usage.total.calls == 1 and float(usage.total.dollars) > 0
    assert [group.model for group in usage.groups] == ["gpt-4o"]
    assert chat.usage().total.input_tokens == 1000
    assert list(engine.calls(since="2000-01-01", until="2000-01-02")) == []


def test_asyncio_has_the_same_operations(address: str) -> None:
    async def loop() -> list[str]:
        async with contexture.AsyncEngine(address) as engine:
            chat = await engine.open("async")
            await asyncio.gather(*(chat.append(f"text {n}", key=str(n)) for n in range(20)))
            call = await chat.compile(model="gpt-4o", to="openai-chat")
            await chat.record(call, answer("Hi."))
            assert len(await engine.search("text", limit=50)) == 20
            with pytest.raises(contexture.NotFound):
                await engine.open("no-such", existing=True)
            return [one.kind async for one in chat.items(page=6)]

    assert len(asyncio.run(loop())) == 21
    # Another loop, and the synchronous engine, see the same.
    assert contexture.Engine(address).open("async").info().items == 21
