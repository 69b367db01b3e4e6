"""A model that answers from a script, in the shape of OpenAI's SDK: programs of tests call it as they would call the SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


class Dumped:
    """An object of an SDK: attributes, and `model_dump`."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def __getattr__(self, name: str) -> Any:
        try:
            value = self.__dict__["data"][name]
        except KeyError:
            raise AttributeError(name) from None
        if isinstance(value, dict):
            return Dumped(value)
        if isinstance(value, list):
            return [Dumped(one) if isinstance(one, dict) else one for one in value]
        return value

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self.data


def answer(text: str | None = None, calls: Sequence[tuple[str, str, Mapping[str, Any]]] = (), tokens: int = 100) -> Dumped:
    """An answer of Chat Completions: a text, or calls of tools (id, name, arguments)."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for id, name, arguments in calls
        ]
    return Dumped(
        {
            "id": f"chatcmpl-{abs(hash((text, str(calls))))}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "gpt-4o",
            "choices": [
                {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
            ],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 10, "total_tokens": tokens + 10},
        }
    )
