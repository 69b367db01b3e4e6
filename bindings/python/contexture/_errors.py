"""Exceptions: one class for each way to react, each with a stable code.

``Error.code`` is the word that the HTTP API and the command use for the same error. Words are added, never changed.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = [
    "Conflict",
    "DoesNotFit",
    "Error",
    "Forked",
    "InternalError",
    "InvalidInput",
    "NotFound",
    "StorageError",
    "Unavailable",
]


class Error(Exception):
    """Base class of all errors of the engine. Nothing was stored unless the class says otherwise.

    >>> import contexture
    >>> engine = contexture.Engine("memory:")
    >>> try:
    ...     engine.open("no-such", existing=True)
    ... except contexture.NotFound as error:
    ...     print(error.code, "-", error.detail)
    not_found - conversation "no-such" not found
    """

    code: str
    """Stable word that programs decide by, such as ``head_moved``."""
    detail: str
    """What happened, and to what."""
    hint: str | None
    """What to do about it, where that can be said in general."""
    retryable: bool
    """Whether the same call, unchanged, may succeed later."""
    members: dict[str, Any]
    """More for programs: ``expected`` and ``actual`` of ``head_moved``, ``faults`` of ``bad_body`` and others."""

    def __init__(
        self,
        detail: str,
        *,
        code: str = "error",
        retryable: bool = False,
        members: dict[str, Any] | None = None,
    ) -> None:
        self.code = code
        self.detail = detail
        self.retryable = retryable
        self.members = members if members is not None else {}
        self.hint = _HINTS.get(code)
        super().__init__(detail if self.hint is None else f"{detail} (hint: {self.hint})")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.detail!r}, code={self.code!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process boundaries (multiprocessing, pytest-xdist) by pickling.
        return _restore, (type(self), self.detail, self.code, self.retryable, self.members)


class InvalidInput(Error):
    """An argument, a message or a name is not what is expected: ``bad_body``, ``bad_message``, ``bad_name`` and others."""


class NotFound(Error):
    """Nothing has this name, or it belongs to another owner.

    Codes: ``not_found``, ``no_note``, ``evicted``, ``unknown_model``.
    """


class Conflict(Error):
    """Somebody else was there first: ``head_moved``, ``already_exists``, ``version_conflict``, ``branch_busy``."""


class DoesNotFit(Error):
    """What a call must contain does not fit its window: ``does_not_fit`` and other refusals of the compiler."""

    @property
    def needed(self) -> int | None:
        """Tokens that are needed at least."""
        return self.members.get("needed")

    @property
    def allowed(self) -> int | None:
        """Tokens available for input: window minus reserve."""
        return self.members.get("allowed")

    @property
    def segments(self) -> list[dict[str, Any]]:
        """What is required, piece by piece, with its tokens."""
        segments: list[dict[str, Any]] = self.members.get("segments", [])
        return segments


class Unavailable(Error):
    """The database cannot be reached at the moment. The same call may succeed later.

    With the code ``outcome_unknown`` it may have been stored. Repeat the call unchanged, an
    ``append`` with its ``key``; before you repeat a ``rewind`` or ``restore``, look at
    ``branches()``: it may take effect twice.
    """


class StorageError(Error):
    """The database is full, damaged, read-only, or of another version than this package."""


class Forked(Error):
    """The engine cannot be used in a process that was forked from the one that opened it.

    Either its database is in memory, or its file was still open at the fork: a native extension
    forked without Python's knowledge, or an operation ran for more than ten seconds.
    """


class InternalError(Error):
    """A defect of this package. Please report it with its text."""


_HINTS = {
    "does_not_fit": "raise `window`, lower `reserve`, or say less in `system`, `tools` and pinned messages",
    "forked": "open a file or PostgreSQL, or create the engine in the child",
    "head_moved": "read what was appended meanwhile, then append again without `expected_head` or with the new head",
    "version_conflict": "read the value again and repeat the change",
    "unknown_model": "name a model of the catalogue, or pass `to`, `window` and a `policy`",
    "already_exists": "choose another name, or open what is there",
    "not_found": "names are case-sensitive and belong to one owner; `Engine.open` creates a conversation",
    "older_format": "`contexture migrate` brings a database to the format of this version",
    "newer_format": "install a newer version of this package",
    "internal": "this is a defect: please report it",
}

_CLASSES: dict[str, type[Error]] = {
    "forked": Forked,
    "internal": InternalError,
    "not_found": NotFound,
    "no_note": NotFound,
    "evicted": NotFound,
    "unknown_model": NotFound,
    "head_moved": Conflict,
    "already_exists": Conflict,
    "version_conflict": Conflict,
    "state_conflict": Conflict,
    "id_conflict": Conflict,
    "branch_busy": Conflict,
    "branch_held": Conflict,
    "other_resource": Conflict,
    "item_conflict": Conflict,
    "does_not_fit": DoesNotFit,
    "window_too_small": DoesNotFit,
    "unavailable": Unavailable,
    "busy": Unavailable,
    "interrupted": Unavailable,
    "outcome_unknown": Unavailable,
    "no_threads": Unavailable,
    "closed": Unavailable,
    "storage": StorageError,
    "storage_full": StorageError,
    "damaged": StorageError,
    "newer_format": StorageError,
    "older_format": StorageError,
    "stale_fence": Conflict,
}


def error_from_json(document: bytes | str) -> Error:
    """Return the exception for a failure, as the native half describes it."""
    failure = json.loads(document)
    code = failure["code"]
    return _restore(
        _CLASSES.get(code, InvalidInput), failure["detail"], code, failure["retryable"], failure["members"]
    )


def _restore(
    kind: type[Error], detail: str, code: str, retryable: bool, members: dict[str, Any]
) -> Error:
    return kind(detail, code=code, retryable=retryable, members=members)
