"""The engine for asyncio.

`_engine.py`, for programs without it, is generated from this file by
`bindings/python/tests/python/make_sync.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from contexture._async_notes import AsyncNotes
from contexture._async_values import AsyncValues
from contexture._border import AsyncBorder
from contexture._documents import (
    Branch,
    Call,
    Checked,
    Checkpoint,
    Compaction,
    Compiled,
    ConversationInfo,
    Explained,
    Handled,
    Ingested,
    Item,
    Log,
    MessagePage,
    Recorded,
    Resolved,
    Rule,
    Saved,
    SearchPage,
    Sessions,
    Usage,
    WhatIf,
)
from contexture._json import Json, Messages, array_to_json, object_to_json, to_json

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["AsyncConversation", "AsyncEngine"]


class AsyncEngine:
    """An engine over a database: a SQLite file, PostgreSQL, or ``memory:``.

    Nothing is opened before the first operation, and each process of a program that forks opens its own. Engines are cheap to keep
    and are shared between threads and tasks.

    >>> import asyncio, contexture
    >>> async def main():
    ...     async with contexture.AsyncEngine("memory:") as engine:
    ...         chat = await engine.open("support-42")
    ...         await chat.append("Where is my parcel?")
    ...         return len(await chat.messages())
    >>> asyncio.run(main())
    1
    """

    def __init__(
        self,
        address: str | PathLike[str],
        *,
        owner: str = "local",
        policies: Mapping[str, Mapping[str, Json]] | None = None,
        skills: Iterable[str | PathLike[str]] = (),
    ) -> None:
        """Describe an engine; nothing is opened.

        ``address``: a path, ``sqlite:PATH``, ``postgres://…`` or ``memory:``. ``owner``: whose
        conversations these are; conversations of other owners are invisible. ``policies``: policies
        that calls can refer to by name, each written as in a server's configuration. ``skills``:
        folders of skills that calls may name.

        Raises ``InvalidInput`` if the address is not a database's, a policy is invalid, or a folder
        is not a skill.
        """
        border = AsyncBorder(address, to_json(policies if policies is not None else {}, "policies"), skills)
        self._border = border
        self._owner = owner

    @property
    def address(self) -> str:
        """The database, as it was given."""
        return self._border.address

    @property
    def owner(self) -> str:
        """Whose conversations these are."""
        return self._owner

    def for_owner(self, owner: str) -> AsyncEngine:
        """Return the same engine for another owner. Both share what is open."""
        other = AsyncEngine.__new__(AsyncEngine)
        other._border = self._border
        other._owner = owner
        return other

    async def open(
        self,
        conversation: str,
        *,
        title: str | None = None,
        resource: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        branch: str | None = None,
        existing: bool = False,
    ) -> AsyncConversation:
        """Open a conversation, and create it if it does not exist.

        ``title``, ``resource`` (what it is about, such as an end user) and ``metadata`` are set
        only when it is created. ``branch``: the branch that the handle works on; by default the
        active one. ``existing``: raise ``NotFound`` instead of creating it.
        """
        chat = AsyncConversation(self, conversation, branch)
        members = {"existing": existing, "title": title, "resource": resource, "metadata": metadata}
        await chat._run("open", object_to_json(members))
        return chat

    async def conversations(
        self, *, resource: str | None = None, title: str | None = None, page: int = 100
    ) -> AsyncIterator[ConversationInfo]:
        """Iterate over the conversations, most recently updated first.

        ``resource``: only those about it. ``title``: only those whose title has this text.
        ``page``: page size, the number of conversations fetched at a time.
        """
        after: str | None = None
        while True:
            members = {"resource": resource, "title": title, "limit": page, "after": after}
            found, _ = await self._run("list_conversations", object_to_json(members))
            for one in found["conversations"]:
                yield ConversationInfo(one)
            after = found.get("next")
            if after is None:
                return

    async def delete(self, conversation: str) -> None:
        """Delete a conversation and everything that belongs to it.

        Raises ``NotFound`` if there is none.
        """
        await self._run("delete_conversation", b"{}", conversation)

    async def search(
        self,
        query: str,
        *,
        resource: str | None = None,
        kind: str | None = None,
        all_words: bool = False,
        hidden: bool = False,
        around: int = 0,
        limit: int = 20,
        after: str | None = None,
    ) -> SearchPage:
        """Search all conversations, the best hits first. Iterate over the page for its hits.

        ``query``: a question or words; also a phrase (``"side by side"``), a prefix (``begin*``),
        an exclusion (``-without``), a speaker (``from:user``) or a date (``after:2026-05``).
        ``kind``: ``user``, ``assistant``, ``instruction``, ``call``, ``output`` or ``reasoning``.
        ``around``: items to show on each side of a hit, at most 10. ``after``: the ``next`` of the
        page before.
        """
        members = {
            "query": query,
            "resource": resource,
            "kind": kind,
            "all": all_words,
            "hidden": hidden,
            "around": around,
            "limit": limit,
            "after": after,
        }
        found, _ = await self._run("search", object_to_json(members))
        return SearchPage(found)

    async def compile_messages(self, messages: Messages, *, model: str, **options: Json) -> Compiled:
        """Compile a history that your program stores itself; nothing is stored here.

        ``options`` are those of ``Conversation.compile``, and ``plan``: the ``plan`` of the
        previous call, so that the request only grows at its end from one call to the next. As
        bytes, ``messages`` is a JSON array that is not parsed here.
        """
        document = object_to_json({"model": model, **options}, {"messages": array_to_json(messages, "messages")})
        return _compiled(await self._run("compile_messages", document))

    async def calls(
        self,
        *,
        since: str | None = None,
        until: str | None = None,
        model: str | None = None,
        policy: str | None = None,
        outcome: str | None = None,
        page: int = 100,
    ) -> AsyncIterator[Call]:
        """Iterate over the record of calls, newest first.

        ``since``, ``until``: a day in UTC (``2026-11-20``), a time, or how long ago (``7d``).
        ``outcome``: ``completed`` and others.
        """
        after: str | None = None
        while True:
            members = {
                "since": since,
                "until": until,
                "model": model,
                "policy": policy,
                "outcome": outcome,
                "limit": page,
                "after": after,
            }
            found, _ = await self._run("list_calls", object_to_json(members))
            for one in found["calls"]:
                yield Call(one)
            after = found["next"]
            if after is None:
                return

    async def call(self, id: str, *, include: Iterable[str] = ()) -> Call:
        """Return a past call. ``include``: ``sent``, ``came``, ``report``, ``answer``. Raises ``NotFound``."""
        found, _ = await self._run("describe_call", object_to_json({"id": id, "include": list(include)}))
        return Call(found)

    async def usage(
        self,
        *by: str,
        since: str | None = None,
        until: str | None = None,
        model: str | None = None,
        policy: str | None = None,
    ) -> Usage:
        """Return what calls used and cost, in groups: ``day``, ``model``, ``policy``, ``conversation``, ``outcome``, ``key``, ``upstream``."""
        members = {"by": list(by), "since": since, "until": until, "model": model, "policy": policy}
        found, _ = await self._run("usage", object_to_json(members))
        return Usage(found)

    async def import_session(
        self,
        text: str | bytes,
        *,
        format: str | None = None,
        name: str | None = None,
        conversation: str | None = None,
        resource: str | None = None,
        keep_going: bool = False,
    ) -> Sessions:
        """Import sessions of other programs: their logs, or a provider's request.

        Importing a session again stores only what is new in it. ``format``: by default detected,
        with the file's ``name`` if the text alone is ambiguous. ``keep_going``: leave out records
        that cannot be read, instead of refusing all.
        """
        members = {"format": format, "name": name, "resource": resource, "keep_going": keep_going}
        attachment = text.encode() if isinstance(text, str) else text
        found, _ = await self._run("import_sessions", object_to_json(members), conversation, attachment)
        return Sessions(found)

    async def import_lines(self, lines: bytes) -> list[str]:
        """Import what ``Conversation.export_lines`` gave, of one or several conversations. Returns their ids.

        Each conversation is stored completely or not at all. Raises ``Conflict`` for one that exists.
        """
        found, _ = await self._run("import_lines", b"{}", None, lines)
        ids: list[str] = found["conversations"]
        return ids

    async def migrate(self) -> int:
        """Create the tables of a PostgreSQL database, or bring them to the format of this version, whose number is returned.

        A SQLite file is brought up to date when it is opened. Raises ``InvalidInput`` for anything but PostgreSQL.
        """
        format, _ = await self._run("migrate", b"{}")
        return int(format)

    async def close(self) -> None:
        """Close what is open; a later operation opens it again.

        What running operations use is closed when they end; this does not wait for them.
        """
        self._border.close()

    async def __aenter__(self) -> AsyncEngine:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._border.shown_address!r}, owner={self._owner!r})"

    async def _run(
        self, operation: str, document: bytes, conversation: str | None = None, attachment: bytes | None = None
    ) -> tuple[Any, list[bytes]]:
        return await self._border.run(operation, (self._owner, conversation, None), document, attachment)


class AsyncConversation:
    """A conversation, seen from one branch: an append-only tree of items.

    Made by ``AsyncEngine.open``.

    A handle is a name: it holds nothing open, and every operation sees what others have stored meanwhile.
    """

    def __init__(self, engine: AsyncEngine, id: str, branch: str | None = None) -> None:
        """Name a conversation. It is looked up by the first operation, which raises ``NotFound`` if there is none."""
        self.engine = engine
        self.id = id
        self.branch = branch
        """The branch that the handle works on; ``None``: whichever is active."""
        self.values = AsyncValues(self)
        """The program's own values beside the tree."""
        self.notes = AsyncNotes(self)
        """Notes that the model is shown: see ``policy={"memory": {}}``."""

    def on(self, branch: str | None) -> AsyncConversation:
        """Return a handle on a branch of this conversation, or with ``None`` on whichever is active. Nothing is stored."""
        return AsyncConversation(self.engine, self.id, branch)

    async def info(self) -> ConversationInfo:
        """Return the conversation's title, metadata and counts."""
        found, _ = await self._run("show", b"{}")
        return ConversationInfo(found)

    async def update(
        self,
        *,
        title: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        version: int | None = None,
    ) -> ConversationInfo:
        """Change title and metadata; arguments that are omitted stay unchanged.

        An empty ``title`` removes the title; in ``metadata``, a value of ``None`` removes its key.
        ``version``: the version that must be current, else ``Conflict``.
        """
        members: dict[str, Json] = {"metadata": metadata, "version": version}
        raw = {"title": to_json(title or None)} if title is not None else {}
        found, _ = await self._run("update", object_to_json(members, raw))
        return ConversationInfo(found)

    async def append(
        self,
        messages: Messages,
        *,
        key: str | None = None,
        expected_head: str | None = None,
    ) -> Saved:
        """Append messages to the branch, in one transaction.

        ``messages``: one or several, in any provider's format, as data or as an SDK's objects;
        items (``{"type": …}``), such as ``tool_output`` makes; a text, which is what a user says;
        or bytes, a JSON array. A message of the AI SDK whose id is stored is compared: an equal one
        is skipped, one that changed starts a new branch.

        ``key``: any text; the same append with the same key is stored once, which makes a retry
        safe. ``expected_head``: the head that the branch must still have (empty text: none), else
        ``Conflict`` with the code ``head_moved``. What was returned is on disk.
        """
        raw = {"messages": array_to_json(messages, "messages")}
        document = object_to_json({"key": key, "expected_head": expected_head}, raw)
        saved, _ = await self._run("append", document)
        return Saved(saved)

    async def messages(
        self, *, audience: str = "user", limit: int | None = None, after: str | None = None
    ) -> MessagePage:
        """Return the messages of the branch in the format of the AI SDK: all, or the newest ``limit`` of them.

        ``audience``: ``user``, or ``model``, which sees what the program adds for the model only,
        and not what only users see. ``after``: the ``next`` of the page before, for the messages
        before those.
        """
        members = {"audience": audience, "limit": limit, "after": after}
        found, _ = await self._run("messages", object_to_json(members))
        return MessagePage(found)

    async def items(
        self, *, at: str | None = None, last: int | None = None, page: int = 100
    ) -> AsyncIterator[Item]:
        """Iterate over items of the branch (with ``at``: of the path to that node), oldest first.

        ``last``: return only this many items, from the end of the path; the rest is not read.
        """
        after: str | None = None
        while True:
            members = {"at": at, "last": last, "limit": page, "after": after}
            found, _ = await self._run("items", object_to_json(members))
            for one in found["items"]:
                yield Item(one)
            after = found.get("next")
            if after is None:
                return

    async def resolve(self, *, renderer: str | None = None, fragments: Iterable[Json] | None = None) -> Resolved:
        """Return the system prompt and the messages of the branch as text, without a budget and without a provider.

        ``renderer``: ``xml`` (default), ``markdown``, ``toml``, ``toon``, ``yaml`` or ``json``. ``fragments``: instead of those of the path.
        """
        raw = {"fragments": to_json(list(fragments), "fragments") if fragments is not None else None}
        found, _ = await self._run("resolve", object_to_json({"renderer": renderer}, raw))
        return Resolved(found)

    async def compile(
        self,
        *,
        model: str | None = None,
        to: str | None = None,
        window: int | None = None,
        reserve: int | None = None,
        count: str | None = None,
        policy: str | Mapping[str, Json] | None = None,
        tools: Iterable[Json] | None = None,
        tool_choice: Json = None,
        system: str | Iterable[Json] | None = None,
        renderer: str | None = None,
        context: Mapping[str, str] | None = None,
        state: Mapping[str, Json] | None = None,
        guardrails: Mapping[str, Json] | None = None,
        reminders: Iterable[str] | None = None,
        skills: Iterable[str] | None = None,
        turns: int | None = None,
        preview: int | None = None,
        params: Mapping[str, Json] | None = None,
    ) -> Compiled:
        """Compile the branch into a provider's request within a token budget.

        Send ``payload``, then ``record`` the answer.

        ``model``: by default that of the newest answer. ``to``: the format, such as ``anthropic``
        or ``openai-chat``; by default that of the model's provider. ``window``, ``reserve``: window
        size in tokens, and how many of them are reserved for the answer. ``count``: ``upper``
        (default) or ``likely``. ``policy``: a policy of the engine by name, or one of this call.
        ``tools``: in any provider's format. ``system``: a text or fragments (see ``fragment``).
        ``context``: texts of this call, by name. ``turns``, ``preview``: override the policy's
        values. ``params``: members to add to the request.

        Between two calls the request only grows at its end, so that the provider's cache holds,
        unless the report says why not. Raises ``DoesNotFit`` if what is required does not fit, and
        ``InvalidInput`` if an argument is invalid.
        """
        members: dict[str, Json] = {
            "model": model,
            "to": to,
            "window": window,
            "reserve": reserve,
            "count": count,
            "policy": policy,
            "tools": _listed(tools),
            "tool_choice": tool_choice,
            "system": system if isinstance(system, str) else _listed(system),
            "renderer": renderer,
            "context": context,
            "state": state,
            "guardrails": guardrails,
            "reminders": _listed(reminders),
            "skills": _listed(skills),
            "turns": turns,
            "preview": preview,
            "params": params,
        }
        return _compiled(await self._run("compile", object_to_json(members)))

    async def explain(self, *, text: bool = False, **options: Json) -> Explained:
        """Explain what a compile with these ``options`` (those of ``compile``) sends and leaves out, as a table and as a picture.

        ``text``: add the texts of what is sent and left out. Nothing is stored.
        """
        members = {"call": options, "text": text, "what_if": False}
        found, _ = await self._run("explain", object_to_json(members))
        return Explained(found)

    async def what_if(self, **options: Json) -> WhatIf:
        """Compile as with these ``options`` (those of ``compile``), and compare it with the last call of the branch. Nothing is stored."""
        found, _ = await self._run("explain", object_to_json({"call": options, "text": False, "what_if": True}))
        return WhatIf(found)

    async def ingest(self, request: Json, *, format: str, resource: str | None = None) -> Ingested:
        """Store what is new of a provider's request that has the whole history, and return where it is stored.

        For clients that keep the history and send all of it each time; a request that differs from
        what is stored opens a branch. ``format``: such as ``openai-chat``. ``resource``: what the
        conversation is about, if this creates it.
        """
        raw = request if isinstance(request, bytes) else to_json(request, "request")
        document = object_to_json({"format": format, "resource": resource}, {"request": raw})
        ingested, _ = await self._run("ingest", document)
        return Ingested(ingested)

    async def record(self, call: Compiled | str | None, response: Json, *, format: str | None = None) -> Recorded:
        """Store a provider's answer to a compiled call, together with the decisions of the call.

        The same answer again is stored once. ``response``: the SDK's object, its data, its JSON as
        bytes, or the text of an event stream. ``format``: by default that of the call, else
        detected. Without a ``call``, or after more than an hour, the answer is stored all the same
        (``latched`` is false).
        """
        raw = response if isinstance(response, bytes) else to_json(response, "response")
        document = object_to_json({"call": _call_id(call), "format": format}, {"response": raw})
        recorded, _ = await self._run("record", document)
        return Recorded(recorded)

    async def handle(
        self,
        call: Compiled | str | None = None,
        *,
        policy: str | Mapping[str, Json] | None = None,
        skills: Iterable[str] | None = None,
    ) -> Handled:
        """Answer the tool calls at the end of the branch that belong to the engine.

        These are notes, skills, reading what was left out, and calls that the policy does not
        allow. Their outputs are stored; ``waiting`` are those for your tools.

        ``call`` determines which notes, skills and rules apply; without it, those of the newest
        compiled call apply.
        """
        members = {"call": _call_id(call), "policy": policy, "skills": _listed(skills)}
        handled, _ = await self._run("handle", object_to_json(members))
        return Handled(handled)

    async def check(
        self,
        tool: str,
        *,
        call: Compiled | str | None = None,
        policy: str | Mapping[str, Json] | None = None,
    ) -> Checked:
        """Say whether a tool may be called, by the rules of a compiled call or of a policy. The result is true if it may."""
        members = {"name": tool, "call": _call_id(call), "policy": policy}
        checked, _ = await self._run("check", object_to_json(members))
        return Checked(checked)

    async def branches(self) -> list[Branch]:
        """Return the branches, in the order of their creation."""
        found, _ = await self._run("branches", b"{}")
        return [Branch(one) for one in found["branches"]]

    async def create_branch(self, name: str, *, at: str | None = None) -> AsyncConversation:
        """Create a branch at the head of this one, or ``at`` a node, and return a handle on it. The active branch stays active."""
        await self._run("create_branch", object_to_json({"name": name, "at": at}))
        return self.on(name)

    async def switch_branch(self, name: str) -> Branch:
        """Make a branch the active one."""
        found, _ = await self._run("switch_branch", object_to_json({"name": name}))
        return Branch(found)

    async def delete_branch(self, name: str) -> None:
        """Delete a branch's name; the items it points to are kept.

        The active branch is not deleted.
        """
        await self._run("delete_branch", object_to_json({"name": name}))

    async def rewind(
        self, message: str | None = None, *, node: str | None = None, beginning: bool = False
    ) -> Branch:
        """Go back to a message, a node or the beginning: creates a branch that ends there and makes it active.

        What came after stays on its branch. State, skills and notes of the path go back with it.
        """
        members = {"message": message, "node": node, "beginning": beginning}
        found, _ = await self._run("rewind", object_to_json(members))
        return Branch(found)

    async def move_branch(self, to: str | None, *, expected_head: str) -> Branch:
        """Move the branch to a node (``None``: to before its first), if ``expected_head`` still is its head, else ``Conflict``.

        Takes back what was appended last. Unlike ``rewind`` it opens no branch, and what another
        writer appends at the same time is never left behind. The nodes that it leaves stay; a branch
        at ``expected_head``, created first, leads to them.
        """
        found, _ = await self._run("move_branch", object_to_json({"to": to, "expected_head": expected_head}))
        return Branch(found)

    async def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints."""
        found, _ = await self._run("checkpoints", b"{}")
        return [Checkpoint(one) for one in found["checkpoints"]]

    async def checkpoint(self, name: str, *, move: bool = False) -> Checkpoint:
        """Set a checkpoint to the head of the branch.

        An existing checkpoint of this name is moved only with ``move``, else ``Conflict``.
        """
        found, _ = await self._run("set_checkpoint", object_to_json({"name": name, "move": move}))
        return Checkpoint(found)

    async def delete_checkpoint(self, name: str) -> None:
        """Delete a checkpoint's name; what it points to stays."""
        await self._run("delete_checkpoint", object_to_json({"name": name}))

    async def restore(self, checkpoint: str) -> Branch:
        """Go back to a checkpoint: creates a branch that ends there and makes it active."""
        found, _ = await self._run("restore_checkpoint", object_to_json({"name": checkpoint}))
        return Branch(found)

    async def pins(self) -> list[str]:
        """Return the ids of the pinned nodes of the branch."""
        found, _ = await self._run("list_pins", b"{}")
        return _pinned(found)

    async def pin(self, message: str | None = None, *, node: str | None = None) -> list[str]:
        """Pin a message or a node: its round is sent whole in every call. Return the pinned nodes.

        What is pinned already stays so. Raises ``NotFound`` if there is no such message or node.
        """
        found, _ = await self._run("pin", object_to_json({"message": message, "node": node}))
        return _pinned(found)

    async def unpin(self, message: str | None = None, *, node: str | None = None) -> list[str]:
        """Unpin a message or a node, and return the nodes that are still pinned. What is not pinned stays so."""
        found, _ = await self._run("unpin", object_to_json({"message": message, "node": node}))
        return _pinned(found)

    async def rules(self) -> list[Rule]:
        """Return the standing rules of the branch, oldest first.

        These are what the user asked to hold from then on and has not taken back: they are quoted
        to the model once their messages are out of view.
        """
        found, _ = await self._run("list_rules", b"{}")
        return [Rule(one) for one in found["rules"]]

    async def drop_rule(self, rule: Rule | str) -> bool:
        """Drop a rule, or the one with this id: it is not quoted any more. Return whether it was in force.

        Its message stays. Raises ``NotFound`` if the branch has no such rule.
        """
        dropped, _ = await self._run("drop_rule", object_to_json({"id": _rule_id(rule)}))
        return bool(dropped)

    async def restore_rule(self, rule: Rule | str) -> bool:
        """Put a dropped rule into force again. Return whether it was dropped."""
        restored, _ = await self._run("restore_rule", object_to_json({"id": _rule_id(rule)}))
        return bool(restored)

    async def log(
        self, *, limit: int = 50, after: str | None = None, usage: bool = False, state: bool = False
    ) -> Log:
        """Return the tree: messages of all branches, newest first. Print it to see it.

        ``usage``: include what the calls of each message used and cost. ``state``: include entries
        that only change state.
        """
        members = {"limit": limit, "after": after, "usage": usage, "state": state}
        found, _ = await self._run("log", object_to_json(members))
        return Log(found)

    async def compactions(self) -> list[Compaction]:
        """Return the compactions in effect on the branch, oldest first."""
        found, _ = await self._run("compactions", b"{}")
        return [Compaction(one) for one in found["compactions"]]

    async def search(
        self,
        query: str,
        *,
        at: str | None = None,
        kind: str | None = None,
        all_words: bool = False,
        hidden: bool = False,
        around: int = 0,
        limit: int = 20,
        after: str | None = None,
    ) -> SearchPage:
        """Search this conversation; a handle on a branch searches that branch. See ``AsyncEngine.search``.

        ``at``: search only this node and the nodes before it.
        """
        members = {
            "query": query,
            "at": at,
            "kind": kind,
            "all": all_words,
            "hidden": hidden,
            "around": around,
            "limit": limit,
            "after": after,
        }
        found, _ = await self._run("search", object_to_json(members))
        return SearchPage(found)

    async def calls(self, *, page: int = 100) -> AsyncIterator[Call]:
        """Iterate over the calls of this conversation, newest first."""
        after: str | None = None
        while True:
            found, _ = await self._run("list_calls", object_to_json({"limit": page, "after": after}))
            for one in found["calls"]:
                yield Call(one)
            after = found["next"]
            if after is None:
                return

    async def usage(self, *by: str) -> Usage:
        """Return what the calls of this conversation used and cost, in groups: see ``AsyncEngine.usage``."""
        found, _ = await self._run("usage", object_to_json({"by": list(by)}))
        return Usage(found)

    async def export(self, format: str) -> str:
        """Export the branch in another format: a provider's request, or another program's session log."""
        _, (text,) = await self._run("export", object_to_json({"format": format}))
        return text.decode()

    async def export_lines(self) -> bytes:
        """Export all of the conversation as lines of JSON, an exact copy when imported.

        Import it with ``AsyncEngine.import_lines``.
        """
        _, (lines,) = await self._run("export_lines", b"{}")
        return lines

    def __repr__(self) -> str:
        branch = f", branch={self.branch!r}" if self.branch is not None else ""
        return f"{type(self).__name__}({self.id!r}{branch}, engine={self.engine!r})"

    async def _run(
        self, operation: str, document: bytes, attachment: bytes | None = None
    ) -> tuple[Any, list[bytes]]:
        place = (self.engine._owner, self.id, self.branch)
        return await self.engine._border.run(operation, place, document, attachment)


def _compiled(reply: tuple[Any, list[bytes]]) -> Compiled:
    envelope, (payload, report) = reply
    return Compiled(envelope, payload, report)


def _call_id(call: Compiled | str | None) -> str | None:
    return call.id if isinstance(call, Compiled) else call


def _listed(values: Iterable[Json] | None) -> list[Json] | None:
    return None if values is None else list(values)


def _pinned(found: Any) -> list[str]:
    return [one["node"] for one in found["pins"]]


def _rule_id(rule: Rule | str) -> str:
    return rule.id if isinstance(rule, Rule) else rule
