"""A history processor for Pydantic AI. It needs the package's extra `pydantic-ai`.

>>> import contexture, contexture.pydantic_ai
>>> processor = contexture.pydantic_ai.compile_history(contexture.Engine("memory:"), model="gpt-4o", window=8000)

``Agent(…, capabilities=[ProcessHistory(processor)])`` then compiles the history before each request, under
a budget and by a policy. Nothing is stored: what a request leaves out travels in the ``metadata`` of the
messages that stand for it, which models are never sent, so the next request is compiled from all of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

if TYPE_CHECKING:
    from contexture._engine import Engine
    from contexture._json import Json

__all__ = ["compile_history", "restore_history"]

_MARK = "contexture"
"""The member of a message's metadata that says what the message stands for."""


def compile_history(
    engine: Engine,
    *,
    model: str,
    window: int | None = None,
    reserve: int | None = None,
    count: str | None = None,
    policy: str | Mapping[str, Json] | None = None,
    turns: int | None = None,
    preview: int | None = None,
) -> Callable[[list[ModelMessage]], list[ModelMessage]]:
    """Return a history processor: messages in, the messages of a compiled request out.

    The options are those of ``Conversation.compile`` that shape the history; all others are Pydantic
    AI's. System prompts and the instructions of the last request are counted and stay; tools, images
    and thinking are not counted, so ``reserve`` should leave room for them. The processor raises
    ``DoesNotFit`` if what must be sent does not fit. Runs at the same time may share it.
    """
    options: dict[str, Json] = {
        "window": window, "reserve": reserve, "count": count, "policy": policy, "turns": turns, "preview": preview
    }  # fmt: skip

    def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        history, plan = _restore(messages)
        rows = [row for number, message in enumerate(history) for row in _rows(number, message)]
        if not rows:
            return messages
        sent = [row.chat for row in rows]
        system = _system(history)
        compiled = engine.compile_messages(sent, model=model, to="openai-chat", plan=plan, system=system, **options)
        kept = [one for one in compiled.payload["messages"] if one["role"] not in ("system", "developer")]
        return _Result(history, rows, kept).build(compiled.plan)

    return process


