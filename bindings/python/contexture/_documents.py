"""What operations return: views of the API's JSON documents, with typed attributes.

Each class names the members of one document; its docs are the document's. Unknown members, of a later version, are attributes too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

__all__ = [
    "AnsweredCall",
    "Branch",
    "Call",
    "Checked",
    "Checkpoint",
    "Compaction",
    "Compiled",
    "ConversationInfo",
    "Document",
    "Explained",
    "Handled",
    "Hit",
    "Ingested",
    "Item",
    "Log",
    "LogEntry",
    "Loss",
    "MessagePage",
    "Nearby",
    "NearbyItem",
    "Note",
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
    "Tokens",
    "ToolCall",
    "Usage",
    "UsageGroup",
    "UsageSum",
    "Value",
    "WhatIf",
    "WordHits",
    "IndexProgress",
]


class Document:
    """A read-only JSON object whose members are attributes."""

    __slots__ = ("_data",)

    _data: dict[str, Any]
    _nested: ClassVar[dict[str, type[Document]]] = {}
    _lists: ClassVar[frozenset[str]] = frozenset()
    """Members that are lists, and absent where they are empty."""

    def __init__(self, data: dict[str, Any]) -> None:
        object.__setattr__(self, "_data", data)

    def __getattr__(self, name: str) -> Any:
        # Copying and pickling look for attributes before there are data.
        if name.startswith("_"):
            raise AttributeError(name)
        data = self._data
        if name not in data:
            if name in self._lists:
                return []
            if name in _members(type(self)):
                return None
            raise AttributeError(f"{type(self).__name__} has no member {name!r}")
        value = data[name]
        kind = self._nested.get(name)
        if kind is None or value is None:
            return value
        return [kind(one) for one in value] if isinstance(value, list) else kind(value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is not changed: it shows what was")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._data,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Document) and type(self) is type(other) and self._data == other._data

    def __hash__(self) -> int:
        return hash(json.dumps(self._data, sort_keys=True))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def to_dict(self) -> dict[str, Any]:
        """Return the document as it came."""
        return self._data

    def __repr__(self) -> str:
        shown = (f"{name}={_shorten(value)}" for name, value in self._data.items() if value not in (None, [], {}))
        return f"{type(self).__name__}({', '.join(shown)})"


def _members(kind: type) -> set[str]:
    return {name for base in kind.__mro__ for name in base.__dict__.get("__annotations__", {})}


def _shorten(value: Any) -> str:
    if isinstance(value, list) and len(repr(value)) > 80:
        return f"[{len(value)} of them]"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}…{text[-15:]}"


class Loss(Document):
    """A part of a document that items cannot represent."""

    path: str
    what: str
    why: str


class UsageSum(Document):
    """What calls used and cost."""

    calls: int
    failed: int
    rewritten: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_written_tokens: int
    predicted_read_tokens: int
    dollars: str
    pico_dollars: int
    saved_dollars: str | None
    saved_pico_dollars: int | None


class ConversationInfo(Document):
    """A conversation, without its tree."""

    id: str
    title: str | None
    resource: str | None
    metadata: dict[str, Any]
    active: str
    version: int
    messages: int
    items: int
    branches: int
    events: int
    created: str
    updated: str
    overview: dict[str, Any] | None


class Saved(Document):
    """What an append stored."""

    branch: str
    head: str | None
    opened: bool
    messages: list[str]
    items: list[str]
    losses: list[Loss]
    _nested = {"losses": Loss}
    _lists = frozenset({"losses"})


class Item(Document):
    """An item at its position in the tree."""

    id: str
    parent: str | None
    depth: int
    message: str
    kind: str
    origin: str
    created: str
    item: dict[str, Any]


class MessagePage(Document):
    """Messages of a path, oldest first, in the format of the AI SDK."""

    branch: str
    messages: list[dict[str, Any]]
    next: str | None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)


class Resolved(Document):
    """The input of a model as text and messages."""

    system_prompt: str
    messages: list[dict[str, Any]]


class Branch(Document):
    """A name that moves with each append."""

    name: str
    head: str | None
    active: bool
    created: str
    items: int
    messages: int
    turns: int


class Checkpoint(Document):
    """A name that stays where it was set."""

    name: str
    node: str
    set: str
    moved_from: str | None


class Compaction(Document):
    """A summary that replaces older items in the model's view."""

    compaction: str
    first: str
    last: str


class Note(Document):
    """A note of the memory layer."""

    key: str
    value: str
    description: str | None
    importance: int | None
    created: str
    updated: str
    updates: int
    expires: dict[str, Any] | None
    earlier: list[dict[str, Any]]
    _lists = frozenset({"earlier"})


