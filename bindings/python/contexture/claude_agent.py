"""A session store for the Claude Agent SDK. It needs the package's extra `claude-agent`.

>>> import contexture, contexture.claude_agent
>>> store = contexture.claude_agent.SessionStore(contexture.AsyncEngine("memory:"))

``ClaudeAgentOptions(session_store=store)`` then mirrors each transcript into a conversation, from which
the SDK resumes it on any machine. Each line of a transcript is a message: its texts, which can be
searched, and the line as it came.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import fold_session_summary

from contexture._errors import Conflict, NotFound
from contexture._json import to_json
from contexture._originals import cut_batches, encode_message, join_batch, read_original, read_originals

if TYPE_CHECKING:
    from claude_agent_sdk.types import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

    from contexture._async_engine import AsyncConversation, AsyncEngine
    from contexture._documents import ConversationInfo, Item

__all__ = ["SessionStore"]

_KIND = "data-claude-agent"
_ITEMS = 2
"""Items that an entry is stored as: its texts, or what stands for none, and the entry."""
_SUMMARY = "claude/summary"
"""The value that has the summary of a session, and the node up to which it was made."""


class SessionStore:
    """Keeps transcripts of the Claude Agent SDK in an engine. Tasks and processes may share it.

    A transcript is a conversation: its ``resource`` is ``claude:`` and the project's key, and its
    metadata name project, session and subpath. An entry that has a ``uuid`` is stored once; if it was
    changed, ``load`` returns it as it was stored last.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        """Describe a store; nothing is opened."""
        self.engine = engine

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append entries to a transcript, 1,000 (of 32 MiB) in a transaction, and bring the summary of its session up to date.

        Raises ``InvalidInput`` for an entry over 16 MiB.
        """
        chat = self._chat(key)
        for batch in cut_batches(entries, lambda entry: [_message(entry)]):
            await self._append(chat, key, [entry for entry, _ in batch])
        if "subpath" not in key:
            try:
                await self._fold(chat, key)
            except Exception:
                # The entries are stored: the SDK would append them again. It reads the transcript of a
                # session whose summary is behind, and the next append makes up for it.
                pass

    async def _append(self, chat: AsyncConversation, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        # Ids of one append are unique; what has the same is the same.
        unique = {_entry_id(entry) or str(number): entry for number, entry in enumerate(entries)}
        stored = await self._store(chat, key, [(entry, _entry_id(entry)) for entry in unique.values()])
        if len(unique) == len(entries) and stored == _ITEMS * len(entries):
            return
        # Some were stored before: sent again after a failure that was none, or changed back to what they were.
        last: dict[Any, Any] = {entry["uuid"]: entry for entry in entries if "uuid" in entry}
        versions: dict[Any, list[Any]] = {uuid: [] for uuid in last}
        async for entry in read_originals(chat, _KIND):
            if entry.get("uuid") in versions:
                versions[entry["uuid"]].append(entry)
        back = [
            # Without any version here, the branch was moved back meanwhile.
            (entry, _entry_id(entry, len(versions[uuid]) or -1))
            for uuid, entry in last.items()
            if not versions[uuid] or _canonical(versions[uuid][-1]) != _canonical(entry)
        ]
        if back:
            await self._store(chat, key, back)

    async def _store(self, chat: AsyncConversation, key: SessionKey, entries: Sequence[tuple[Any, str | None]]) -> int:
        """Append entries by their ids, and return how many items that made."""
        messages = join_batch([[_message(entry, id) for entry, id in entries]])
        try:
            saved = await chat.append(messages)
        except NotFound:
            await self.engine.open(chat.id, resource=_resource(key), metadata={**key})
            saved = await chat.append(messages)
        return len(saved.items)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries of a transcript; ``None`` if there is none."""
        entries: dict[Any, Any] = {}
        try:
            async for entry in read_originals(self._chat(key), _KIND):
                # A changed entry takes the place of the one that it was.
                entries[entry.get("uuid") or len(entries)] = entry
        except NotFound:
            return None
        return [*entries.values()] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project, without those of their sub-agents."""
        return [
            {"session_id": one.metadata["session_id"], "mtime": _milliseconds(one)}
            for one in await self._sessions(project_key)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of the sessions of a project. One that is behind its transcript has the ``mtime`` 0."""
        summaries: list[SessionSummaryEntry] = []
        for one in await self._sessions(project_key):
            stored = await self._chat_of(one).values.get(_SUMMARY)
            if stored is not None:
                folded = json.loads(stored.data)
                # The SDK compares it with that of `list_sessions`, and reads the transcript if it is older.
                is_current = folded["items"] == one.items
                summary: SessionSummaryEntry = folded["summary"]
                summary["mtime"] = _milliseconds(one) if is_current else 0
                summaries.append(summary)
        return summaries

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript; that of a session with those of its sub-agents. One that is not there is no error."""
        if "subpath" not in key:
            # First, so that a process that is killed in between leaves nothing that no session leads to.
            for one in await self._transcripts(_resource({**key, "subpath": ""})):
                await self._delete(one.id)
        await self._delete(self._chat(key).id)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session: the transcripts of its sub-agents."""
        resource = _resource({"project_key": key["project_key"], "session_id": key["session_id"], "subpath": ""})
        return [one.metadata["subpath"] for one in await self._transcripts(resource)]

    def _chat(self, key: SessionKey) -> AsyncConversation:
        from contexture._async_engine import AsyncConversation

        return AsyncConversation(self.engine, _conversation_id(key))

    async def _fold(self, chat: AsyncConversation, key: SessionKey) -> None:
        """Bring a session's summary up to date: from the node up to which it was made to the newest."""
        while True:
            stored = await chat.values.get(_SUMMARY)
            folded = json.loads(stored.data) if stored is not None else {"summary": None, "head": None}
            new = await _items_after(chat, folded["head"])
            if not new:
                return
            if new[0].parent != folded["head"]:
                # That node is on another branch now.
                folded["summary"] = None
            entries = [entry for entry in (read_original(item, _KIND) for item in new) if entry is not None]
            summary = fold_session_summary(folded["summary"], key, entries)
            made = to_json({"summary": summary, "head": new[-1].id, "items": new[-1].depth})
            try:
                await chat.values.put(_SUMMARY, made, version=stored.version if stored is not None else 0)
                return
            except Conflict:
                # Another process has appended meanwhile: fold into what it wrote.
                continue

    async def _sessions(self, project_key: str) -> list[ConversationInfo]:
        return await self._transcripts(_resource({"project_key": project_key, "session_id": ""}))

    async def _transcripts(self, resource: str) -> list[ConversationInfo]:
        # One without items was opened by a process that was killed before it appended.
        return [one async for one in self.engine.conversations(resource=resource) if one.items and _is_transcript(one)]

    def _chat_of(self, transcript: ConversationInfo) -> AsyncConversation:
        from contexture._async_engine import AsyncConversation

        return AsyncConversation(self.engine, transcript.id)

    async def _delete(self, conversation: str) -> None:
        try:
            await self.engine.delete(conversation)
        except NotFound:
            pass


