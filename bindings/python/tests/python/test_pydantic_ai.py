"""The history processor under Pydantic AI's `FunctionModel`: what the model is sent, and what the history keeps."""

from __future__ import annotations

import asyncio
from typing import Any

import contexture
import pytest

pytest.importorskip("pydantic_ai")

from contexture.pydantic_ai import compile_history, restore_history  # noqa: E402
from pydantic_ai import Agent  # noqa: E402
from pydantic_ai.capabilities import ProcessHistory  # noqa: E402
from pydantic_ai.messages import (  # noqa: E402
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel  # noqa: E402

POLICY: dict[str, Any] = {"limit_tokens": 2500, "preview": 800, "clear": {"keep_recent": 3}, "compact": "manifest"}


def _agent(sent: list[list[ModelMessage]], **options: Any) -> Agent[None, str]:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        sent.append(messages)
        last = messages[-1].parts[-1]
        if isinstance(last, UserPromptPart):
            call = ToolCallPart("weather", {"city": str(last.content)[:8]}, tool_call_id=f"call_{len(sent)}")
            return ModelResponse(parts=[ThinkingPart("hm"), call])
        return ModelResponse(parts=[TextPart(f"Answer {len(sent)}.")])

    processor = compile_history(contexture.Engine("memory:"), model="gpt-4o", policy=POLICY, **options)
    agent: Agent[None, str] = Agent(
        FunctionModel(answer), system_prompt="Be brief.", capabilities=[ProcessHistory(processor)]
    )

    @agent.tool_plain
    def weather(city: str) -> str:
        return f"{city}: " + "sunny, on time, free. " * 150

    return agent


def _texts(messages: list[ModelMessage]) -> str:
    return "\n".join(str(getattr(part, "content", "")) for message in messages for part in message.parts)


def test_requests_stay_under_the_budget_and_nothing_is_lost(soak: bool) -> None:
    turns = 40 if soak else 10
    sent: list[list[ModelMessage]] = []
    agent = _agent(sent, window=4000, reserve=500)
    history: list[ModelMessage] = []
    for turn in range(turns):
        result = agent.run_sync(f"Turn {turn}? " + "lorem ipsum " * 80, message_history=history)
        history = result.all_messages()
        if turn % 2:
            # As a program stores it between two processes.
            history = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(history))
    assert len(sent) == 2 * turns
    # A token of these texts has four letters; the window less the reserve has 3,500.
    assert max(len(_texts(messages)) for messages in sent) < 4 * 3500
    assert any("Earlier here" in _texts(messages) for messages in sent)
    # Each request is valid: a call has its output, and what was asked last is there as it was.
    for messages in sent:
        calls = [part.tool_call_id for one in messages for part in one.parts if isinstance(part, ToolCallPart)]
        outputs = [part.tool_call_id for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]
        assert calls == outputs
        assert [part.content for one in messages for part in one.parts if isinstance(part, SystemPromptPart)] == ["Be brief."]
    # The whole history is behind what is left.
    restored = restore_history(history)
    texts = _texts(restored)
    asked = [part.content[:8] for one in restored for part in one.parts if isinstance(part, UserPromptPart)]
    assert asked == [f"Turn {turn}? "[:8] for turn in range(turns)], asked
    assert len(restored) == 4 * turns and "Earlier here" not in texts
    outputs = [part for one in restored for part in one.parts if isinstance(part, ToolReturnPart)]
    assert len(outputs) == turns and all(len(str(part.content)) > 3000 for part in outputs)


def test_requests_grow_at_their_end_only(soak: bool) -> None:
    """Between two compactions, each request begins with the one before: the provider's cache holds."""
    sent: list[list[ModelMessage]] = []
    agent = _agent(sent, window=4000, reserve=500)
    history: list[ModelMessage] = []
    for turn in range(40 if soak else 8):
        history = agent.run_sync(f"Turn {turn}?", message_history=history).all_messages()
    shown = [[_texts([message]) for message in messages] for messages in sent]
    grown = sum(after[: len(before)] == before for before, after in zip(shown, shown[1:]))
    assert grown >= (len(shown) - 1) * 0.6, grown


def test_short_histories_are_the_same_objects() -> None:
    processor = compile_history(contexture.Engine("memory:"), model="gpt-4o", window=8000)
    image = BinaryContent(b"\x89PNG", media_type="image/png")
    messages: list[ModelMessage] = [
        ModelRequest(parts=[SystemPromptPart("Be brief."), UserPromptPart(["What is this?", image])]),
        ModelResponse(parts=[ThinkingPart("hm")]),
        ModelResponse(parts=[TextPart("A parcel.")]),
        ModelRequest(parts=[UserPromptPart("Where?")], instructions="Answer in German."),
    ]
    processed = processor(messages)
    assert len(processed) == 4 and all(one is other for one, other in zip(processed, messages))
    assert processor([]) == []


def test_what_does_not_fit_is_an_error() -> None:
    processor = compile_history(contexture.Engine("memory:"), model="gpt-4o", window=1000, reserve=100)
    with pytest.raises(contexture.DoesNotFit):
        processor([ModelRequest(parts=[UserPromptPart("lorem ipsum " * 2000)])])


def test_texts_in_lists_are_counted() -> None:
    processor = compile_history(contexture.Engine("memory:"), model="gpt-4o", window=1000, reserve=100)
    with pytest.raises(contexture.DoesNotFit):
        processor([ModelRequest(parts=[UserPromptPart([TextContent("lorem ipsum " * 2000)])])])


@pytest.mark.parametrize("option", ["system", "to", "plan", "tools"])
def test_options_without_effect_are_refused(option: str) -> None:
    with pytest.raises(TypeError, match=option):
        compile_history(contexture.Engine("memory:"), model="gpt-4o", **{option: "x"})  # type: ignore[arg-type]


def test_histories_are_restored_behind_other_messages() -> None:
    """Programs put messages before a compiled history, such as another one, and cut some off."""
    whole: list[ModelMessage] = []
    for turn in range(20):
        whole.append(ModelRequest(parts=[UserPromptPart(f"Turn {turn}? " + "lorem ipsum " * 80)]))
        whole.append(ModelResponse(parts=[TextPart(f"Answer {turn}.")]))
    whole.append(ModelRequest(parts=[UserPromptPart("And?")]))
    compiled = compile_history(contexture.Engine("memory:"), model="gpt-4o", window=4000, reserve=500, policy=POLICY)(whole)
    assert len(compiled) < len(whole)
    greeting: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Hello")]), ModelResponse(parts=[TextPart("Hi.")])]
    assert restore_history(compiled) == whole
    assert restore_history([*greeting, *compiled]) == [*greeting, *whole]
    assert restore_history([*compiled, *greeting, *compiled]) == [*whole, *greeting, *whole]


def test_runs_at_once_share_a_processor() -> None:
    sent: list[list[ModelMessage]] = []
    agent = _agent(sent, window=4000, reserve=500)

    async def run() -> list[str]:
        results = await asyncio.gather(*(agent.run(f"City {n}") for n in range(8)))
        return [result.output for result in results]

    assert len(asyncio.run(run())) == 8
