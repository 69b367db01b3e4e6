"""Builders of items and fragments, as plain data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contexture._documents import ToolCall
    from contexture._json import Json

__all__ = ["fragment", "tool_output"]


def tool_output(call: ToolCall | str, output: Json, *, is_error: bool = False) -> dict[str, Any]:
    """Return the item of a tool's output, for ``append``.

    ``call``: the call, or its id. Non-text output is serialized as JSON.

    >>> import contexture
    >>> contexture.tool_output("call_1", {"state": "out for delivery"})
    {'type': 'function_call_output', 'call_id': 'call_1', 'output': '{"state": "out for delivery"}'}
    """
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    item = {
        "type": "function_call_output",
        "call_id": call if isinstance(call, str) else call.call_id,
        "output": text,
    }
    return {**item, "is_error": True} if is_error else item


def fragment(name: str, data: Json) -> dict[str, Any]:
    """Return a named piece of a system prompt, for ``compile(system=[…])``. The renderer writes it as XML, Markdown or another form.

    >>> import contexture
    >>> chat = contexture.Engine("memory:").open("c")
    >>> chat.resolve(fragments=[contexture.fragment("hint", "Refunds need approval.")]).system_prompt
    '<hint>Refunds need approval.</hint>'
    """
    return {"name": name, "data": data}