async def _items_after(chat: AsyncConversation, head: str | None) -> list[Item]:
    """The items of a branch behind a node; all of them if it is not on the branch."""
    last = 64
    while head is not None:
        items = [item async for item in chat.items(last=last)]
        for number in range(len(items) - 1, -1, -1):
            if items[number].id == head:
                return items[number + 1 :]
        if len(items) < last:
            return items
        last *= 4
    return [item async for item in chat.items(page=500)]


def _message(entry: Any, id: str | None = None) -> bytes:
    role = entry["type"] if entry["type"] in ("user", "assistant") else "system"
    return encode_message(role, _text(entry), _KIND, entry, id=id)


def _entry_id(entry: Any, versions: int = 0) -> str | None:
    """The id of an entry that has a ``uuid``, by its content and how many versions came before: what has a stored id is skipped."""
    if "uuid" not in entry:
        return None
    return _hash(_canonical(entry) if versions == 0 else json.dumps([versions, _canonical(entry)]))


def _canonical(entry: Any) -> str:
    return json.dumps(entry, sort_keys=True)


def _text(entry: Any) -> str:
    content = entry["message"].get("content") if isinstance(entry.get("message"), dict) else None
    return "\n".join(_texts(content))


def _texts(content: Any) -> list[str]:
    """The texts of an Anthropic message's content, outputs of tools included."""
    if isinstance(content, str):
        return [content]
    texts: list[str] = []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict):
            texts += [block["text"]] if isinstance(block.get("text"), str) else _texts(block.get("content"))
    return texts


def _milliseconds(info: ConversationInfo) -> int:
    return round(datetime.fromisoformat(info.updated.replace("Z", "+00:00")).timestamp() * 1000)


def _conversation_id(key: SessionKey) -> str:
    return f"claude:{_hash(json.dumps([key['project_key'], key['session_id'], key.get('subpath')]))}"


def _is_transcript(one: ConversationInfo) -> bool:
    """Whether a conversation is one of these; others may be about the same resource."""
    names: Any = one.metadata
    return all(isinstance(names.get(name), str) for name in ("project_key", "session_id")) and one.id == _conversation_id(names)


def _resource(key: SessionKey) -> str:
    """What the conversation of a transcript is about: its project, or for a sub-agent's its session."""
    if "subpath" in key:
        return _conversation_id({"project_key": key["project_key"], "session_id": key["session_id"]})
    project = key["project_key"]
    return f"claude:{project}" if len(project.encode()) <= 200 else f"claude:sha256:{_hash(project)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
