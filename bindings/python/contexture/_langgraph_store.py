"""A store for LangGraph's long-term memory: `contexture.langgraph.Store`.

The items of all namespaces are values of one conversation, ``lgs``, so that a read sees each write
before it. An item that has texts to search, or more than 256 KiB, also has a conversation of its
own, which its value names and each put makes anew: it holds the texts, is what a query searches, and
is deleted when the value names it no more.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
)

from contexture._engine import Conversation
from contexture._errors import Conflict, InvalidInput, NotFound, Unavailable
from contexture._originals import clean_text

if TYPE_CHECKING:
    from contexture._documents import Value
    from contexture._engine import Engine

__all__ = ["Store"]

_ITEMS = "lgs"
"""The conversation whose values are the items."""
_INLINE_BYTES = 256 * 1024
"""Items up to this size are stored in their value; larger ones are blobs of their own conversation."""
_LABELS = 9
"""Labels of a namespace that stand in a key by a hash each; a longer namespace has one hash for the rest."""

_PAGE = 50
"""Values of one read: each has up to 256 KiB."""
_QUERY_BYTES = 4096
"""What the engine accepts as a query."""
_PATIENCE_SECONDS = 5.0
"""How long is waited for another writer that is just deleting the same conversation."""

Namespace = tuple[str, ...]


class Store(BaseStore):
    """Keeps LangGraph's long-term memory in an engine. Threads and tasks may share it; its async methods use a thread each.

    ``search`` with a ``query`` is a text search: it returns the items that have any of the query's
    words, best first, each with a ``score``; there are no embeddings. Without one, the items updated
    last come first. A query costs one search for each namespace under the prefix.
    """

    __slots__ = ("_fields", "engine")

    def __init__(self, engine: Engine, *, fields: Sequence[str] | None = None) -> None:
        """Describe a store; nothing is opened.

        ``fields``: paths of the texts that a query searches, as ``index`` of ``put`` has them
        (``"text"``, ``"tags[*]"``); by default all texts of an item.
        """
        if isinstance(fields, str):
            raise InvalidInput(f'`fields`: expected a list of paths, such as ["text"], found {fields!r}', code="bad_body")
        self.engine = engine
        self._fields = None if fields is None else list(fields)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: first those that read, then those that write. Of two writes of one item, the last counts."""
        results: list[Result] = []
        writes: dict[tuple[Namespace, str], PutOp] = {}
        for op in ops:
            if isinstance(op, PutOp):
                writes[op.namespace, op.key] = op
                results.append(None)
            elif isinstance(op, GetOp):
                results.append(self._get(op.namespace, op.key))
            elif isinstance(op, SearchOp):
                results.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._list_namespaces(op))
            else:
                detail = f"`ops`: expected operations of LangGraph's stores, found {type(op).__name__}"
                raise InvalidInput(detail, code="bad_body")
        # All of them before the first is written: none is if one cannot be.
        prepared = [self._prepare(op) for op in writes.values()]
        for item in prepared:
            if item.data is None:
                self._delete(item)
            else:
                self._put(item, item.data)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Async version of ``batch``."""
        return await asyncio.to_thread(self.batch, ops)

    def _get(self, namespace: Namespace, key: str) -> Item | None:
        version: int | None = None
        while True:
            try:
                value = self._items().values.get(_key(namespace, key))
            except NotFound:
                return None
            if value is None or value.version == version:
                return None
            item = self._read(_Stored(value))
            if item is not None:
                return item
            # Its blob is gone: it was deleted, or put anew, since the value was read.
            version = value.version

    def _prepare(self, op: PutOp) -> _Write:
        # The names too: the half of an emoji is no text either.
        _to_json([op.namespace, op.key])
        if op.value is None:
            return _Write(op.namespace, op.key, None, "")
        return _Write(op.namespace, op.key, _to_json(op.value), self._text(op.value, op.index))

    def _put(self, item: _Write, data: bytes) -> None:
        items = self.engine.open(_ITEMS)
        own, names = self._write_own(item, data)
        body = b"" if "blob" in names else data
        try:
            while True:
                found = items.values.get(item.stored_key)
                before = _Stored(found) if found is not None else None
                now = _now()
                created = before.header["created"] if before and not before.is_deleted else now
                header = {"namespace": item.namespace, "key": item.key, "created": created, "updated": now, **names}
                try:
                    items.values.put(
                        item.stored_key, _to_json(header) + b"\n" + body, version=found.version if found else 0
                    )
                    break
                except Conflict:
                    # Another writer was first; the own conversation is this put's alone, so only the value is written again.
                    continue
        except BaseException:
            self._remove(own)
            raise
        if before is not None:
            self._remove(before.own)

    def _write_own(self, item: _Write, data: bytes) -> tuple[str | None, dict[str, str]]:
        """Create the conversation of an item that needs one. Returns its id, and what the header says of it."""
        if not item.text and len(data) <= _INLINE_BYTES:
            return None, {}
        own = f"{_ITEMS}:{secrets.token_hex(16)}"
        names = {"own": own}
        metadata = {"namespace": list(item.namespace), "key": item.key}
        chat = self.engine.open(own, resource=_resource(item.namespace), metadata=metadata)
        try:
            if item.text:
                names["text"] = chat.append(item.text).items[0]
            if len(data) > _INLINE_BYTES:
                names["blob"] = chat.values.put_blob(data)
                # A blob is kept, and exported, while a value of its own conversation names it.
                chat.values.put("blob", names["blob"].encode())
        except BaseException:
            self._remove(own)
            raise
        return own, names

    def _delete(self, item: _Write) -> None:
        values = self._items().values
        while True:
            try:
                found = values.get(item.stored_key)
                if found is None:
                    return
                stored = _Stored(found)
                version = found.version
                if not stored.is_deleted and stored.own is not None:
                    # First the mark: who finds it, after a process that was killed here, can go on.
                    marked = {**stored.header, "deleted": True}
                    version = values.put(item.stored_key, _to_json(marked) + b"\n", version=version)
                self._remove(stored.own)
                values.delete(item.stored_key, version=version)
                return
            except NotFound:
                return
            except Conflict:
                continue

    def _remove(self, own: str | None) -> None:
        """Delete the conversation of an item, if it has one that is still there."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while own is not None:
            try:
                self.engine.delete(own)
                return
            except NotFound:
                return
            except Unavailable:
                # Another writer is just deleting it.
                if time.monotonic() > end:
                    raise
                time.sleep(0.005)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = [one for one in self._under(op.namespace_prefix)]
        ranked = self._rank(op.query, found) if op.query else [(None, one) for one in _newest_first(found)]
        hits: list[SearchItem] = []
        skipped = 0
        for score, stored in ranked:
            if len(hits) >= op.limit:
                break
            item = self._read(stored) or self._get(stored.namespace, stored.header["key"])
            # One that is gone was deleted since.
            if item is None or not _matches(item.value, op.filter or {}):
                continue
            if skipped < op.offset:
                skipped += 1
                continue
            hits.append(
                SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score=score)
            )
        return hits

    def _rank(self, query: str, found: list[_Stored]) -> list[tuple[float | None, _Stored]]:
        """Those of the items that have words of the query, best first."""
        words = _words(query)
        by_text = {stored.header["text"]: stored for stored in found if "text" in stored.header}
        scores: list[tuple[float, _Stored]] = []
        for resource in {_resource(stored.namespace): None for stored in by_text.values()}:
            after: str | None = None
            while True:
                page = self.engine.search(words, resource=resource, limit=100, after=after)
                scores += [(float(hit.score), by_text[hit.id]) for hit in page if hit.id in by_text]
                after = page.next
                if after is None:
                    break
        scores.sort(key=lambda one: (-one[0], one[1].namespace, one[1].header["key"]))
        return [*scores]

    def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        found = {stored.namespace for stored in self._under(_literal_prefix(conditions))}
        matching = {
            namespace[: op.max_depth] for namespace in found if all(_meets(one, namespace) for one in conditions)
        }
        return sorted(matching)[op.offset : op.offset + op.limit]

    def _under(self, prefix: Namespace) -> Iterator[_Stored]:
        """The items of the namespaces that begin with these labels."""
        try:
            for value in self._items().values.items(_prefix(prefix), page=_PAGE):
                stored = _Stored(value)
                if not stored.is_deleted and stored.namespace[: len(prefix)] == prefix:
                    yield stored
        except NotFound:
            # Nothing was ever stored.
            return

    def _items(self) -> Conversation:
        return Conversation(self.engine, _ITEMS)

    def _read(self, stored: _Stored) -> Item | None:
        """An item of a value; ``None`` if it is deleted, or its blob was meanwhile."""
        header, data = stored.header, stored.body
        if stored.is_deleted:
            return None
        if "blob" in header:
            try:
                data = Conversation(self.engine, header["own"]).values.read_blob(header["blob"])
            except NotFound:
                return None
        times = {name: datetime.fromisoformat(header[name]) for name in ("created", "updated")}
        return Item(
            value=json.loads(data),
            key=header["key"],
            namespace=stored.namespace,
            created_at=times["created"],
            updated_at=times["updated"],
        )

    def _text(self, value: Mapping[str, Any], index: Any) -> str:
        if index is False:
            return ""
        paths = self._fields if index is None else index
        if paths is None or "$" in paths:
            return "\n".join(_texts(value))
        return "\n".join(text for path in paths for text in get_text_at_path(value, tokenize_path(path)))


