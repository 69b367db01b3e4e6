"""From Python's objects to JSON: plain data, and the response objects of providers' SDKs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Union

from contexture._errors import InvalidInput

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

__all__ = ["Json", "Messages", "array_to_json", "object_to_json", "to_ascii_json", "to_json"]

Json: TypeAlias = Any
"""Any value that can be serialized to JSON.

Plain data, pydantic models, dataclasses, and whatever has ``model_dump`` or ``to_dict``.
"""

Messages: TypeAlias = Union[str, bytes, Mapping[str, Any], Iterable[Json]]
"""Messages of any provider's shape: one or several, an SDK's objects too; a text is what a user says, bytes are a JSON array."""


def to_json(value: Json, what: str = "value") -> bytes:
    """Return the JSON of a value. ``what`` names it in errors."""
    try:
        text = json.dumps(value, default=_convert, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except UnicodeEncodeError as error:
        detail = f"`{what}` has half of a surrogate pair, which no text in UTF-8 can hold: {error}"
        raise InvalidInput(detail, code="bad_message") from error
    except (TypeError, ValueError, RecursionError) as error:
        detail = f"`{what}` cannot be written as JSON: {error}"
        raise InvalidInput(detail, code="bad_message") from error


def to_ascii_json(value: Json, what: str = "value") -> str:
    """Return the JSON of a value as ASCII, in which ``json.loads`` finds all that Python can hold: NaN and halves of surrogate pairs too."""
    try:
        return json.dumps(value, default=_convert, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        detail = f"`{what}` cannot be written as JSON: {error}"
        raise InvalidInput(detail, code="bad_message") from error


def array_to_json(values: Messages | None, what: str) -> bytes | None:
    """Return the JSON array of messages, however they are given; ``None`` for none."""
    if values is None:
        return None
    if isinstance(values, str):
        return to_json([{"role": "user", "content": values}], what)
    if isinstance(values, (bytes, bytearray, memoryview)):
        return bytes(values)
    if isinstance(values, Mapping) or _has_json_form(values):
        return to_json([values], what)
    try:
        listed = list(values)
    except TypeError as error:
        detail = f"`{what}`: expected messages, found {type(values).__name__}"
        raise InvalidInput(detail, code="bad_message") from error
    return to_json(listed, what)


def object_to_json(members: Mapping[str, Json], raw: Mapping[str, bytes | None] | None = None) -> bytes:
    """Return the JSON object of what is not ``None``; ``raw`` has members that are JSON already."""
    text = to_json({name: value for name, value in members.items() if value is not None}, "arguments")
    spliced = [
        to_json(name) + b":" + value for name, value in (raw or {}).items() if value is not None
    ]
    if not spliced:
        return text
    # Large members are not parsed here only to be written again.
    inner = [text[1:-1]] if len(text) > 2 else []
    return b"{" + b",".join(inner + spliced) + b"}"


def _has_json_form(value: object) -> bool:
    return hasattr(value, "model_dump") or hasattr(value, "to_dict") or hasattr(value, "__dataclass_fields__")


def _convert(value: Any) -> Any:
    # A class has these attributes too, but what was meant is one of its objects.
    if not isinstance(value, type):
        if hasattr(value, "model_dump"):
            # Only what was set, by the provider's names: what an SDK adds of its own is no part of the answer.
            return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if hasattr(value, "to_dict"):
            return value.to_dict()
        if hasattr(value, "__dataclass_fields__"):
            return {name: getattr(value, name) for name in value.__dataclass_fields__}
        if isinstance(value, Mapping):
            return dict(value)
        if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray, memoryview)):
            return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
