"""A program's own values beside the tree of a conversation, for asyncio.

`_values.py`, for programs without it, is generated from this file by
`bindings/python/tests/python/make_sync.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from contexture._documents import Value
from contexture._json import object_to_json

if TYPE_CHECKING:
    from contexture._async_engine import AsyncConversation

__all__ = ["AsyncValues"]


class AsyncValues:
    """A program's own values beside the tree of a conversation. They are deleted and exported with it, each
    with the blobs whose ids stand in it.

    Values are bytes of at most 1 MiB, by keys of at most 251 bytes, written by compare-and-set; blobs are bytes of at most 64 MiB, by
    the hash of their content, and stored once. A blob is kept as long as an item or a value of the same conversation contains its id:
    ``contexture gc`` removes others after an hour.
    """

    def __init__(self, conversation: AsyncConversation) -> None:
        self._conversation = conversation

    async def get(self, key: str) -> Value | None:
        """Return a value; ``None`` if there is none."""
        found, attached = await self._run("get_value", object_to_json({"key": key}))
        return None if found is None else Value(found["key"], found["version"], attached[0])

    async def put(self, key: str, data: bytes, *, version: int | None = None) -> int:
        """Write a value and return its new version.

        ``version``: the version that must be stored now, 0 for none, else ``Conflict`` with the code ``version_conflict``.
        """
        written, _ = await self._run("put_value", object_to_json({"key": key, "version": version}), data)
        return int(written["version"])

    async def delete(self, key: str, *, version: int | None = None) -> None:
        """Delete a value, if there is one."""
        await self._run("delete_value", object_to_json({"key": key, "version": version}))

    async def items(self, prefix: str = "", *, page: int = 1000) -> AsyncIterator[Value]:
        """Iterate over the values whose keys start with ``prefix``, in key order."""
        after: str | None = None
        while True:
            members = {"prefix": prefix, "limit": page, "after": after}
            found, attached = await self._run("list_values", object_to_json(members))
            for one, data in zip(found["values"], attached):
                yield Value(one["key"], one["version"], data)
            after = found["next"]
            if after is None:
                return

    async def put_blob(self, data: bytes) -> str:
        """Store bytes and return the id by which they are read: the hash of their content."""
        stored, _ = await self._run("put_blob", b"{}", data)
        id: str = stored["id"]
        return id

    async def read_blob(self, id: str) -> bytes:
        """Return the bytes of a blob. Raises ``NotFound`` if this conversation has none of this id."""
        _, (data,) = await self._run("read_blob", object_to_json({"id": id}))
        return data

    async def _run(
        self, operation: str, document: bytes, attachment: bytes | None = None
    ) -> tuple[Any, list[bytes]]:
        return await self._conversation._run(operation, document, attachment)
