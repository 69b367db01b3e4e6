"""Calls of a wrapped client, for asyncio: see `_wrapping.py`.

`_wrap.py`, for programs without it, is generated from this file by
`bindings/python/tests/python/make_sync.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from contexture._json import to_json
from contexture._wrapping import build_request, event_text, read_options, split_body, warn_not_recorded, warn_unchanged

if TYPE_CHECKING:
    from contexture._async_engine import AsyncConversation
    from contexture._documents import Compiled
    from contexture._json import Json

__all__ = ["AsyncCalls", "AsyncRecordedStream"]


class AsyncCalls:
    """The calls of one method of a wrapped client."""

    def __init__(self, chat: AsyncConversation, format: str, options: Mapping[str, Json]) -> None:
        self._chat = chat
        self._format = format
        self._options = options

    async def create(self, create: Callable[..., Any], request: dict[str, Any]) -> Any:
        """Store what is new of a request, send it compiled, and record the answer."""
        for name in ("messages", "input"):
            if hasattr(request.get(name), "__next__"):
                # It can be read only once, but may be sent unchanged after it was read.
                request[name] = [*request[name]]
        try:
            sent, call, chat = await self._compile(request)
        except Exception as error:
            # Whatever it is: the program's call matters more than what is made of it.
            warn_unchanged(error)
            return await create(**request)
        response = await create(**sent)
        if request.get("stream") is True:
            return AsyncRecordedStream(response, chat, call)
        await _record(chat, call, response)
        return response

    async def _compile(self, request: dict[str, Any]) -> tuple[dict[str, Any], Compiled, AsyncConversation]:
        body = split_body(request)
        ingested = await self._chat.ingest(body, format=self._format)
        chat = self._chat.on(ingested.branch)
        call = await chat.compile(to=self._format, **read_options(body, self._options))
        return build_request(request, body, call.payload, self._format), call, chat


class AsyncRecordedStream:
    """A stream of a provider's SDK whose answer is recorded when it ends. Everything else is the SDK's."""

    def __init__(self, stream: Any, chat: AsyncConversation, call: Compiled) -> None:
        self._stream = stream
        self._chat = chat
        self._call = call
        self._events: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> AsyncRecordedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            event = await self._stream.__anext__()
        except StopAsyncIteration:
            await self._finish()
            raise
        self._events.append(to_json(event, "event"))
        return event

    async def __aenter__(self) -> AsyncRecordedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stream.__aexit__(kind, error, traceback)

    async def _finish(self) -> None:
        events, self._events = self._events, []
        if events:
            await _record(self._chat, self._call, event_text(events))


async def _record(chat: AsyncConversation, call: Compiled, response: Any) -> None:
    try:
        await chat.record(call, response)
    except Exception as error:
        warn_not_recorded(error)
