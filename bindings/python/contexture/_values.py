"""A program's own values beside the tree of a conversation, for programs without asyncio.

Made from `_async_values.py` by `tests/python/make_sync.py`; do not edit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from contexture._documents import Value
from contexture._json import object_to_json

if TYPE_CHECKING:
    from contexture._engine import Conversation

__all__ = ["Values"]


class Values:
    """A program's own values beside the tree of a conversation. They are deleted and exported with it, each
    with the blobs whose ids stand in it.

    Values are bytes of at most 1 MiB, by keys of at most 251 bytes, written by compare-and-set; blobs are bytes of at most 64 MiB, by
    the hash of their content, and stored once. A blob is kept as long as an item or a value of the same conversation contains its id:
    ``contexture gc`` removes others after an hour.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def get(self, key: str) -> Value | None:
        """Return a value; ``None`` if there is none."""
        found, attached = self._run("get_value", object_to_json({"key": key}))
        return None if found is None else Value(found["key"], found["version"], attached[0])

    def put(self, key: str, data: bytes, *, version: int | None = None) -> int:
        """Write a value and return its new version.

        ``version``: the version that must be stored now, 0 for none, else ``Conflict`` with the code ``version_conflict``.
        """
        written, _ = self._run("put_value", object_to_json({"key": key, "version": version}), data)
        return int(written["version"])

    def delete(self, key: str, *, version: int | None = None) -> None:
        """Delete a value, if there is one."""
        self._run("delete_value", object_to_json({"key": key, "version": version}))

    def items(self, prefix: str = "", *, page: int = 1000) -> Iterator[Value]:
        """Iterate over the values whose keys start with ``prefix``, in key order."""
        after: str | None = None
        while True:
            members = {"prefix": prefix, "limit": page, "after": after}
            found, attached = self._run("list_values", object_to_json(members))
            for one, data in zip(found["values"], attached):
                yield Value(one["key"], one["version"], data)
            after = found["next"]
            if after is None:
                return

    def put_blob(self, data: bytes) -> str:
        """Store bytes and return the id by which they are read: the hash of their content."""
        stored, _ = self._run("put_blob", b"{}", data)
        id: str = stored["id"]
        return id

    def read_blob(self, id: str) -> bytes:
        """Return the bytes of a blob. Raises ``NotFound`` if this conversation has none of this id."""
        _, (data,) = self._run("read_blob", object_to_json({"id": id}))
        return data

    def _run(
        self, operation: str, document: bytes, attachment: bytes | None = None
    ) -> tuple[Any, list[bytes]]:
        return self._conversation._run(operation, document, attachment)
