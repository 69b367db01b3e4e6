"""A session for the OpenAI Agents SDK. It needs the package's extra `openai-agents`.

>>> import contexture, contexture.openai_agents
>>> engine = contexture.AsyncEngine("memory:")
>>> session = contexture.openai_agents.Session(engine, "ada")

``Runner.run(agent, "Hello", session=session)`` then keeps the history in the conversation ``agents:``
and the session's id. Each item is stored as it came, beside what is read of it, so the history can be
searched, branched and compiled like any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agents.memory import SessionSettings

from contexture._errors import Conflict, InvalidInput, NotFound
from contexture._json import to_json
from contexture._originals import (
    clean_text,
    cut_batches,
    encode_item,
    encode_message,
    join_batch,
    read_original,
    read_originals,
)

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

    from contexture._async_engine import AsyncConversation, AsyncEngine
    from contexture._documents import Item

__all__ = ["Session"]

_KIND = "data-openai-agents"
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


class Session:
    """A session of the OpenAI Agents SDK in an engine. Tasks, and several agents at once, may share it.

    ``pop_item`` and ``clear_session`` move the branch back in one step: what another agent adds at the
    same time stays, and what is taken back stays in the conversation, on a branch named ``removed-…``.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        session_id: str,
        *,
        resource: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        """Describe a session; nothing is opened.

        ``resource``: what the conversation is about, such as an end user. ``session_settings``: the
        SDK's; its ``limit`` is how many items ``get_items`` returns if it is not told.
        """
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings or SessionSettings()
        self._engine = engine
        self._resource = resource
        self._reachable: set[str] = set()
        """Nodes that a branch of those named ``removed-…`` leads to, so far as this object knows."""

    @property
    def conversation(self) -> AsyncConversation:
        """The conversation: to be searched, branched or compiled. The first ``add_items`` creates it."""
        from contexture._async_engine import AsyncConversation

        return AsyncConversation(self._engine, _conversation_id(self.session_id))

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, oldest first; with ``limit`` the newest of them, with a negative one all."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        try:
            if limit is None or limit < 0:
                return [item async for item in read_originals(self.conversation, _KIND)]
            if limit == 0:
                return []
            return [item for _, item in await self._newest(limit)][-limit:]
        except NotFound:
            return []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items: up to 1,000, of 32 MiB, all or none. What agents add at once stays together, in the order in which it is stored.

        Raises ``InvalidInput`` for an item over 16 MiB.
        """
        for batch in cut_batches(items, _readable):
            try:
                await self._append(join_batch(encoded for _, encoded in batch))
            except (InvalidInput, Conflict):
                # An item of a shape that is not known yet, or that has the id of another, is kept all the same.
                await self._append(join_batch(await _accepted([item for item, _ in batch])))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take back the newest item and return it; ``None`` if there is none."""
        while True:
            try:
                newest = await self._newest(2)
                if not newest:
                    return None
                nodes, item = newest[-1]
                await self._take_back(nodes[0].parent, nodes[-1].id)
                return item
            except NotFound:
                return None
            except Conflict:
                # Another agent has added or taken back something meanwhile.
                continue

    async def clear_session(self) -> None:
        """Take back all items."""
        while True:
            try:
                last = [item async for item in self.conversation.items(last=1)]
                if last:
                    await self._take_back(None, last[0].id)
                return
            except NotFound:
                return
            except Conflict:
                continue

    def __repr__(self) -> str:
        return f"Session({self.session_id!r}, engine={self._engine!r})"

    async def _append(self, messages: bytes) -> None:
        try:
            await self.conversation.append(messages)
        except NotFound:
            names = {"session_id": self.session_id}
            await self._engine.open(self.conversation.id, resource=self._resource, metadata=names)
            await self.conversation.append(messages)

    async def _newest(self, count: int) -> list[tuple[list[Item], TResponseInputItem]]:
        """The newest items, at least ``count`` of them if there are so many, each with the nodes that it is stored in.

        What was appended to the conversation by others belongs to the item before which it stands; at the end, to the last.
        """
        last = 4 * count
        while True:
            nodes = [item async for item in self.conversation.items(last=last)]
            found: list[tuple[list[Item], Any]] = []
            begun: list[Item] = []
            for node in nodes:
                begun.append(node)
                original = read_original(node, _KIND)
                if original is not None:
                    found.append((begun, original))
                    begun = []
            if found:
                found[-1][0].extend(begun)
            # The first may lack nodes that were not read.
            is_whole = len(nodes) < last or nodes[0].depth == 1
            if is_whole or len(found) > count:
                return found if is_whole else found[1:]
            last *= 2

    async def _take_back(self, to: str | None, head: str) -> None:
        chat = self.conversation
        if head not in self._reachable:
            path = [item.id async for item in chat.items(at=head, last=100)]
            try:
                await chat.create_branch(f"removed-{head[:16]}", at=head)
            except Conflict:
                # Somebody is taking back the same.
                pass
            # The items before it are reachable too: taking those back next needs no other branch.
            self._reachable.update(path)
        await chat.move_branch(to, expected_head=head)


def _readable(item: Any, *, with_id: bool = True) -> list[bytes]:
    """What is appended for an item: what is read of it, whose id may be that of another item, and the item itself."""
    kind = item.get("type", "message")
    if kind == "message" and item.get("role") in _ROLES:
        return [encode_message(_ROLES[item["role"]], _text(item.get("content")), _KIND, item)]
    original = encode_item(_KIND, item)
    if kind in ("function_call", "function_call_output", "reasoning"):
        try:
            read = {name: member for name, member in item.items() if with_id or name != "id"}
            return [to_json(_clean(read), "item"), original]
        except InvalidInput:
            # No text in it can be searched.
            pass
    return [original]


async def _accepted(items: Sequence[Any]) -> list[list[bytes]]:
    """What is appended for items some of which were refused: of those, only the item itself."""
    # Tried elsewhere, as the items are to be stored in one append, which stores all of them or none.
    from contexture._async_engine import AsyncEngine

    accepted: list[list[bytes]] = []
    async with AsyncEngine("memory:") as engine:
        chat = await engine.open("trial")
        for item in items:
            readable = _readable(item, with_id=False)
            try:
                await chat.append(join_batch([readable]))
                accepted.append(readable)
            except (InvalidInput, Conflict):
                accepted.append([encode_item(_KIND, item)])
    return accepted


def _clean(value: Any) -> Any:
    """A copy of plain data in which UTF-8 can hold all texts."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_clean(name): _clean(member) for name, member in value.items()}
    return [_clean(member) for member in value] if isinstance(value, list) else value


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _conversation_id(session: str) -> str:
    plain = session.replace("-", "").replace("_", "").replace(".", "")
    if plain.isascii() and plain.isalnum() and len(session) <= 100:
        return f"agents:{session}"
    return f"agents:sha256:{hashlib.sha256(session.encode()).hexdigest()}"
