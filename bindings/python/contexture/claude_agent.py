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
from datetime import datetime
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import fold_session_summary

from contexture._errors import Conflict, NotFound
from contexture._json import to_json
from contexture._originals import BATCH, message_with_original, read_originals

if TYPE_CHECKING:
    from claude_agent_sdk.types import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

    from contexture._async_engine import AsyncConversation, AsyncEngine
    from contexture._documents import ConversationInfo

__all__ = ["SessionStore"]

_KIND = "data-claude-agent"
_SUMMARY = "claude/summary"


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
        """Append entries to a transcript, 1,000 in a transaction, and bring the summary of its session up to date."""
        for start in range(0, len(entries), BATCH):
            await self._append(key, entries[start : start + BATCH])

    async def _append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        chat = self._chat(key)
        messages = [_message(entry) for entry in entries]
        # Ids of one append are unique; what has the same is the same.
        messages = [*{message.get("id", number): message for number, message in enumerate(messages)}.values()]
        try:
            await chat.append(messages)
        except NotFound:
            await self.engine.open(chat.id, resource=_resource(key), metadata={**key})
            await chat.append(messages)
        if "subpath" not in key:
            await self._fold(chat, key, entries)

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
        """Return the summaries of the sessions of a project."""
        summaries: list[SessionSummaryEntry] = []
        for one in await self._sessions(project_key):
            session = one.metadata["session_id"]
            stored = await self._chat({"project_key": project_key, "session_id": session}).values.get(_SUMMARY)
            if stored is not None:
                summaries.append(json.loads(stored.data))
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

    async def _fold(self, chat: AsyncConversation, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        while True:
            stored = await chat.values.get(_SUMMARY)
            summary = fold_session_summary(json.loads(stored.data) if stored is not None else None, key, entries)
            # By the same clock as `list_sessions`, which tells the SDK by it whether a summary is of the last append.
            summary["mtime"] = _milliseconds(await chat.info())
            try:
                await chat.values.put(_SUMMARY, to_json(summary), version=stored.version if stored is not None else 0)
                return
            except Conflict:
                # Another process has appended meanwhile: fold into what it wrote.
                continue

    async def _sessions(self, project_key: str) -> list[ConversationInfo]:
        return await self._transcripts(_resource({"project_key": project_key, "session_id": ""}))

    async def _transcripts(self, resource: str) -> list[ConversationInfo]:
        # One without items was opened by a process that was killed before it appended.
        return [one async for one in self.engine.conversations(resource=resource) if one.items]

    async def _delete(self, conversation: str) -> None:
        try:
            await self.engine.delete(conversation)
        except NotFound:
            pass


def _message(entry: Any) -> dict[str, Any]:
    role = entry["type"] if entry["type"] in ("user", "assistant") else "system"
    content = entry["message"].get("content") if isinstance(entry.get("message"), dict) else None
    message = message_with_original(role, "\n".join(_texts(content)), _KIND, entry)
    if "uuid" in entry:
        # A message of this id that is stored already, and equal, is not stored again.
        message["id"] = _hash(json.dumps(entry, sort_keys=True))
    return message


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


def _resource(key: SessionKey) -> str:
    """What the conversation of a transcript is about: its project, or for a sub-agent's its session."""
    if "subpath" in key:
        return _conversation_id({"project_key": key["project_key"], "session_id": key["session_id"]})
    project = key["project_key"]
    return f"claude:{project}" if len(project.encode()) <= 200 else f"claude:sha256:{_hash(project)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
