"""Notes of a conversation, for asyncio.

`_notes.py`, for programs without it, is generated from this file by
`bindings/python/tests/python/make_sync.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from contexture._documents import Note
from contexture._errors import NotFound
from contexture._json import object_to_json

if TYPE_CHECKING:
    from datetime import timedelta

    from contexture._async_engine import AsyncConversation

__all__ = ["AsyncNotes"]


class AsyncNotes:
    """Short texts by key that the model is shown, in calls with ``policy={"memory": {}}``.

    With ``"tools": True`` in that policy the model writes them too. They belong to the conversation's
    resource, or to the conversation if it has none; ``of("owner")`` are those of the owner, and
    ``of("path")`` those that rewind with the path.
    """

    def __init__(self, conversation: AsyncConversation, scope: str = "resource") -> None:
        self._conversation = conversation
        self.scope = scope
        """What the notes belong to: ``resource``, ``owner`` or ``path``."""

    def of(self, scope: str) -> AsyncNotes:
        """Return the notes of another scope: ``resource``, ``owner`` or ``path``. Nothing is read."""
        return AsyncNotes(self._conversation, scope)

    async def items(self) -> AsyncIterator[Note]:
        """Iterate over the notes that have not expired, by key."""
        found = await self._run("list_notes", {})
        for one in found["notes"]:
            yield Note(one)

    async def get(self, key: str) -> Note | None:
        """Return a note; ``None`` if there is none or it has expired."""
        try:
            return Note(await self._run("get_note", {"key": key}))
        except NotFound as error:
            # Not a conversation that does not exist.
            if error.code != "no_note":
                raise
            return None

    async def put(
        self,
        key: str,
        value: str | None = None,
        *,
        description: str | None = None,
        importance: int | None = None,
        expires: str | int | timedelta | None = None,
    ) -> str:
        """Create a note, or change one. Return ``created``, ``updated`` or ``unchanged``.

        Arguments that are omitted stay unchanged; a new note needs a ``value``. ``description``:
        what it is about. ``importance``: 0 to 100; the larger, the later it is left out where space
        is short. ``expires``: after a ``timedelta``, after this number of further answers of the
        model, or ``"never"``. Raises ``InvalidInput`` with the code ``invalid_note`` or ``memory_full``.
        """
        edit = {
            "value": value,
            "description": description,
            "importance": importance,
            "expires": _lifetime(expires),
        }
        given = {name: member for name, member in edit.items() if member is not None}
        done: str = (await self._run("put_note", {"key": key, "edit": given}))["done"]
        return done

    async def delete(self, key: str) -> None:
        """Delete a note. Raises ``NotFound`` if there is none or it has expired."""
        await self._run("delete_note", {"key": key})

    async def _run(self, operation: str, members: dict[str, Any]) -> Any:
        document = object_to_json({**members, "scope": self.scope})
        found, _ = await self._conversation._run(operation, document)
        return found


def _lifetime(expires: str | int | timedelta | None) -> Any:
    if expires is None or isinstance(expires, str):
        return expires
    if isinstance(expires, int):
        return {"answers": expires}
    return {"ms": round(expires.total_seconds() * 1000)}
