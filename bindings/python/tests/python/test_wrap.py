"""`wrap` around the SDKs of OpenAI and Anthropic, whose HTTP ends in a script: what is sent, stored, and passed unchanged."""

from __future__ import annotations

import asyncio
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import contexture
import pytest
from contexture import AsyncEngine, Engine, wrap

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
httpx = pytest.importorskip("httpx2")

PAGE = Path(__file__).resolve().parents[4] / "docs/python.md"

POLICY: dict[str, Any] = {"limit_tokens": 1500, "preview": 800, "clear": {"keep_recent": 3}, "compact": "manifest", "tools": {"deny": ["rm*"]}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}} for name in ("weather", "rm_all")
]


def _chat(number: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": f"Answer {number}."}
    return {
        "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": "gpt-4o",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }  # fmt: skip


def _chat_events(number: int) -> list[dict[str, Any]]:
    head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o"}
    deltas: list[tuple[dict[str, str], str | None]] = [({"role": "assistant", "content": "Answer "}, None), ({"content": f"{number}."}, None), ({}, "stop")]
    return [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]


def _response(number: int) -> dict[str, Any]:
    text = {"type": "output_text", "text": f"Answer {number}.", "annotations": []}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": f"resp_{number}", "object": "response", "created_at": 1, "model": "gpt-4o", "status": "completed", "output": [message],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": {
            "input_tokens": 9, "output_tokens": 3, "total_tokens": 12, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }  # fmt: skip


def _response_events(number: int) -> list[dict[str, Any]]:
    done = _response(number)
    return [
        {"type": "response.created", "sequence_number": 0, "response": {**done, "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": done["output"][0]},
        {"type": "response.completed", "sequence_number": 2, "response": done},
    ]


def _message(number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": f"Answer {number}."}], "usage": {"input_tokens": 9, "output_tokens": 3},
    }  # fmt: skip


def _message_events(number: int) -> list[dict[str, Any]]:
    begun = {**_message(number), "content": [], "stop_reason": None}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"Answer {number}."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]


class Wire:
    """What providers are sent, and their answers."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.fails = 0
        """How many of the next requests are answered with an error."""
        self.halves = False
        """Whether streams of Chat Completions cut an emoji in two."""

    def answer(self, request: Any) -> Any:
        body = json.loads(request.content)
        self.sent.append(body)
        if self.fails:
            self.fails -= 1
            return httpx.Response(500, json={"error": {"message": "out of order", "type": "server_error"}})
        path, number = request.url.path, len(self.sent)
        form = {"/v1/chat/completions": (_chat, _chat_events), "/v1/responses": (_response, _response_events)}
        whole, events = form.get(path, (_message, _message_events))
        if not body.get("stream"):
            return httpx.Response(200, json=whole(number))
        lines = "".join(
            (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n" for event in events(number)
        )
        if self.halves:
            lines = lines.replace("Answer ", "\\ud83d").replace(f"{number}.", "\\ude00")
        end = "" if path != "/v1/chat/completions" else "data: [DONE]\n\n"
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=lines + end)

    async def answer_async(self, request: Any) -> Any:
        return self.answer(request)

    def client(self, kind: Any) -> Any:
        """A client of an SDK that ends here."""
        is_async = kind.__name__.startswith("Async")
        made = httpx.AsyncClient if is_async else httpx.Client
        transport = httpx.MockTransport(self.answer_async if is_async else self.answer)
        return kind(api_key="k", http_client=made(transport=transport), max_retries=0)


def _chat_turn(client: Any, history: list[Any], stream: bool) -> str:
    answer = client.chat.completions.create(model="gpt-4o", messages=history, tools=TOOLS, seed=7, stream=stream)
    if stream:
        text = "".join(chunk.choices[0].delta.content or "" for chunk in answer)
        history.append({"role": "assistant", "content": text})
        return text
    # As programs do: the SDK's own object.
    history.append(answer.choices[0].message)
    return str(answer.choices[0].message.content)


def _responses_turn(client: Any, history: list[Any], stream: bool) -> str:
    answer = client.responses.create(model="gpt-4o", input=history, instructions="Be brief.", stream=stream, user="ada")
    if stream:
        (answer,) = [event.response for event in answer if event.type == "response.completed"]
    history.extend(answer.output)
    return str(answer.output_text)


def _messages_turn(client: Any, history: list[Any], stream: bool) -> str:
    answer = client.messages.create(
        model="claude-sonnet-5", max_tokens=500, system="Be brief.", messages=history, stream=stream, metadata={"user_id": "ada"}
    )
    if stream:
        with answer as events:
            text = "".join(event.delta.text for event in events if event.type == "content_block_delta")
        history.append({"role": "assistant", "content": text})
        return text
    history.append({"role": "assistant", "content": answer.content})
    return str(answer.content[0].text)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "turn", "member", "kept"),
    [
        ("OpenAI", _chat_turn, "messages", {"seed": 7}),
        ("OpenAI", _responses_turn, "input", {"user": "ada", "instructions": "Be brief."}),
        ("Anthropic", _messages_turn, "messages", {"metadata": {"user_id": "ada"}, "max_tokens": 500}),
    ],
)
def test_calls_are_stored_compiled_and_recorded(
    memory: Engine, kind: str, turn: Callable[..., str], member: str, kept: dict[str, Any], stream: bool
) -> None:
    wire, chat = Wire(), memory.open("c")
    client = wrap(wire.client(getattr(openai, kind, None) or getattr(anthropic, kind)), chat, policy=POLICY, window=2500, reserve=300)
    history: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for number in range(1, 9):
            history.append({"role": "user", "content": f"Question {number}? " + "lorem ipsum " * 100})
            assert turn(client, history, stream) == f"Answer {number}."
    # The program's history is its own; what was sent of it stayed under the budget, with all else as it was set.
    assert len(history) == 16 and len(wire.sent[-1][member]) < 15
    assert all(body.get(name) == value for body in wire.sent for name, value in kept.items())
    assert all("Be brief." in json.dumps(body.get("system")) for body in wire.sent if kind == "Anthropic")
    assert max(len(json.dumps(body)) for body in wire.sent) < 4.5 * 2500
    # Each question and answer is stored once, on one branch; each call is recorded.
    roles = [message["role"] for message in chat.messages()]
    assert roles.count("user") == roles.count("assistant") == 8
    assert [branch.name for branch in chat.branches()] == ["main"]
    assert len([*chat.calls()]) == 8
    if member == "messages" and kind == "OpenAI":
        assert [tool["function"]["name"] for tool in wire.sent[-1]["tools"]] == ["weather"]


def test_edited_histories_open_a_branch(memory: Engine) -> None:
    wire, chat = Wire(), memory.open("c")
    client = wrap(wire.client(openai.OpenAI), chat)
    client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Rome?"}])
    client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Oslo?"}])
    assert [body["messages"][-1]["content"] for body in wire.sent] == ["Rome?", "Oslo?"]
    assert len(chat.branches()) == 2
    assert [len(chat.on(branch.name).messages()) for branch in chat.branches()] == [2, 2]


@pytest.mark.parametrize("stream", [False, True])
def test_async_clients(file: str, stream: bool) -> None:
    wire = Wire()

    async def run() -> None:
        async with AsyncEngine(file) as engine:
            client = wrap(wire.client(openai.AsyncOpenAI), await engine.open("c"), policy=POLICY)
            claude = wrap(wire.client(anthropic.AsyncAnthropic), await engine.open("d"), policy=POLICY)
            answer = await client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Rome?"}], stream=stream)
            if stream:
                async with answer as events:
                    assert [chunk.id async for chunk in events] == ["chatcmpl-1"] * 3
            message = await claude.messages.create(
                model="claude-sonnet-5", max_tokens=100, messages=[{"role": "user", "content": "Oslo?"}], stream=stream
            )
            if stream:
                assert [event.type async for event in message][-1] == "message_stop"
            for name, number in (("c", 1), ("d", 2)):
                texts = [message["parts"][0]["text"] for message in await (await engine.open(name)).messages()]
                assert texts[1:] == [f"Answer {number}."]
            with pytest.raises(contexture.InvalidInput):
                wrap(wire.client(openai.OpenAI), await engine.open("c"))

    asyncio.run(run())


def test_calls_that_cannot_be_taken_in_pass_unchanged(memory: Engine) -> None:
    wire, chat = Wire(), memory.open("c")
    plain = wire.client(openai.OpenAI)
    client = wrap(plain, chat, policy=POLICY, window=4000)
    question = [{"role": "user", "content": "Rome?"}]
    held = {"model": "gpt-4o", "input": question, "previous_response_id": "resp_0"}
    with pytest.warns(UserWarning, match="previous_response_id"):
        assert client.responses.create(**held).id == "resp_1"
    with pytest.warns(UserWarning, match="tokens"):
        client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "lorem ipsum " * 5000}])
    with pytest.warns(UserWarning, match="with_raw_response"):
        client.chat.completions.with_raw_response.create(model="gpt-4o", messages=question)
    with pytest.warns(UserWarning, match="parse"):
        client.chat.completions.parse(model="gpt-4o", messages=question)
    assert {name: wire.sent[0].get(name) for name in held} == held
    assert len(wire.sent[1]["messages"][0]["content"]) == 12 * 5000
    assert len([*chat.calls()]) == 0
    # What is derived of a wrapped client is wrapped; the client that was given is not.
    client.with_options(timeout=3).chat.completions.create(model="gpt-4o", messages=question)
    assert len([*chat.calls()]) == 1
    plain.chat.completions.create(model="gpt-4o", messages=question)
    assert len([*chat.calls()]) == 1
    # The SDK's helper calls `create`.
    with client.chat.completions.stream(model="gpt-4o", messages=[{"role": "user", "content": "Oslo?"}]) as events:
        assert [*events]
    assert len([*chat.calls()]) == 2
    with pytest.raises(contexture.InvalidInput, match="SDK"):
        wrap(object(), chat)
    with pytest.raises(contexture.InvalidInput, match="wrapped already"):
        wrap(client, chat)
    claude: Any = wrap(wire.client(anthropic.Anthropic), chat)
    with pytest.warns(UserWarning, match="`create`"):
        claude.beta.messages.create(model="claude-sonnet-5", max_tokens=9, messages=question)
    assert len([*chat.calls()]) == 2


@pytest.mark.parametrize("chat", [None, "c", "sync"])
def test_async_clients_need_a_conversation_of_asyncio(memory: Engine, chat: Any) -> None:
    with pytest.raises(contexture.InvalidInput, match="AsyncEngine"):
        wrap(Wire().client(openai.AsyncOpenAI), memory.open("c") if chat == "sync" else chat)


def test_provider_errors_are_the_programs(memory: Engine) -> None:
    """The same call after one stores nothing twice."""
    wire, chat = Wire(), memory.open("c")
    client = wrap(wire.client(openai.OpenAI), chat)
    question = [{"role": "user", "content": "Rome?"}]
    wire.fails = 1
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="gpt-4o", messages=question)
    # What was asked stays, without an answer.
    assert [message["role"] for message in chat.messages()] == ["user"]
    client.chat.completions.create(model="gpt-4o", messages=question)
    assert [message["role"] for message in chat.messages()] == ["user", "assistant"]
    assert [branch.name for branch in chat.branches()] == ["main"]


def test_warnings_say_what_is_stored_at_the_line_of_the_program(memory: Engine) -> None:
    wire, chat = Wire(), memory.open("c")
    client = wrap(wire.client(openai.OpenAI), chat, window=4000)
    with pytest.warns(UserWarning, match="its messages are stored, its answer is not") as caught:
        client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "lorem ipsum " * 5000}])
    assert len(chat.messages()) == 1 and [one.filename for one in caught] == [__file__]
    with pytest.warns(UserWarning, match="and is not stored") as caught:
        client.responses.create(model="gpt-4o", input="Rome?", previous_response_id="resp_0")
    assert len(chat.messages()) == 1 and [one.filename for one in caught] == [__file__]


def test_streams_that_are_left_at_their_end_are_recorded(memory: Engine) -> None:
    wire = Wire()
    question = [{"role": "user", "content": "Rome?"}]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        client = wrap(wire.client(openai.OpenAI), memory.open("a"))
        for chunk in client.chat.completions.create(model="gpt-4o", messages=question, stream=True):
            if chunk.choices[0].finish_reason:
                break
        # What a call cost comes behind its answer, or never.
        client = wrap(wire.client(openai.OpenAI), memory.open("b"))
        options = {"include_usage": True}
        with client.chat.completions.create(model="gpt-4o", messages=question, stream=True, stream_options=options) as chunks:
            for chunk in chunks:
                if chunk.choices[0].finish_reason:
                    break
        claude: Any = wrap(wire.client(anthropic.Anthropic), memory.open("c"))
        events = claude.messages.create(model="claude-sonnet-5", max_tokens=9, messages=question, stream=True)
        for event in events:
            if event.type == "message_stop":
                break
        events.close()
    for name in "abc":
        assert [message["role"] for message in memory.open(name).messages()] == ["user", "assistant"], name
        assert len([*memory.open(name).calls()]) == 1


@pytest.mark.parametrize("way", ["close", "with", "drop", "error"])
def test_streams_that_are_left_in_the_middle_warn(memory: Engine, way: str) -> None:
    wire, chat = Wire(), memory.open("c")
    client = wrap(wire.client(openai.OpenAI), chat)
    stream = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Rome?"}], stream=True)
    with pytest.warns(UserWarning, match="the answer to this call is not stored: the stream") as caught:
        next(stream)
        if way == "close":
            stream.close()
        elif way == "with":
            with stream:
                pass
        elif way == "error":
            stream._stream = iter(lambda: 1 // 0, None)
            with pytest.raises(ZeroDivisionError):
                next(stream)
        del stream
    assert len(caught) == 1
    assert [message["role"] for message in chat.messages()] == ["user"]


@pytest.mark.parametrize("is_async", [False, True])
def test_events_with_half_an_emoji_reach_the_program(file: str, is_async: bool) -> None:
    wire = Wire()
    wire.halves = True
    call: dict[str, Any] = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Rome?"}], "stream": True}

    async def read_async() -> list[Any]:
        async with AsyncEngine(file) as engine:
            client = wrap(wire.client(openai.AsyncOpenAI), await engine.open("c"))
            return [chunk async for chunk in await client.chat.completions.create(**call)]

    with pytest.warns(UserWarning, match="surrogate") as caught:
        if is_async:
            chunks = asyncio.run(read_async())
        else:
            chunks = [*wrap(wire.client(openai.OpenAI), Engine(file).open("c")).chat.completions.create(**call)]
    assert [chunk.choices[0].delta.content for chunk in chunks] == ["\ud83d", "\ude00", None] and len(caught) == 1


def _function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [
    {"type": "function", "function": {"name": name}} for name in ("weather", "rm_all")
]}}  # fmt: skip


@pytest.mark.parametrize(
    ("tools", "choice", "sent", "sent_choice"),
    [
        (["rm_all"], "required", None, None),
        (["rm_all"], None, None, None),
        (["weather", "rm_all"], {"type": "function", "function": {"name": "rm_all"}}, ["weather"], None),
        (["weather", "rm_all"], {"type": "function", "function": {"name": "weather"}}, ["weather"], "same"),
        (["weather", "rm_all"], "required", ["weather"], "same"),
        (["weather", "rm_all"], ALLOWED, ["weather"], {"type": "allowed_tools", "allowed_tools": {
            "mode": "auto", "tools": [{"type": "function", "function": {"name": "weather"}}]
        }}),
    ],
)  # fmt: skip
def test_denied_tools_leave_a_valid_request(memory: Engine, tools: list[str], choice: Any, sent: Any, sent_choice: Any) -> None:
    wire, chat = Wire(), memory.open("c")
    client = wrap(wire.client(openai.OpenAI), chat, policy=POLICY)
    more = {} if choice is None else {"tool_choice": choice}
    offered = [_function(name) for name in tools]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": "Rome?"}], tools=offered, parallel_tool_calls=False, **more
        )
    (body,) = wire.sent
    assert [tool["function"]["name"] for tool in body.get("tools", [])] == (sent or []) and ("tools" in body) == (sent is not None)
    assert body.get("tool_choice") == (choice if sent_choice == "same" else sent_choice)
    assert ("parallel_tool_calls" in body) == (sent is not None)


def test_denied_tools_with_free_input_are_not_sent(memory: Engine) -> None:
    wire = Wire()
    client = wrap(wire.client(openai.OpenAI), memory.open("c"), policy=POLICY)
    chat_tools: Any = [{"type": "custom", "custom": {"name": name}} for name in ("sql", "rm_sql")]
    client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Rome?"}], tools=chat_tools)
    tools: Any = [{"type": "custom", "name": "sql"}, {"type": "custom", "name": "rm_sql"}, {"type": "web_search"}]
    client.responses.create(model="gpt-4o", input=[{"role": "user", "content": "Rome?"}], tools=tools)
    assert [body["tools"] for body in wire.sent] == [chat_tools[:1], [tools[0], tools[2]]]


def test_program_of_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code = next(block for block in blocks if "contexture.wrap" in block)
    code = code.replace("from openai import OpenAI\n", "").replace('"support.db"', repr(str(tmp_path / "a.db")))
    wire = Wire()
    exec(compile(code, "docs/python.md", "exec"), {"OpenAI": lambda: wire.client(openai.OpenAI)})
    assert [len(body["messages"]) for body in wire.sent] == [1, 3]
