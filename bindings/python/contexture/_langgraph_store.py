"""A store for LangGraph's long-term memory: `contexture.langgraph.Store`.

The items of all namespaces are values of one conversation, ``lgs``, so that a read sees each write
before it. An item that has texts to search, or more than 256 KiB, also has a conversation of its
own: it holds the texts, is what a query searches, and is deleted with the item.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

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

_PATIENCE_SECONDS = 5.0
"""How long a put waits for an item of the same name that is being deleted."""

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
        for op in writes.values():
            if op.value is None:
                self._delete(op.namespace, op.key)
            else:
                self._put(op, op.value)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Async version of ``batch``."""
        return await asyncio.to_thread(self.batch, ops)

    def _get(self, namespace: Namespace, key: str) -> Item | None:
        try:
            value = self._items().values.get(_key(namespace, key))
        except NotFound:
            return None
        return None if value is None else _Stored(value).item(self._own(namespace, key))

    def _put(self, op: PutOp, value: Mapping[str, Any]) -> None:
        data = _to_json(value)
        own = self._own(op.namespace, op.key)
        items = self.engine.open(_ITEMS)
        while True:
            found = items.values.get(_key(op.namespace, op.key))
            before = _Stored(found) if found is not None else None
            now = _now()
            header: dict[str, Any] = {
                "namespace": op.namespace,
                "key": op.key,
                "created": before.header["created"] if before else now,
                "updated": now,
            }
            text = self._text(value, op.index)
            if text or len(data) > _INLINE_BYTES:
                try:
                    self._open(own, op)
                    if text:
                        # The newest text is the one that counts: a search that finds an older one finds nothing.
                        header["text"] = own.append(text).items[0]
                    if len(data) > _INLINE_BYTES:
                        header["blob"] = own.values.put_blob(data)
                except NotFound:
                    # Deleted meanwhile.
                    continue
            body = b"" if "blob" in header else data
            try:
                # What another writer stored or deleted meanwhile took the text or the blob with it, so all of it is done again.
                items.values.put(
                    _key(op.namespace, op.key), _to_json(header) + b"\n" + body, version=found.version if found else 0
                )
                return
            except Conflict:
                continue

    def _open(self, own: Conversation, op: PutOp) -> None:
        """Create an item's own conversation, once another writer that is just deleting it has done so."""
        names = {"namespace": list(op.namespace), "key": op.key}
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                self.engine.open(own.id, resource=_resource(op.namespace), metadata=names)
                return
            except Unavailable:
                if time.monotonic() > end:
                    raise
                time.sleep(0.005)

    def _delete(self, namespace: Namespace, key: str) -> None:
        items = self._items()
        while True:
            try:
                found = items.values.get(_key(namespace, key))
                if found is None:
                    return
                try:
                    # First what only the item leads to: a process that is killed in between has not deleted the item yet.
                    self.engine.delete(self._own(namespace, key).id)
                except NotFound:
                    pass
                items.values.delete(found.key, version=found.version)
                return
            except NotFound:
                return
            except Conflict:
                continue

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = [one for one in self._under(op.namespace_prefix)]
        ranked = self._rank(op.query, found) if op.query else [(None, one) for one in _newest_first(found)]
        hits: list[SearchItem] = []
        skipped = 0
        for score, stored in ranked:
            if len(hits) >= op.limit:
                break
            header = stored.header
            item = stored.item(self._own(stored.namespace, header["key"]))
            # A blob that is gone was deleted since.
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
        by_text = {stored.header["text"]: stored for stored in found if "text" in stored.header}
        scores: list[tuple[float, _Stored]] = []
        for resource in {_resource(stored.namespace): None for stored in by_text.values()}:
            after: str | None = None
            while True:
                page = self.engine.search(query, resource=resource, limit=100, after=after)
                scores += [(float(hit.score), by_text[hit.id]) for hit in page if hit.id in by_text]
                after = page.next
                if after is None:
                    break
        scores.sort(key=lambda one: (-one[0], one[1].namespace, one[1].header["key"]))
        return [*scores]

    def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        found = {stored.namespace for stored in self._under(())}
        matching = {
            namespace[: op.max_depth] for namespace in found if all(_meets(one, namespace) for one in conditions)
        }
        return sorted(matching)[op.offset : op.offset + op.limit]

    def _under(self, prefix: Namespace) -> Iterator[_Stored]:
        """The items of the namespaces that begin with these labels."""
        try:
            for value in self._items().values.items(_prefix(prefix)):
                stored = _Stored(value)
                if stored.namespace[: len(prefix)] == prefix:
                    yield stored
        except NotFound:
            # Nothing was ever stored.
            return

    def _items(self) -> Conversation:
        return Conversation(self.engine, _ITEMS)

    def _own(self, namespace: Namespace, key: str) -> Conversation:
        """The conversation that holds what only this item leads to."""
        return Conversation(self.engine, f"{_ITEMS}:{_hash(json.dumps([namespace, key]), 64)}")

    def _text(self, value: Mapping[str, Any], index: Any) -> str:
        if index is False:
            return ""
        paths = self._fields if index is None else index
        if paths is None or "$" in paths:
            return "\n".join(_texts(value))
        return "\n".join(text for path in paths for text in get_text_at_path(value, tokenize_path(path)))


class _Stored:
    """A stored item: a line of JSON about it, and behind that its value, unless that is a blob."""

    def __init__(self, value: Value) -> None:
        line, _, self._body = value.data.partition(b"\n")
        self.header: dict[str, Any] = json.loads(line)
        self.namespace: Namespace = tuple(self.header["namespace"])

    def item(self, own: Conversation) -> Item | None:
        """Return the item; ``None`` if its blob was deleted meanwhile."""
        header, data = self.header, self._body
        if "blob" in header:
            try:
                data = own.values.read_blob(header["blob"])
            except NotFound:
                return None
        times = {name: datetime.fromisoformat(header[name]) for name in ("created", "updated")}
        return Item(
            value=json.loads(data),
            key=header["key"],
            namespace=self.namespace,
            created_at=times["created"],
            updated_at=times["updated"],
        )


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