class _Write(NamedTuple):
    """A put, or a delete, of one item."""

    namespace: Namespace
    key: str
    data: bytes | None
    """The JSON of the value; ``None`` for a delete."""
    text: str
    """What a query searches."""

    @property
    def stored_key(self) -> str:
        """The key of the item's value."""
        return _key(self.namespace, self.key)


class _Stored:
    """A stored item: a line of JSON about it, and behind that its value, unless that is a blob."""

    def __init__(self, value: Value) -> None:
        line, _, self.body = value.data.partition(b"\n")
        self.header: dict[str, Any] = json.loads(line)
        self.namespace: Namespace = tuple(self.header["namespace"])
        self.own: str | None = self.header.get("own")
        """The conversation that holds what only this value leads to."""
        self.is_deleted: bool = self.header.get("deleted", False)


def _newest_first(found: list[_Stored]) -> list[_Stored]:
    found.sort(key=lambda stored: (stored.namespace, stored.header["key"]))
    found.sort(key=lambda stored: stored.header["updated"], reverse=True)
    return found


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def _to_json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"`value` cannot be written as JSON: {error}", code="bad_body") from error


def _texts(value: Any) -> Iterator[str]:
    """The texts and numbers in a value; names of members are no texts."""
    if isinstance(value, Mapping):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, (list, tuple)):
        for member in value:
            yield from _texts(member)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield str(value)


