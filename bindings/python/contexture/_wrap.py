"""Calls of a wrapped client, for programs without asyncio: see `_wrapping.py`.

Made from `_async_wrap.py` by `tests/python/make_sync.py`; do not edit it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from contexture._errors import InvalidInput
from contexture._wrapping import (
    StreamedAnswer,
    build_request,
    read_options,
    split_body,
    warn_not_recorded,
    warn_unchanged,
)

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
        is_stored = False
        try:
            raw, body = split_body(request)
            ingested = self._chat.ingest(raw, format=self._format)
            is_stored = True
            chat = self._chat.on(ingested.branch)
            call = self._compile(chat, body)
            sent = build_request(request, body, call.payload, self._format)
        except Exception as error:
            # Whatever it is: the program's call matters more than what is made of it.
            warn_unchanged(error, is_stored=is_stored)
            return create(**request)
        response = create(**sent)
        if request.get("stream") is True:
            return RecordedStream(response, chat, call, StreamedAnswer(body))
        _record(chat, call, response)
        return response

    def _compile(self, chat: Conversation, body: Mapping[str, Any]) -> Compiled:
        options = read_options(body, self._options)
        try:
            return chat.compile(to=self._format, **options)
        except InvalidInput:
            if "tool_choice" not in options:
                raise
            # A choice of a tool that the policy denies: neither is sent.
            del options["tool_choice"]
            return chat.compile(to=self._format, **options)


class RecordedStream:
    """A stream of a provider's SDK whose answer is recorded once it is complete. Everything else is the SDK's."""

    def __init__(self, stream: Any, chat: Conversation, call: Compiled, answer: StreamedAnswer) -> None:
        self._stream = stream
        self._chat = chat
        self._call = call
        self._answer = answer
        self._is_finished = False

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
        except Exception as error:
            self._finish(f"the stream failed: {error}")
            raise
        self._answer.add(event)
        if self._answer.is_last:
            # Now, as a program that has read the last event may never ask for another.
            self._finish()
        return event

    def __enter__(self) -> RecordedStream:
        self._stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stream.__exit__(kind, error, traceback)
        self._finish("the stream was closed before its end")

    def close(self) -> None:
        """Close the stream, as the SDK does; an answer that is complete is recorded."""
        self._stream.close()
        self._finish("the stream was closed before its end")

    def __del__(self) -> None:
        if not self._is_finished:
            warn_not_recorded("the stream was not read to its end")

    def _finish(self, unless_complete: str | None = None) -> None:
        """Record the answer, once; or say why it is not, for which ``unless_complete`` is a reason."""
        if self._is_finished:
            return
        self._is_finished = True
        problem = self._answer.problem or (None if self._answer.is_complete else unless_complete)
        if problem is None:
            _record(self._chat, self._call, self._answer.text())
        else:
            warn_not_recorded(problem)


def _record(chat: Conversation, call: Compiled, response: Any) -> None:
    try:
        chat.record(call, response)
    except Exception as error:
        warn_not_recorded(error)
