"""How the Python half calls the native half: an operation's name and JSON in, JSON or an exception out."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Optional, Tuple

from contexture._errors import error_from_json
from contexture._native import (
    Engine as NativeEngine,
    after_fork_in_child,
    after_fork_in_parent,
    before_fork,
    end_delivery,
)

if TYPE_CHECKING:
    import asyncio
    from os import PathLike

__all__ = ["AsyncBorder", "Border"]

# Windows has no forks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=before_fork, after_in_parent=after_fork_in_parent, after_in_child=after_fork_in_child
    )
atexit.register(end_delivery)

Place = Tuple[str, Optional[str], Optional[str]]
"""Owner, conversation and branch of an operation."""


class Border:
    """The native engine behind an address, for threads."""

    def __init__(self, address: str | PathLike[str], policies: bytes, skills: Iterable[str | PathLike[str]]) -> None:
        self.address = os.fspath(address)
        try:
            self._native = NativeEngine(self.address, policies, [os.fspath(folder) for folder in skills])
        except RuntimeError as error:
            raise error_from_json(str(error)) from None

    @property
    def shown_address(self) -> str:
        """The address without a user's name and password."""
        scheme, separator, rest = self.address.partition("//")
        return f"{scheme}//…{rest[rest.rindex('@'):]}" if separator and "@" in rest else self.address

    def run(
        self, operation: str, place: Place, document: bytes, attachment: bytes | None
    ) -> tuple[Any, list[bytes]]:
        """Run an operation to completion without blocking other threads; Ctrl-C cancels it."""
        ok, reply, attachments = self._native.call(operation, place, document, attachment)
        if not ok:
            raise error_from_json(reply)
        return json.loads(reply), attachments

    def close(self) -> None:
        """Close what this process has open."""
        self._native.close()


class AsyncBorder(Border):
    """The native engine behind an address, for asyncio."""

    async def run(  # type: ignore[override]
        self, operation: str, place: Place, document: bytes, attachment: bytes | None
    ) -> tuple[Any, list[bytes]]:
        """Run an operation; other tasks go on meanwhile. Cancelling the task drops what is left of the operation."""
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[bytes, list[bytes]]] = loop.create_future()

        def deliver(ok: bool, reply: bytes, attachments: list[bytes]) -> None:
            # From a thread of the native half: only the loop's own thread may touch the future.
            loop.call_soon_threadsafe(_set_outcome, future, ok, reply, attachments)

        task = self._native.start(operation, place, document, attachment, deliver)
        try:
            reply, attachments = await future
        finally:
            # After the end of the operation this does nothing.
            task.cancel()
        return json.loads(reply), attachments


def _set_outcome(
    future: asyncio.Future[tuple[bytes, list[bytes]]], ok: bool, reply: bytes, attachments: list[bytes]
) -> None:
    if future.done():
        return
    if ok:
        future.set_result((reply, attachments))
    else:
        future.set_exception(error_from_json(reply))
