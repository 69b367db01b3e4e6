"""`wrap`: the engine between a program and the SDK of its provider, without a server."""

from __future__ import annotations

import functools
import json
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from contexture._errors import InvalidInput
from contexture._json import to_json

if TYPE_CHECKING:
    from contexture._async_engine import AsyncConversation
    from contexture._engine import Conversation
    from contexture._json import Json

__all__ = [
    "StreamedAnswer",
    "build_request",
    "read_options",
    "split_body",
    "warn_not_recorded",
    "warn_unchanged",
    "wrap",
]

Client = TypeVar("Client")

_METHODS = {
    ("chat", "completions"): ("openai-chat", ("parse",)),
    ("responses",): ("openai-responses", ("parse",)),
    ("messages",): ("anthropic", ("parse", "stream")),
    # Requests there have members that only the beta has, so they are not taken in.
    ("beta", "messages"): (None, ("create", "parse", "stream")),
}
"""Where an SDK has ``create``, in what format it sends, and its ways to call a model that are not taken in."""

_HISTORY = {
    "openai-chat": ("messages",),
    "openai-responses": ("input", "instructions"),
    "anthropic": ("messages", "system"),
}
"""Members of a request that a compiled one replaces. All others are sent as the program set them."""

_NO_BODY = ("extra_headers", "extra_query", "extra_body", "timeout")
_RESERVES = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_LAST_EVENTS = ("message_stop", "response.completed", "response.incomplete", "response.failed")
_WRAPPED = "_contexture_wrapped"
"""The attribute that a wrapped client has."""
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

    Raises ``InvalidInput`` for another client, for one that is wrapped already, or for a conversation
    that does not go with it.
    """
    if getattr(client, _WRAPPED, False):
        # Each of the two would store the messages and compile what the other has compiled.
        detail = "`client`: it is wrapped already; wrap the client that it was made of"
        raise InvalidInput(detail, code="bad_body")
    copy = getattr(client, "with_options", None)
    wrapped: Any = copy() if callable(copy) else client
    if not _wrap_methods(wrapped, chat, options):
        detail = f"`client`: expected one of the OpenAI or Anthropic SDK, found {type(client).__name__}"
        raise InvalidInput(detail, code="bad_body")
    if callable(copy):
        # What these return would otherwise send without a word.
        for name in ("with_options", "copy"):
            setattr(wrapped, name, _rewrapping(getattr(client, name), chat, options))
    setattr(wrapped, _WRAPPED, True)
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
        if format is not None:
            resource.create = _creating(create, chat, format, options)
        for name in others:
            method = getattr(resource, name, None)
            if method is not None:
                setattr(resource, name, _warning(method, name))
    return found


def _creating(create: Callable[..., Any], chat: Any, format: str, options: Mapping[str, Json]) -> Callable[..., Any]:
    # Only programs that wrap a client wait for it.
    import inspect

    from contexture._async_engine import AsyncConversation
    from contexture._engine import Conversation

    is_async = inspect.iscoroutinefunction(inspect.unwrap(create))
    if not isinstance(chat, AsyncConversation if is_async else Conversation):
        expected = "a conversation of an AsyncEngine, as the client is async" if is_async else "a conversation of an Engine"
        raise InvalidInput(f"`chat`: expected {expected}, found {type(chat).__name__}", code="bad_body")
    if is_async:
        from contexture._async_wrap import AsyncCalls

        async_calls = AsyncCalls(cast(AsyncConversation, chat), format, options)

        @functools.wraps(create)
        async def create_async(**request: Any) -> Any:
            return await async_calls.create(create, request)

        return create_async
    from contexture._wrap import Calls

    calls = Calls(cast(Conversation, chat), format, options)

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


def warn_unchanged(why: object, *, is_stored: bool = False) -> None:
    """Say that a call is sent as it is. ``is_stored``: its messages were stored before that was clear."""
    stored = "its messages are stored, its answer is not" if is_stored else "is not stored"
    _warn(f"this call was sent unchanged{';' if is_stored else ' and'} {stored}: {why}")


def warn_not_recorded(why: object) -> None:
    """Say that an answer is not stored."""
    _warn(f"the answer to this call is not stored: {why}")


def _warn(text: str) -> None:
    # At the line of the program, however many calls of this package lie between.
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("contexture."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)


def split_body(request: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """Return the members of a call that are sent as its body, as JSON and as plain data.

    Raises ``InvalidInput`` if the provider holds the history, or the answer comes in another form.
    """
    held = [name for name in _HELD_BY_PROVIDER if _is_given(request.get(name))]
    if held:
        raise InvalidInput(f"`{held[0]}`: the provider holds the history", code="bad_body")
    if "x-stainless-raw-response" in {name.lower() for name in request.get("extra_headers") or {}}:
        raise InvalidInput("`with_raw_response`: the answer is not parsed", code="bad_body")
    body = {name: value for name, value in request.items() if name not in _NO_BODY and _is_given(value)}
    raw = to_json(body, "request")
    return raw, json.loads(raw)


def _is_given(value: Any) -> bool:
    # What SDKs pass for "leave it out" is an object of theirs.
    return value is not None and type(value).__name__ not in ("NotGiven", "Omit")


def read_options(body: Mapping[str, Any], options: Mapping[str, Json]) -> dict[str, Json]:
    """Return the options of the compile: those that were given to ``wrap``, and what the request says."""
    reserve = next((body[name] for name in _RESERVES if isinstance(body.get(name), int)), None)
    tools = body.get("tools")
    said = {
        "model": body.get("model"),
        "tools": None if tools is None else [_as_function(tool) for tool in tools],
        # A tool that must be called is not left out because others match better.
        "tool_choice": body.get("tool_choice") if tools else None,
        "reserve": reserve,
    }
    return {**{name: value for name, value in said.items() if value is not None}, **options}


def build_request(
    request: Mapping[str, Any], body: Mapping[str, Any], payload: Mapping[str, Any], format: str
) -> dict[str, Any]:
    """Return a program's request with the history of a compiled one, and without tools that were left out of it."""
    sent = {name: value for name, value in request.items() if name not in _HISTORY[format]}
    sent.update({name: payload[name] for name in _HISTORY[format] if name in payload})
    offered = body.get("tools") or []
    names = {_tool_name(tool) for tool in payload.get("tools", [])}
    # Those without a name are the provider's own.
    tools = [tool for tool in offered if _tool_name(tool) in names or _tool_name(tool) is None]
    if len(tools) == len(offered):
        return sent
    sent["tools"] = tools
    choice = _remaining_choice(body.get("tool_choice"), {_tool_name(tool) for tool in offered} - names)
    if choice is None:
        sent.pop("tool_choice", None)
    elif choice != body["tool_choice"]:
        sent["tool_choice"] = choice
    if not tools:
        # Providers refuse an empty list, and these members without tools.
        for name in ("tools", "tool_choice", "parallel_tool_calls"):
            sent.pop(name, None)
    return sent


