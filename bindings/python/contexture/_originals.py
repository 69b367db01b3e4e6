"""What an agent framework stores, kept as it came beside what is read of it.

Each original is a part of a message, of a type that its integration chooses; providers are never sent it. The
rest of the message is what people and searches read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contexture._async_engine import AsyncConversation
    from contexture._documents import Item

__all__ = ["BATCH", "item_of_original", "message_with_original", "read_original", "read_originals"]


BATCH = 1000
"""Originals of one append. One transaction stores 4,096 items, and each may have more than one."""


def message_with_original(role: str, text: str, kind: str, original: Any) -> dict[str, Any]:
    """Return a message of a text (may be empty) and an original, for ``append``."""
    parts = [{"type": "text", "text": text}] if text else []
    return {"role": role, "parts": [*parts, {"type": kind, "data": original}]}


def item_of_original(kind: str, original: Any) -> dict[str, Any]:
    """Return the item of an original alone, for ``append``."""
    return {"type": "ctx:part", "part": {"type": kind, "data": original}}


def read_original(item: Item, kind: str) -> Any:
    """Return the original that an item is; ``None`` if it is none of this kind."""
    part = item.item.get("part")
    return part["data"] if isinstance(part, dict) and part.get("type") == kind else None


async def read_originals(chat: AsyncConversation, kind: str) -> AsyncIterator[Any]:
    """Iterate over the originals of a branch, oldest first."""
    async for item in chat.items(page=500):
        original = read_original(item, kind)
        if original is not None:
            yield original
