"""Contexture: the context engine for LLM agents, in the process of your program.

>>> from contexture import Engine
>>> engine = Engine("memory:")                    # or a path, or postgres://…
>>> chat = engine.open("support-42")
>>> saved = chat.append("Where is my parcel?")    # any provider's messages
>>> call = chat.compile(model="gpt-4o", to="openai-chat")
>>> call.payload["messages"]
[{'role': 'user', 'content': 'Where is my parcel?'}]

Send ``call.payload`` with the provider's SDK and hand the answer back: ``chat.record(call, answer)``. The package also carries the
command ``contexture``: ``python -m contexture --help``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contexture._documents import (
    AnsweredCall,
    Branch,
    Call,
    Checked,
    Checkpoint,
    Compaction,
    Compiled,
    ConversationInfo,
    Document,
    Explained,
    Handled,
    Hit,
    Ingested,
    Item,
    Log,
    LogEntry,
    Loss,
    MessagePage,
    Nearby,
    NearbyItem,
    Note,
    Recorded,
    Replaced,
    Report,
    Resolved,
    Rule,
    Saved,
    SearchPage,
    Session,
    Sessions,
    Snippet,
    Tokens,
    ToolCall,
    Usage,
    UsageGroup,
    UsageSum,
    Value,
    WhatIf,
    WordHits,
    IndexProgress,
)
from contexture._engine import Conversation, Engine
from contexture._errors import (
    Conflict,
    DoesNotFit,
    Error,
    Forked,
    InternalError,
    InvalidInput,
    NotFound,
    StorageError,
    Unavailable,
)
from contexture._messages import fragment, tool_output
from contexture._native import __version__
from contexture._notes import Notes
from contexture._program import find_program
from contexture._values import Values
from contexture._wrapping import wrap

if TYPE_CHECKING:
    from contexture._async_engine import AsyncConversation, AsyncEngine
    from contexture._async_notes import AsyncNotes
    from contexture._async_values import AsyncValues

__all__ = [
    "AnsweredCall",
    "AsyncConversation",
    "AsyncEngine",
    "AsyncNotes",
    "AsyncValues",
    "Branch",
    "Call",
    "Checked",
    "Checkpoint",
    "Compaction",
    "Compiled",
    "Conflict",
    "Conversation",
    "ConversationInfo",
    "Document",
    "DoesNotFit",
    "Engine",
    "Error",
    "Explained",
    "Forked",
    "Handled",
    "Hit",
    "Ingested",
    "InternalError",
    "InvalidInput",
    "Item",
    "Log",
    "LogEntry",
    "Loss",
    "MessagePage",
    "Nearby",
    "NearbyItem",
    "NotFound",
    "Note",
    "Notes",
    "Recorded",
    "Replaced",
    "Report",
    "Resolved",
    "Rule",
    "Saved",
    "SearchPage",
    "Session",
    "Sessions",
    "Snippet",
    "StorageError",
    "Tokens",
    "ToolCall",
    "Unavailable",
    "Usage",
    "UsageGroup",
    "UsageSum",
    "Value",
    "Values",
    "WhatIf",
    "WordHits",
    "IndexProgress",
    "__version__",
    "find_program",
    "fragment",
    "tool_output",
    "wrap",
]


def __getattr__(name: str) -> Any:
    # Programs without asyncio do not wait for what only the others need.
    if name in ("AsyncConversation", "AsyncEngine", "AsyncNotes", "AsyncValues"):
        from contexture import _async_engine

        return getattr(_async_engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
