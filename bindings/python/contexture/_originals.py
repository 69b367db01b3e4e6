"""What an agent framework stores, kept as it came beside what is read of it.

Each original is a part of a message, of a type that its integration chooses; providers are never sent it. The
rest of the message is what people and searches read. An original that UTF-8 cannot hold, such as half an emoji,
that has NaN, or that is nested deeply, is kept as the text of its JSON, where it is escaped.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from contexture._errors import InvalidInput
from contexture._json import to_ascii_json, to_json

if TYPE_CHECKING:
    from contexture._async_engine import AsyncConversation
    from contexture._documents import Item

__all__ = ["clean_text", "cut_batches", "encode_item", "encode_message", "join_batch", "read_original", "read_originals"]

BATCH = 1000
"""Originals of one append. One transaction stores 4,096 items, and each may have more than one."""
BATCH_BYTES = 32 * 1024 * 1024
"""JSON of one append, unless one original has more. One transaction stores 64 MiB, one item has 16 MiB."""

LEVELS = 64
"""Levels of an original that is kept as JSON; readers of JSON have limits, the engine's is 128."""

_AS_TEXT = "-json"
"""What the type of a part ends with whose data is the JSON of an original."""

T = TypeVar("T")


def encode_message(
    role: str, text: str, kind: str, original: Any, *, id: str | None = None
) -> bytes:
    """Return the JSON of a message of a text (may be empty) and an original, for ``append``."""
    cleaned = clean_text(text)
    parts = [{"type": "text", "text": cleaned}] if cleaned else []
    names = {"role": role} if id is None else {"role": role, "id": id}
    return _encode(lambda part: {**names, "parts": [*parts, part]}, kind, original)


def encode_item(kind: str, original: Any) -> bytes:
    """Return the JSON of the item of an original alone, for ``append``."""
    return _encode(lambda part: {"type": "ctx:part", "part": part}, kind, original)


def cut_batches(originals: Iterable[T], encode: Callable[[T], list[bytes]]) -> Iterator[list[tuple[T, list[bytes]]]]:
    """Cut originals into batches that one append stores, each original with what is appended for it."""
    batch: list[tuple[T, list[bytes]]] = []
    size = 0
    for original in originals:
        encoded = encode(original)
        length = sum(map(len, encoded))
        if batch and (len(batch) >= BATCH or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((original, encoded))
        size += length
    if batch:
        yield batch


def join_batch(encoded: Iterable[list[bytes]]) -> bytes:
    """Return the JSON array of what is appended for several originals."""
    return b"[" + b",".join(one for several in encoded for one in several) + b"]"


def clean_text(text: str) -> str:
    """Return a text that UTF-8 can hold: two halves of a surrogate pair are joined, one alone becomes U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def read_original(item: Item, kind: str) -> Any:
    """Return the original that an item is; ``None`` if it is none of this kind."""
    part = item.item.get("part")
    if not isinstance(part, dict):
        return None
    if part.get("type") == kind + _AS_TEXT:
        return json.loads(part["data"])
    return part["data"] if part.get("type") == kind else None


async def read_originals(chat: AsyncConversation, kind: str) -> AsyncIterator[Any]:
    """Iterate over the originals of a branch, oldest first."""
    async for item in chat.items(page=500):
        original = read_original(item, kind)
        if original is not None:
            yield original


def _encode(place: Callable[[dict[str, Any]], dict[str, Any]], kind: str, original: Any) -> bytes:
    # By the original alone: the same has the same form whenever it is stored again.
    if _levels(original) <= LEVELS:
        try:
            return to_json(place({"type": kind, "data": original}), "item")
        except InvalidInput:
            pass
    return to_json(place({"type": kind + _AS_TEXT, "data": to_ascii_json(original, "item")}), "item")


def _levels(value: Any) -> int:
    """How deep plain data is nested; not counted beyond ``LEVELS`` by more than one."""
    level, containers = 0, [value]
    while level <= LEVELS:
        members = [one for one in containers if isinstance(one, (dict, list, tuple))]
        if not members:
            break
        level += 1
        containers = [
            one for several in members for one in (several.values() if isinstance(several, dict) else several)
        ]
    return level