def restore_history(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Return the whole history behind messages that a processor compiled, such as ``result.all_messages()``."""
    return _restore(messages)[0]


@dataclasses.dataclass
class _Row:
    """A message of Chat Completions, and the part of the history that it is made of."""

    chat: dict[str, Any]
    message: int
    part: int | None
    """``None``: all of the message."""


class _Result:
    """The messages of a compiled request, made of those that the history has."""

    def __init__(self, history: list[ModelMessage], rows: list[_Row], kept: list[dict[str, Any]]) -> None:
        self._history = history
        places: dict[Any, list[int]] = {}
        for index in range(len(rows) - 1, -1, -1):
            places.setdefault(_key(rows[index].chat), []).append(index)
        self._kept: dict[tuple[int, int | None], dict[str, Any]] = {}
        """What is sent of the history, by message and part."""
        self._inserted: dict[int, list[ModelMessage]] = {}
        """What stands for other messages, by the message before which it is inserted."""
        waiting: list[ModelMessage] = []
        before = -1
        for chat in kept:
            # Both are in the same order, so a place that was passed by is not looked at again.
            found = places.get(_key(chat), [])
            while found and found[-1] <= before:
                found.pop()
            if not found:
                waiting.append(_made(chat))
                continue
            before = found.pop()
            row = rows[before]
            self._kept[row.message, row.part] = chat
            if waiting:
                self._inserted.setdefault(row.message, []).extend(waiting)
                waiting = []
        if waiting:
            self._inserted[len(history)] = waiting
        self._rows: dict[int, list[_Row]] = {}
        for row in rows:
            self._rows.setdefault(row.message, []).append(row)

    def build(self, plan: Any) -> list[ModelMessage]:
        """Return the messages. If they differ from the history, one carries the plan and what was left out."""
        built: list[_Built] = []
        left_out: list[tuple[int, ModelMessage]] = []
        is_kept = True
        for number, message in enumerate(self._history):
            built += (_Built(made, [], number) for made in self._inserted.get(number, []))
            # A message of which nothing was compiled, such as one of thoughts, goes with the one before.
            if number in self._rows:
                is_kept = any((number, row.part) in self._kept for row in self._rows[number])
            reduced = self._reduce(number, message) if is_kept else _system_prompts(message)
            if reduced is None:
                left_out.append((number, message))
            else:
                built.append(_Built(reduced, [message], number))
        end = len(self._history)
        built += (_Built(made, [], end) for made in self._inserted.get(end, []))
        if not left_out and all(one.is_original for one in built):
            return self._history
        return _with_marks(_merge_requests(built), plan, left_out)

    def _reduce(self, number: int, message: ModelMessage) -> ModelMessage:
        """A message of which something is sent: the same, or one that lacks parts or has shorter outputs of tools."""
        if not isinstance(message, ModelRequest):
            return message
        own = {row.part: row for row in self._rows.get(number, [])}
        parts: list[Any] = []
        for index, part in enumerate(message.parts):
            chat = self._kept.get((number, index))
            if index in own and chat is None:
                continue
            if chat is not None and isinstance(part, ToolReturnPart) and chat["content"] != own[index].chat["content"]:
                part = dataclasses.replace(part, content=chat["content"])
            parts.append(part)
        if len(parts) == len(message.parts) and all(one is other for one, other in zip(parts, message.parts)):
            return message
        return dataclasses.replace(message, parts=parts)


@dataclasses.dataclass
class _Built:
    """A message of the result, and the messages of the history that it stands for."""

    message: ModelMessage
    stands_for: list[ModelMessage]
    position: int
    """Where in the history the first of these is."""

    @property
    def is_original(self) -> bool:
        return len(self.stands_for) == 1 and self.stands_for[0] is self.message


def _system_prompts(message: ModelMessage) -> ModelMessage | None:
    """What stays of a message that is left out."""
    parts = [part for part in message.parts if isinstance(part, SystemPromptPart)]
    if not parts or not isinstance(message, ModelRequest):
        return None
    return dataclasses.replace(message, parts=parts)


def _merge_requests(built: list[_Built]) -> list[_Built]:
    """Make one of requests in a row. Pydantic AI would do it too, and lose what their metadata say."""
    merged: list[_Built] = []
    for one in built:
        before = merged[-1] if merged else None
        if before and isinstance(before.message, ModelRequest) and isinstance(one.message, ModelRequest):
            parts = [*before.message.parts, *one.message.parts]
            instructions = one.message.instructions or before.message.instructions
            message = dataclasses.replace(one.message, parts=parts, instructions=instructions)
            merged[-1] = _Built(message, [*before.stands_for, *one.stands_for], before.position)
        else:
            merged.append(one)
    return merged


def _with_marks(built: list[_Built], plan: Any, left_out: list[tuple[int, ModelMessage]]) -> list[ModelMessage]:
    """Say in the metadata of the messages what they stand for, and in those of the first request more."""
    messages: list[ModelMessage] = []
    is_marked = False
    for one in built:
        is_first = not is_marked and isinstance(one.message, ModelRequest)
        if one.is_original and not is_first:
            messages.append(one.message)
            continue
        mark: dict[str, Any] = {"stands_for": one.stands_for}
        if is_first:
            # From this message on: programs put others before it, and cut off some.
            places = [(number - one.position, message) for number, message in left_out]
            mark = {**mark, "plan": plan, "left_out": places}
            is_marked = True
        messages.append(dataclasses.replace(one.message, metadata={**(one.message.metadata or {}), _MARK: mark}))
    return messages


def _restore(messages: list[ModelMessage]) -> tuple[list[ModelMessage], Any]:
    """Return the whole history behind the messages of an earlier request and what came since, and the plan of that request."""
    history: list[ModelMessage] = []
    left_out: list[tuple[int, Any]] = []
    plan: Any = None
    for message in messages:
        mark = (message.metadata or {}).get(_MARK)
        if mark is None:
            history.append(message)
            continue
        plan = mark.get("plan", plan)
        places = mark.get("left_out", [])
        # Where the marked message will be once those that were left out before it are back.
        position = len(history) + len(left_out) + sum(place < 0 for place, _ in places)
        left_out += ((max(position + place, 0), one) for place, one in places)
        history += _validated(mark["stands_for"])
    for (number, _), message in zip(left_out, _validated([message for _, message in left_out])):
        # In ascending order, so each goes where it was.
        history.insert(number, message)
    return history, plan


def _validated(messages: list[Any]) -> list[ModelMessage]:
    """Messages as objects, where a history that was stored as JSON has them as data."""
    return ModelMessagesTypeAdapter.validate_python(messages)


def _made(chat: dict[str, Any]) -> ModelMessage:
    """A message that stands for others, such as a summary of them."""
    text = _text(chat["content"])
    if chat["role"] == "assistant":
        return ModelResponse(parts=[TextPart(text)])
    return ModelRequest(parts=[UserPromptPart(text)])


def _system(history: list[ModelMessage]) -> str | None:
    texts = [part.content for message in history for part in message.parts if isinstance(part, SystemPromptPart)]
    last = history[-1]
    if isinstance(last, ModelRequest) and last.instructions:
        texts.append(last.instructions)
    return "\n\n".join(texts) or None


def _rows(number: int, message: ModelMessage) -> list[_Row]:
    if isinstance(message, ModelResponse):
        text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
        calls = [
            {
                "id": part.tool_call_id,
                "type": "function",
                "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
            }
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
        if not text and not calls:
            return []
        chat = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
        return [_Row(chat, number, None)]
    rows = []
    for index, part in enumerate(message.parts):
        chat_of_part = _chat(part)
        if chat_of_part is not None:
            rows.append(_Row(chat_of_part, number, index))
    return rows


def _chat(part: Any) -> dict[str, Any] | None:
    """The message of Chat Completions that a part of a request is; ``None`` for parts that only Pydantic AI knows."""
    if isinstance(part, UserPromptPart):
        return {"role": "user", "content": _prompt_text(part.content)}
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
    if hasattr(part, "model_response"):
        # What to do again: the answer to a call, or without one a message.
        call = getattr(part, "tool_call_id", None) if getattr(part, "tool_name", None) else None
        text = part.model_response()
        return {"role": "tool", "tool_call_id": call, "content": text} if call else {"role": "user", "content": text}
    return None


def _prompt_text(content: str | Sequence[Any]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(one if isinstance(one, str) else _content_text(one) for one in content)


def _content_text(content: Any) -> str:
    kind = getattr(content, "kind", "content")
    return str(content.content) if kind == "text-content" else f"[{kind}]"


def _key(chat: dict[str, Any]) -> Any:
    """What a message of a request is known by: of calls and outputs the ids, as their texts may have been cut."""
    if chat["role"] == "tool":
        return "tool", chat["tool_call_id"]
    if chat.get("tool_calls"):
        return "calls", tuple(call["id"] for call in chat["tool_calls"])
    return chat["role"], _text(chat.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""