def _hash(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def _prefix(namespace: Namespace) -> str:
    """What the keys of a namespace and of those below it begin with. Labels may have any length and character, keys may not."""
    return "lg/s/" + "".join(f"{_hash(label, 16)}/" for label in namespace[:_LABELS])


def _key(namespace: Namespace, key: str) -> str:
    # The whole namespace once more, as short hashes of labels might be those of others, and only some of the labels stand there.
    return f"{_prefix(namespace)}{_hash(json.dumps([namespace, key]), 64)}"


def _resource(namespace: Namespace) -> str:
    return f"langgraph store {_hash(json.dumps(namespace), 32)}"


def _words(query: str) -> str:
    """The words of a query, as many as the engine accepts: what it would read as operators (``-word``, ``from:user``) are words here."""
    words = re.sub(r'[":*]|(?<!\w)-', " ", clean_text(query)).split()
    taken: list[str] = []
    size = 0
    for word in dict.fromkeys(words):
        length = len(word.encode()) + 1
        # A word that alone is too long is none.
        if size + length <= _QUERY_BYTES:
            size += length
            taken.append(word)
    return " ".join(taken)


def _literal_prefix(conditions: Sequence[MatchCondition]) -> Namespace:
    """The labels with which all namespaces begin that meet the conditions, so far as one says so."""
    longest: Namespace = ()
    for condition in conditions:
        if condition.match_type == "prefix":
            literal = tuple(itertools.takewhile(lambda label: label != "*", condition.path))
            longest = max(longest, literal, key=len)
    return longest


def _meets(condition: MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part))


def _matches(value: Any, wanted: Any) -> bool:
    """Whether a value is as a filter wants it: equal, member by member, or by operators (``{"$gt": 3}``)."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, operator, bound) for operator, bound in wanted.items())
        return isinstance(value, Mapping) and all(_matches(value.get(name), one) for name, one in wanted.items())
    if isinstance(wanted, (list, tuple)):
        same_kind = isinstance(value, (list, tuple)) and len(value) == len(wanted)
        return same_kind and all(_matches(one, other) for one, other in zip(value, wanted))
    return bool(value == wanted)


def _compares(value: Any, operator: str, bound: Any) -> bool:
    if operator == "$eq":
        return bool(value == bound)
    if operator == "$ne":
        return bool(value != bound)
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        detail = f"`filter`: expected $eq, $ne, $gt, $gte, $lt or $lte, found {operator!r}"
        raise InvalidInput(detail, code="bad_body")
    try:
        left, right = float(value), float(bound)
    except (TypeError, ValueError):
        # A member that is missing or no number is neither larger nor smaller.
        return False
    return {"$gt": left > right, "$gte": left >= right, "$lt": left < right, "$lte": left <= right}[operator]