class Rule(Document):
    """A sentence of the user that holds until it is taken back."""

    id: str
    node: str | None
    turn: int
    text: str
    express: bool
    dropped: bool


class LogEntry(Document):
    """A message in the tree of a conversation."""

    id: str
    message: str
    parent: str | None
    role: str
    text: str
    items: int
    calls: int
    tokens: int
    created: str
    branches: list[str]
    checkpoints: list[str]
    active: bool
    pinned: bool
    usage: UsageSum | None
    _nested = {"usage": UsageSum}


class Log(Document):
    """A conversation's tree: its messages, newest first, and the names in it."""

    conversation: str
    branches: list[Branch]
    entries: list[LogEntry]
    compactions: list[Compaction]
    hidden: int
    hidden_heads: int
    next: str | None
    _nested = {"branches": Branch, "entries": LogEntry, "compactions": Compaction}

    def __str__(self) -> str:
        lines = []
        for entry in self.entries:
            names = [*entry.branches, *(f"◆{name}" for name in entry.checkpoints)]
            mark = "@" if entry.active else "○"
            lines.append(f"{mark} {entry.id[:8]} {entry.role:<9} {' '.join(names):<12} {entry.text}")
        return "\n".join(lines)


class Ingested(Document):
    """Where a request was stored."""

    branch: str
    head: str | None
    items: list[str]
    opened: bool


class ToolCall(Document):
    """A call of a tool in an answer of a model."""

    call_id: str
    name: str
    arguments: str
    by: str
    refusal: str | None

    @property
    def input(self) -> dict[str, Any]:
        """The arguments, parsed; empty if the model wrote none.

        Raises ``ValueError`` if they are not valid JSON; report that to the model as the tool's
        output.
        """
        parsed: dict[str, Any] = json.loads(self.arguments or "{}")
        return parsed


class Recorded(Document):
    """A stored answer of a model."""

    branch: str
    head: str | None
    nodes: list[str]
    latched: bool
    replayed: bool
    response: str | None
    calls: list[ToolCall]
    losses: list[Loss]
    _nested = {"calls": ToolCall, "losses": Loss}


class AnsweredCall(Document):
    """A call that the engine answered, with its output."""

    call_id: str
    name: str
    output: str
    is_error: bool


class Handled(Document):
    """Calls at the end of a branch: those that were answered, and those that wait for your tools."""

    head: str | None
    answered: list[AnsweredCall]
    waiting: list[ToolCall]
    _nested = {"answered": AnsweredCall, "waiting": ToolCall}


class Checked(Document):
    """Whether a tool may be called; true if it may."""

    allowed: bool
    refusal: str | None

    def __bool__(self) -> bool:
        return self.allowed


class Report(Document):
    """What a request contains and leaves out, and why. Its schema is docs/schema/report.schema.json."""

    target: dict[str, Any]
    totals: dict[str, Any]
    segments: list[dict[str, Any]]

    def __repr__(self) -> str:
        return f"<Report: {len(self.segments)} segments, members {', '.join(self._data)}>"


class Compiled:
    """A compiled call: the request to send, and the id by which its answer is recorded."""

    __slots__ = ("_envelope", "_payload", "_report", "payload_json", "report_json")

    payload_json: bytes
    """The request as JSON, to be sent as it is."""
    report_json: bytes
    """The report as JSON."""

    def __init__(self, envelope: dict[str, Any], payload: bytes, report: bytes) -> None:
        self._envelope = envelope
        self.payload_json = payload
        self.report_json = report
        self._payload: dict[str, Any] | None = None
        self._report: Report | None = None

    @property
    def id(self) -> str | None:
        """Id of the call; ``None`` without a stored conversation."""
        call: str | None = self._envelope["call"]
        return call

    @property
    def payload(self) -> dict[str, Any]:
        """The request, for ``client.create(**call.payload)``. Parsed when it is first asked for."""
        if self._payload is None:
            self._payload = json.loads(self.payload_json)
        return self._payload

    @property
    def report(self) -> Report:
        """What the request contains and leaves out. Parsed when it is first asked for."""
        if self._report is None:
            self._report = Report(json.loads(self.report_json))
        return self._report

    @property
    def plan(self) -> Any:
        """What the next compile of the same messages takes as its ``plan``; ``None`` for a stored conversation."""
        return self._envelope["plan"]

    @property
    def own_tools(self) -> list[str]:
        """Names of offered tools whose calls the engine answers."""
        own: list[str] = self._envelope["own_tools"]
        return own

    def owns(self, tool: str) -> bool:
        """Return whether the engine answers calls of this tool: see ``Conversation.handle``."""
        return tool in self.own_tools

    def __repr__(self) -> str:
        return f"<Compiled: call {self.id}, {len(self.payload_json):,} bytes, own tools {self.own_tools}>"


