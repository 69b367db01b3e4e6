"""Calls of a wrapped client, for programs without asyncio: see `_wrapping.py`.

Made from `_async_wrap.py` by `tests/python/make_sync.py`; do not edit it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from contexture._json import to_json
from contexture._wrapping import build_request, event_text, read_options, split_body, warn_not_recorded, warn_unchanged

if TYPE_CHECKING:
    from contexture._engine import Conversation
    from contexture._documents import Compiled
    from contexture._json import Json

__all__ = ["Calls", "RecordedStream"]


class Calls:
    """The calls of one method of a wrapped client."""

    def __init__(self, chat: Conversation, format: str, options: Mapping[str, Json]) -> None:
        self._chat = chat
        self._format = format
        self._options = options

    def create(self, create: Callable[..., Any], request: dict[str, Any]) -> Any:
        """Store what is new of a request, send it compiled, and record the answer."""
        for name in ("messages", "input"):
            if hasattr(request.get(name), "__next__"):
                # It can be read only once, but may be sent unchanged after it was read.
                request[name] = [*request[name]]
        try:
            sent, call, chat = self._compile(request)
        except Exception as error:
            # Whatever it is: the program's call matters more than what is made of it.
            warn_unchanged(error)
            return create(**request)
        response = create(**sent)
        if request.get("stream") is True:
            return RecordedStream(response, chat, call)
        _record(chat, call, response)
        return response

    def _compile(self, request: dict[str, Any]) -> tuple[dict[str, Any], Compiled, Conversation]:
        body = split_body(request)
        ingested = self._chat.ingest(body, format=self._format)
        chat = self._chat.on(ingested.branch)
        call = chat.compile(to=self._format, **read_options(body, self._options))
        return build_request(request, body, call.payload, self._format), call, chat


class RecordedStream:
    """A stream of a provider's SDK whose answer is recorded when it ends. Everything else is the SDK's."""

    def __init__(self, stream: Any, chat: Conversation, call: Compiled) -> None:
        self._stream = stream
        self._chat = chat
        self._call = call
        self._events: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> RecordedStream:
        return self

    def __next__(self) -> Any:
        try:
            event = self._stream.__next__()
        except StopIteration:
            self._finish()
            raise
        self._events.append(to_json(event, "event"))
        return event

    def __enter__(self) -> RecordedStream:
        self._stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stream.__exit__(kind, error, traceback)

    def _finish(self) -> None:
        events, self._events = self._events, []
        if events:
            _record(self._chat, self._call, event_text(events))


def _record(chat: Conversation, call: Compiled, response: Any) -> None:
    try:
        chat.record(call, response)
    except Exception as error:
        warn_not_recorded(error)