def _remaining_choice(choice: Any, left_out: set[str | None]) -> Any:
    """What is left of a ``tool_choice`` without these tools; ``None`` for nothing."""
    if not isinstance(choice, Mapping):
        return choice
    if choice.get("type") != "allowed_tools":
        return None if _tool_name(choice) in left_out - {None} else choice
    # Chat Completions has the list one level deeper than Responses.
    inner = choice.get("allowed_tools", choice)
    tools = [tool for tool in inner.get("tools", []) if _tool_name(tool) not in left_out - {None}]
    if not tools:
        return None
    reduced = {**inner, "tools": tools}
    return {**choice, "allowed_tools": reduced} if "allowed_tools" in choice else reduced


def _tool_name(tool: Mapping[str, Any]) -> str | None:
    name: str | None = (tool.get("function") or tool.get("custom") or tool).get("name")
    return name


def _as_function(tool: Any) -> Any:
    """A tool as it is compiled: one of OpenAI's with a free text as its input as a function, which policies select by its name."""
    if not isinstance(tool, Mapping) or tool.get("type") != "custom" or "input_schema" in tool:
        return tool
    function = {"name": _tool_name(tool), "description": json.dumps(tool), "parameters": {"type": "object"}}
    return {"type": "function", "function": function} if "custom" in tool else {"type": "function", **function}


class StreamedAnswer:
    """The events of an answer's stream, until it can be recorded."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.problem: object = None
        """Why the answer cannot be recorded, if so."""
        self.is_complete = False
        """Whether all of the answer is here."""
        self.is_last = False
        """Whether nothing that is recorded follows."""
        self._lines: list[str] = []
        self._choices = body.get("n") or 1
        self._finished: set[Any] = set()
        # The only event that says what the call cost comes after the answer.
        self._wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))

    def add(self, event: Any) -> None:
        """Add an event. Never raises: the stream is the program's."""
        if self.problem is not None:
            return
        try:
            text = to_json(event, "event")
            plain = json.loads(text)
            kind = plain.get("type")
            self._lines.append((f"event: {kind}\n" if kind else "") + f"data: {text.decode()}\n\n")
            if kind is None:
                self._read_chunk(plain)
            elif kind in _LAST_EVENTS:
                self.is_complete = self.is_last = True
        except Exception as error:
            # Half of a surrogate pair, for example: a provider may cut an emoji in two.
            self.problem = error
            self._lines.clear()

    def text(self) -> str:
        """Return the text of the event stream."""
        is_chat = not any(line.startswith("event:") for line in self._lines)
        return "".join(self._lines) + ("data: [DONE]\n\n" if is_chat else "")

    def _read_chunk(self, chunk: Mapping[str, Any]) -> None:
        for choice in chunk.get("choices") or []:
            if choice.get("finish_reason"):
                self._finished.add(choice.get("index"))
        self.is_complete = len(self._finished) >= self._choices
        self.is_last = self.is_complete and (not self._wants_usage or bool(chunk.get("usage")))
