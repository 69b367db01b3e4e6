"""`wrap`: the engine between a program and the SDK of its provider, without a server."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from contexture._errors import InvalidInput
from contexture._json import to_json

if TYPE_CHECKING:
    from contexture._async_engine import AsyncConversation
    from contexture._engine import Conversation
    from contexture._json import Json

__all__ = ["build_request", "event_text", "read_options", "split_body", "warn_not_recorded", "warn_unchanged", "wrap"]

Client = TypeVar("Client")

_METHODS = {
    ("chat", "completions"): ("openai-chat", ("parse",)),
    ("responses",): ("openai-responses", ("parse",)),
    ("messages",): ("anthropic", ("parse", "stream")),
}
"""Where an SDK has ``create``, in what format it sends, and its ways to call a model without that."""

_HISTORY = {
    "openai-chat": ("messages",),
    "openai-responses": ("input", "instructions"),
    "anthropic": ("messages", "system"),
}
"""Members of a request that a compiled one replaces. All others are sent as the program set them."""

_NO_BODY = ("extra_headers", "extra_query", "extra_body", "timeout")
_RESERVES = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_HELD_BY_PROVIDER = ("previous_response_id", "conversation", "prompt", "background")


def wrap(client: Client, chat: Conversation | AsyncConversation, **options: Json) -> Client:
    """Return a client like this one whose calls are stored in a conversation and compiled; the given one stays as it is.

    ``client``: of the OpenAI or Anthropic SDK; an async one needs a conversation of an
    ``AsyncEngine``. ``options``: those of ``Conversation.compile``, such as ``policy`` and ``window``.

    The program keeps its history and sends all of it, as without this. Each call of
    ``chat.completions.create``, ``responses.create`` and ``messages.create``, streams too, stores
    what is new, sends the compiled history instead, and records the answer. All other members are
    sent as they are, except tools that the policy denies. A call that cannot be taken in is sent
    unchanged, with a ``UserWarning`` that says why.

    Raises ``InvalidInput`` for another client, or for a conversation that does not go with it.
    """
    copy = getattr(client, "with_options", None)
    wrapped: Any = copy() if callable(copy) else client
    if not _wrap_methods(wrapped, chat, options):
        detail = f"`client`: expected one of the OpenAI or Anthropic SDK, found {type(client).__name__}"
        raise InvalidInput(detail, code="bad_body")
    if callable(copy):
        # What these return would otherwise send without a word.
        for name in ("with_options", "copy"):
            setattr(wrapped, name, _rewrapping(getattr(client, name), chat, options))
    return wrapped  # type: ignore[no-any-return]


def _rewrapping(method: Callable[..., Any], chat: Any, options: Mapping[str, Json]) -> Callable[..., Any]:
    @functools.wraps(method)
    def copy(*arguments: Any, **more: Any) -> Any:
        return wrap(method(*arguments, **more), chat, **options)

    return copy


def _wrap_methods(client: Any, chat: Any, options: Mapping[str, Json]) -> bool:
    found = False
    for path, (format, others) in _METHODS.items():
        resource = client
        for name in path:
            resource = getattr(resource, name, None)
        create = getattr(resource, "create", None)
        if create is None:
            continue
        found = True
        resource.create = _creating(create, chat, format, options)
        for name in others:
            method = getattr(resource, name, None)
            if method is not None:
                setattr(resource, name, _warning(method, name))
    return found


def _creating(create: Callable[..., Any], chat: Any, format: str, options: Mapping[str, Json]) -> Callable[..., Any]:
    # Only programs that wrap a client wait for it.
    import inspect

    from contexture._engine import Conversation

    is_async = inspect.iscoroutinefunction(inspect.unwrap(create))
    if is_async == isinstance(chat, Conversation):
        expected = "an async client and a conversation of an AsyncEngine, or neither"
        raise InvalidInput(f"`chat`: expected {expected}, found {type(chat).__name__}", code="bad_body")
    if is_async:
        from contexture._async_wrap import AsyncCalls

        async_calls = AsyncCalls(chat, format, options)

        @functools.wraps(create)
        async def create_async(**request: Any) -> Any:
            return await async_calls.create(create, request)

        return create_async
    from contexture._wrap import Calls

    calls = Calls(chat, format, options)

    @functools.wraps(create)
    def create_sync(**request: Any) -> Any:
        return calls.create(create, request)

    return create_sync


def _warning(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*arguments: Any, **more: Any) -> Any:
        warn_unchanged(f"`{name}` is not taken in, `create` is")
        return method(*arguments, **more)

    return call


def warn_unchanged(why: object) -> None:
    """Say that a call is sent as it is and not stored."""
    warnings.warn(f"this call was sent unchanged and is not stored: {why}", UserWarning, stacklevel=4)


def warn_not_recorded(why: object) -> None:
    """Say that an answer is not stored."""
    warnings.warn(f"the answer to this call is not stored: {why}", UserWarning, stacklevel=4)


def split_body(request: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a call that are sent as its body, as plain data.

    Raises ``InvalidInput`` if the provider holds the history, or the answer comes in another form.
    """
    held = [name for name in _HELD_BY_PROVIDER if _is_given(request.get(name))]
    if held:
        raise InvalidInput(f"`{held[0]}`: the provider holds the history", code="bad_body")
    if "x-stainless-raw-response" in {name.lower() for name in request.get("extra_headers") or {}}:
        raise InvalidInput("`with_raw_response`: the answer is not parsed", code="bad_body")
    body = {name: value for name, value in request.items() if name not in _NO_BODY and _is_given(value)}
    plain: dict[str, Any] = json.loads(to_json(body, "request"))
    return plain


def _is_given(value: Any) -> bool:
    # What SDKs pass for "leave it out" is an object of theirs.
    return value is not None and type(value).__name__ not in ("NotGiven", "Omit")


def read_options(body: Mapping[str, Any], options: Mapping[str, Json]) -> dict[str, Json]:
    """Return the options of the compile: those that were given to ``wrap``, and what the request says."""
    reserve = next((body[name] for name in _RESERVES if isinstance(body.get(name), int)), None)
    said = {"model": body.get("model"), "tools": body.get("tools"), "reserve": reserve}
    return {**{name: value for name, value in said.items() if value is not None}, **options}


def build_request(request: Mapping[str, Any], body: Mapping[str, Any], payload: Mapping[str, Any], format: str) -> dict[str, Any]:
    """Return a program's request with the history of a compiled one, and without tools that were left out of it."""
    sent = {name: value for name, value in request.items() if name not in _HISTORY[format]}
    sent.update({name: payload[name] for name in _HISTORY[format] if name in payload})
    if "tools" in body:
        names = {_tool_name(tool) for tool in payload.get("tools", [])}
        # Those without a name are the provider's own.
        tools = [tool for tool in body["tools"] if _tool_name(tool) in names or _tool_name(tool) is None]
        if len(tools) < len(body["tools"]):
            sent["tools"] = tools
    return sent


def _tool_name(tool: Mapping[str, Any]) -> str | None:
    name: str | None = tool.get("function", tool).get("name")
    return name


def event_text(events: list[bytes]) -> str:
    """Return the text of an event stream that has these events."""
    lines = []
    for event in events:
        kind = json.loads(event).get("type")
        lines.append((f"event: {kind}\n" if kind else "") + f"data: {event.decode()}\n\n")
    return "".join(lines) + ("" if any(line.startswith("event:") for line in lines) else "data: [DONE]\n\n")