class Explained(Document):
    """A report in three forms. In a notebook it shows itself as a picture of the window."""

    report: dict[str, Any]
    table: str
    html: str
    text: dict[str, Any] | None

    def __str__(self) -> str:
        return self.table

    def __repr__(self) -> str:
        return f"<Explained: {len(self.table.splitlines())} lines; print it, or show it in a notebook>"

    def _repr_html_(self) -> str:
        from html import escape

        # The page has styles of its own, which are not to be those of the notebook.
        return f'<iframe srcdoc="{escape(self.html)}" sandbox="" width="100%" height="480"></iframe>'


class WhatIf(Document):
    """A call as it would be, beside the last one of the branch."""

    payload: dict[str, Any]
    report: dict[str, Any]
    band: dict[str, Any]
    dollars: str | None
    next_dollars: str | None
    against: str | None
    difference: dict[str, Any] | None


class Snippet(Document):
    """Part of a text that shows what was found. ``matches`` are ranges of characters."""

    text: str
    matches: list[list[int]]

    def __str__(self) -> str:
        return self.text


class NearbyItem(Document):
    """An item beside a hit."""

    id: str
    kind: str
    created: str
    text: str


class Nearby(Document):
    """Items before and after a hit."""

    before: list[NearbyItem]
    after: list[NearbyItem]
    _nested = {"before": NearbyItem, "after": NearbyItem}


class Replaced(Document):
    """A newer statement by the same person about the same thing, which replaces the hit's."""

    conversation: str
    id: str
    until: str


class Hit(Document):
    """An item whose text matches a query."""

    conversation: str
    id: str
    message: str | None
    kind: str
    score: int
    created: str
    snippet: Snippet
    replaced: Replaced | None
    nearby: Nearby | None
    _nested = {"snippet": Snippet, "replaced": Replaced, "nearby": Nearby}


class WordHits(Document):
    """A word of a search for all words, and how many items have it."""

    word: str
    hits: int


class IndexProgress(Document):
    """How far the index of texts is, in conversations that were to be searched."""

    indexed: int
    conversations: int


class SearchPage(Document):
    """A page of what was found, best first."""

    hits: list[Hit]
    more: bool
    complete: bool
    next: str | None
    apart: list[WordHits]
    indexing: IndexProgress | None
    _nested = {"hits": Hit, "apart": WordHits, "indexing": IndexProgress}
    _lists = frozenset({"apart"})

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


class Tokens(Document):
    """Tokens that a provider reported."""

    input: int
    output: int
    cache_read: int
    cache_written: int



class Call(Document):
    """An exchange with a provider."""

    id: str
    at: str
    outcome: str
    upstream: str
    format: str | None
    model: str | None
    key: str | None
    policy: str | None
    conversation: str | None
    response: str | None
    status: int | None
    refusal: str | None
    finish: str | None
    duration_ms: int | None
    first_byte_ms: int | None
    tokens: Tokens | None
    prediction: dict[str, Any] | None
    dollars: str | None
    pico_dollars: int | None
    estimated: bool
    rewritten: bool
    damaged: bool
    own: bool
    attempts: int
    band: dict[str, Any] | None
    sent: dict[str, Any] | None
    came: dict[str, Any] | None
    report: dict[str, Any] | None
    answer: dict[str, Any] | None
    _nested = {"tokens": Tokens}


class UsageGroup(UsageSum):
    """The sum of one group of calls, with what they have in common."""

    day: str | None
    upstream: str | None
    model: str | None
    key: str | None
    policy: str | None
    conversation: str | None
    outcome: str | None
    owner: str | None


class Usage(Document):
    """What calls used and cost, in groups."""

    by: list[str]
    groups: list[UsageGroup]
    total: UsageSum
    _nested = {"groups": UsageGroup, "total": UsageSum}


class Session(Document):
    """A session of another program that was imported."""

    conversation: str
    title: str | None
    format: str
    source: str
    items: int
    new: int
    branches: int
    parted: dict[str, Any] | None


class Sessions(Document):
    """Imported sessions, and the records that could not be read."""

    imported: list[Session]
    skipped: list[str]
    _nested = {"imported": Session}


class Value:
    """A program's own value beside the tree of a conversation."""

    __slots__ = ("data", "key", "version")

    def __init__(self, key: str, version: int, data: bytes) -> None:
        self.key = key
        self.version = version
        self.data = data

    def __repr__(self) -> str:
        return f"Value(key={self.key!r}, version={self.version}, data={len(self.data)} bytes)"
