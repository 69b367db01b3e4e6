"""A program that type checkers must accept, with the types that they must see."""

from __future__ import annotations

from typing import Any

from typing_extensions import assert_type

from contexture import AsyncEngine, Call, Compiled, Conversation, Engine, Note, Recorded, Rule, ToolCall, UsageSum, tool_output, wrap


class Client:
    """Stands for an SDK's."""


def use(engine: Engine) -> None:
    chat = engine.open("c", title="t", metadata={"a": 1})
    assert_type(chat, Conversation)
    assert_type(chat.append("hello").head, "str | None")
    call = chat.compile(model="gpt-4o", tools=[{"name": "f"}], policy={"preview": 800})
    assert_type(call, Compiled)
    assert_type(call.payload, "dict[str, Any]")
    recorded = chat.record(call, {"id": "c1"})
    assert_type(recorded, Recorded)
    assert_type(recorded.calls, "list[ToolCall]")
    chat.append([tool_output(one, "done") for one in recorded.calls])
    assert_type(engine.usage("model").total, UsageSum)
    assert_type(chat.notes.get("city"), "Note | None")
    assert_type(chat.rules(), "list[Rule]")
    assert_type(wrap(Client(), chat, window=4000), Client)
    for one in chat.calls():
        assert_type(one, Call)
    for value in chat.values.items("a"):
        assert_type(value.data, bytes)


async def use_async(engine: AsyncEngine) -> None:
    chat = await engine.open("c")
    assert_type((await chat.append("hello")).items, "list[str]")
    async for one in engine.conversations():
        assert_type(one.title, "str | None")
    assert_type(await chat.export_lines(), bytes)


def name_of(call: ToolCall) -> Any:
    return call.input["name"]
