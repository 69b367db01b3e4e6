"""A checkpointer and a store for LangGraph. They need the package's extra `langgraph`.

>>> import contexture, contexture.langgraph
>>> saver = contexture.langgraph.Saver(contexture.Engine("memory:"))
>>> store = contexture.langgraph.Store(saver.engine)

``graph.compile(checkpointer=saver, store=store)`` then keeps each thread in a conversation of the engine.
Checkpoints and pending writes are values beside its tree. Channel values over 4 KiB are blobs named
by their content, so those that do not change between steps are stored once; smaller ones are copied
into each checkpoint. A checkpoint is one write, so a process that is killed leaves it whole or not
at all; a small write before it claims its place in the thread.

Two runs that continue from the newest checkpoint of a thread at once do not fork it silently: the one whose next checkpoint comes
second ends with ``Conflict``. Continuing from a checkpoint that the config names is a fork on purpose.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from contexture._documents import Value
from contexture._engine import Conversation
from contexture._errors import Conflict, InvalidInput, NotFound
from contexture._langgraph_store import Store

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from contexture._engine import Engine
    from contexture._values import Values

__all__ = ["Saver", "Store"]

RESOURCE = "langgraph"
"""What the conversations of threads are about: by this they are listed."""

_INLINE_BYTES = 4096
"""Values up to this size are stored inline in the checkpoint's own value; larger ones are blobs."""
_RECORD_BYTES = 256 * 1024
"""Beyond this all values of a checkpoint are blobs: a value has at most 1 MiB."""
_HEADS = "lg/h/"
"""Keys of the heads: the checkpoint from which each namespace of a thread continues."""
_REMEMBERED = 10_000
"""Maximum number of checkpoints that are remembered as read as the newest."""
_CLAIM_SECONDS = 5.0
"""Time that a checkpoint may take from being claimed to being stored; after that its process counts as killed."""


class Saver(BaseCheckpointSaver[int]):
    """Keeps LangGraph's checkpoints in an engine. Threads and tasks may share it; its async methods use a thread each.

    A thread is the conversation ``lg:`` and its id. ``delete_for_runs`` looks through all threads. ``prune`` and
    ``delete_for_runs`` keep what a ``DeltaChannel`` of a checkpoint that stays is built from; the latter refuses if it would not.
    """

    def __init__(self, engine: Engine, *, serde: SerializerProtocol | None = None) -> None:
        """Describe a saver; nothing is opened. ``serde``: LangGraph's own by default."""
        super().__init__(serde=serde)
        self.engine = engine
        self._newest_read: OrderedDict[tuple[str, str, str | None], None] = OrderedDict()
        self._lock = threading.Lock()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint: the one that the config names, else the newest of its thread and namespace."""
        thread, namespace = _thread_and_namespace(config)
        id = get_checkpoint_id(config)
        values = self._thread(thread).values
        try:
            if id is not None:
                value = values.get(_checkpoint_key(namespace, id))
            else:
                value = next(iter(values.items(f"lg/c/{_hash(namespace)}/", page=1)), None)
        except NotFound:
            value = None
        record = _Record(value) if value is not None else None
        self._note_reading(thread, namespace, id, record.header["id"] if record else None)
        return None if record is None else self._load(thread, values, record)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Iterate over checkpoints, the newest of each thread and namespace first."""
        found = 0
        earliest = get_checkpoint_id(before) if before is not None else None
        for thread, values, value in self._select(config):
            record = _Record(value)
            id = record.header["id"]
            if config is not None and get_checkpoint_id(config) not in (None, id):
                continue
            if earliest is not None and id >= earliest:
                continue
            if limit is not None and found >= limit:
                return
            loaded = self._load(thread, values, record)
            if all(loaded.metadata.get(key) == wanted for key, wanted in (filter or {}).items()):
                found += 1
                yield loaded

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint. Values of channels that have not changed are those of its parent.

        Raises ``Conflict`` if the parent was read as the newest of the thread, and another run has continued from it since.
        """
        thread, namespace = _thread_and_namespace(config)
        parent = get_checkpoint_id(config)
        chat = self._open(thread)
        stored = chat.values.get(_checkpoint_key(namespace, parent)) if parent is not None else None
        old = _Record(stored) if stored is not None else None
        before: dict[str, list[Any]] = old.header["channels"] if old is not None else {}
        kept: dict[str, Any] = {**checkpoint}
        channel_values = kept.pop("channel_values")
        record = _Writer(chat.values)
        channels: dict[str, Any] = {}
        for channel, version in checkpoint["channel_versions"].items():
            unchanged = channel not in new_versions and channel in before and before[channel][0] == version
            if unchanged and old is not None:
                channels[channel] = [version, *record.adopt(old, before[channel][1:])]
            elif channel in channel_values:
                channels[channel] = [version, *record.add(*self.serde.dumps_typed(channel_values[channel]))]
        # A test, or a graph without versions, may give values of channels that have none.
        for channel in channel_values:
            if channel not in channels and channel in new_versions:
                typed = self.serde.dumps_typed(channel_values[channel])
                channels[channel] = [new_versions[channel], *record.add(*typed)]
        full = get_checkpoint_metadata(config, metadata)
        header = {
            "ns": namespace,
            "id": checkpoint["id"],
            "parent": parent,
            "run": full.get("run_id"),
            "delta": sorted(full.get("counters_since_delta_snapshot") or ()),
            "checkpoint": record.add(*self.serde.dumps_typed(kept)),
            "metadata": record.add(*self.serde.dumps_typed(full)),
            "channels": channels,
        }
        stored_as = record.finish(header)
        self._claim_head(chat.values, (thread, namespace, parent), checkpoint["id"])
        chat.values.put(_checkpoint_key(namespace, checkpoint["id"]), stored_as)
        return _config(thread, namespace, checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote, in one write. What it wrote before under the same index stays."""
        thread, namespace = _thread_and_namespace(config)
        values = self._open(thread).values
        key = f"{_writes_prefix(namespace, config['configurable']['checkpoint_id'])}{_hash(task_id)}"
        while True:
            stored = values.get(key)
            record = _Writer(values)
            entries: dict[int, Any] = {}
            if stored is not None:
                old = _Record(stored)
                entries = {
                    index: [index, channel, *record.adopt(old, place)]
                    for index, channel, *place in old.header["writes"]
                }
            for position, (channel, value) in enumerate(writes):
                index = WRITES_IDX_MAP.get(channel, position)
                if index < 0 or index not in entries:
                    entries[index] = [index, channel, *record.add(*self.serde.dumps_typed(value))]
            header = {"task": task_id, "path": task_path, "writes": list(entries.values())}
            try:
                values.put(key, record.finish(header), version=stored.version if stored is not None else None)
                return
            except Conflict:
                # Another process wrote for the same task meanwhile: add to what it wrote.
                continue

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with all its checkpoints. One that is not there is no error."""
        try:
            self.engine.delete(_conversation_id(thread_id))
        except NotFound:
            pass

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, with their writes, in all threads.

        Raises ``InvalidInput``, before anything is deleted in a thread, if a checkpoint that stays is built from one of them.
        """
        runs = set(run_ids)
        for thread in self._threads():
            values = self._thread(thread).values
            records = [_Record(value) for value in values.items("lg/c/")]
            gone = {record.key for record in records if record.header["run"] in runs}
            needed = _needed(records, [record for record in records if record.key not in gone])
            if gone & needed:
                detail = f"thread {thread!r} has later checkpoints whose delta channels are built from those of the runs"
                raise InvalidInput(detail, code="bad_body")
            self._delete(values, [record for record in records if record.key in gone])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread to another one."""
        source = self._thread(source_thread_id).values
        target = self._open(target_thread_id).values
        try:
            for value in source.items("lg/"):
                if not value.key.startswith(_HEADS):
                    for blob in _Record(value).blobs():
                        target.put_blob(source.read_blob(blob))
                target.put(value.key, value.data)
        except NotFound:
            # A thread without checkpoints has no conversation.
            return

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads (``delete``), or all but the newest of each namespace (``keep_latest``).

        What a delta channel of the newest is built from is kept too.
        """
        if strategy not in ("keep_latest", "delete"):
            raise InvalidInput(f"`strategy`: expected keep_latest or delete, found {strategy!r}", code="bad_body")
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            values = self._thread(thread).values
            try:
                records = [_Record(value) for value in values.items("lg/c/")]
            except NotFound:
                continue
            newest: dict[str, _Record] = {}
            for record in records:
                newest.setdefault(record.header["ns"], record)
            kept = _needed(records, newest.values()) | {record.key for record in newest.values()}
            self._delete(values, [record for record in records if record.key not in kept])

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async version of ``get_tuple``."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async version of ``list``."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Async version of ``put``."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Async version of ``put_writes``."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Async version of ``delete_thread``."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Async version of ``delete_for_runs``."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Async version of ``copy_thread``."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Async version of ``prune``."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    def _note_reading(self, thread: str, namespace: str, named: str | None, found: str | None) -> None:
        """Remember whether a run that continues from a checkpoint takes it for the newest."""
        if named is None:
            self._remember_newest((thread, namespace, found))
        else:
            with self._lock:
                self._newest_read.pop((thread, namespace, named), None)

    def _remember_newest(self, place: tuple[str, str, str | None]) -> None:
        with self._lock:
            self._newest_read.pop(place, None)
            self._newest_read[place] = None
            if len(self._newest_read) > _REMEMBERED:
                self._newest_read.popitem(last=False)

    def _claim_head(self, values: Values, place: tuple[str, str, str | None], id: str) -> None:
        """Make a checkpoint the head of its thread, before it is stored: until then nobody can continue from it."""
        thread, namespace, parent = place
        key = f"{_HEADS}{_hash(namespace)}"
        with self._lock:
            is_newest = place in self._newest_read
        while True:
            head = values.get(key)
            rival = head.data.decode() if head is not None and is_newest else None
            if rival not in (None, parent, id) and _is_stored_soon(values, _checkpoint_key(namespace, rival)):
                raise Conflict(
                    f"thread {thread!r}: another run continued from checkpoint {parent} meanwhile; run again from the newest",
                    code="head_moved",
                )
            try:
                values.put(key, id.encode(), version=head.version if head is not None else 0)
                break
            except Conflict:
                continue
        if is_newest:
            self._remember_newest((thread, namespace, id))

    def _thread(self, thread: str) -> Conversation:
        return Conversation(self.engine, _conversation_id(thread))

    def _open(self, thread: str) -> Conversation:
        return self.engine.open(_conversation_id(thread), resource=RESOURCE, metadata={"thread_id": thread})

    def _threads(self) -> Iterator[str]:
        for one in self.engine.conversations(resource=RESOURCE):
            yield one.metadata["thread_id"]

    def _select(self, config: RunnableConfig | None) -> Iterator[tuple[str, Values, Value]]:
        """The checkpoints of a config's thread and namespace, or of all."""
        configurable = config["configurable"] if config is not None else {}
        threads = [configurable["thread_id"]] if "thread_id" in configurable else self._threads()
        namespace = configurable.get("checkpoint_ns")
        prefix = "lg/c/" if namespace is None else f"lg/c/{_hash(namespace)}/"
        for thread in threads:
            values = self._thread(thread).values
            try:
                for value in values.items(prefix, page=100):
                    yield thread, values, value
            except NotFound:
                continue

    def _load(self, thread: str, values: Values, record: _Record) -> CheckpointTuple:
        header = record.header
        namespace, id, parent = header["ns"], header["id"], header["parent"]
        checkpoint: Checkpoint = self.serde.loads_typed(record.read(values, header["checkpoint"]))
        checkpoint["channel_values"] = {
            channel: self.serde.loads_typed(record.read(values, place))
            for channel, (_, *place) in header["channels"].items()
        }
        writes: list[tuple[tuple[Any, ...], str, str, Any]] = []
        for stored in values.items(_writes_prefix(namespace, id)):
            task = _Record(stored)
            name, path = task.header["task"], task.header["path"]
            for index, channel, *place in task.header["writes"]:
                written = self.serde.loads_typed(task.read(values, place))
                writes.append((writes_sort_key(path, name, index), name, channel, written))
        writes.sort(key=lambda write: write[0])
        return CheckpointTuple(
            config=_config(thread, namespace, id),
            checkpoint=checkpoint,
            metadata=self.serde.loads_typed(record.read(values, header["metadata"])),
            parent_config=_config(thread, namespace, parent) if parent else None,
            pending_writes=[(task, channel, written) for _, task, channel, written in writes],
        )

    def _delete(self, values: Values, records: Iterable[_Record]) -> None:
        for record in records:
            # The checkpoint first: without it, nobody looks for its writes.
            values.delete(record.key)
            for write in [*values.items(_writes_prefix(record.header["ns"], record.header["id"]))]:
                values.delete(write.key)


class _Record:
    """A stored value: a line of JSON, and behind it the bytes that it points to."""

    def __init__(self, value: Value) -> None:
        line, _, self._body = value.data.partition(b"\n")
        self.key = value.key
        self.header: dict[str, Any] = json.loads(line)

    def read(self, values: Values, place: Sequence[Any]) -> tuple[str, bytes]:
        """Return type and bytes of what is stored at a place: `[type, start, length]` here, or `[type, blob]`."""
        kind, *where = place
        if len(where) == 1:
            return kind, values.read_blob(where[0])
        start, length = where
        return kind, self._body[start : start + length]

    def blobs(self) -> Iterator[str]:
        """Iterate over the blobs that it points to."""
        header = self.header
        places = [header[name] for name in ("checkpoint", "metadata") if name in header]
        places += [place for _, *place in header.get("channels", {}).values()]
        places += [place for _, _, *place in header.get("writes", ())]
        return (place[1] for place in places if len(place) == 2)


class _Writer:
    """Makes a stored value: small bytes stand in it, large ones become blobs."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._body = bytearray()

    def add(self, kind: str, data: bytes) -> list[Any]:
        """Add bytes and return their place."""
        if len(data) > _INLINE_BYTES or len(self._body) > _RECORD_BYTES:
            return [kind, self._values.put_blob(data)]
        start = len(self._body)
        self._body += data
        return [kind, start, len(data)]

    def adopt(self, record: _Record, place: Sequence[Any]) -> list[Any]:
        """Add what another value of the conversation has at a place. A blob is not read for it."""
        if len(place) == 2:
            return list(place)
        return self.add(*record.read(self._values, place))

    def finish(self, header: dict[str, Any]) -> bytes:
        """Return the value with this header."""
        return json.dumps(header, separators=(",", ":")).encode() + b"\n" + bytes(self._body)


def _needed(records: Iterable[_Record], kept: Iterable[_Record]) -> set[str]:
    """The keys of checkpoints from which delta channels of others are built.

    Such a channel has no value of its own between two snapshots: it is the nearest ancestor's value, and the writes since.
    """
    by_id = {(record.header["ns"], record.header["id"]): record for record in records}
    needed: set[str] = set()
    for record in kept:
        missing = {channel for channel in record.header["delta"] if channel not in record.header["channels"]}
        while missing and (ancestor := by_id.get((record.header["ns"], record.header["parent"]))):
            needed.add(ancestor.key)
            missing -= set(ancestor.header["channels"])
            record = ancestor
    return needed


def _thread_and_namespace(config: RunnableConfig) -> tuple[str, str]:
    configurable = config["configurable"]
    return configurable["thread_id"], configurable.get("checkpoint_ns", "")


def _config(thread: str, namespace: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": id}}


def _conversation_id(thread: str) -> str:
    plain = thread.replace("-", "").replace("_", "").replace(".", "")
    if plain.isascii() and plain.isalnum() and len(thread) <= 100:
        return f"lg:{thread}"
    return f"lg:sha256:{hashlib.sha256(thread.encode()).hexdigest()}"


def _is_stored_soon(values: Values, key: str) -> bool:
    """Whether a checkpoint that was claimed is stored within the time it has for that."""
    until = time.monotonic() + _CLAIM_SECONDS
    while values.get(key) is None:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _hash(text: str) -> str:
    """A short name for a text that may be too long, or have any character, for a key."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _checkpoint_key(namespace: str, id: str) -> str:
    # Keys are listed in ascending order, and the newest checkpoint, which has the greatest id, is to be first: so each byte is
    # replaced by its complement, and the end is greater than any.
    newest_first = bytes(255 - byte for byte in id.encode()).hex() + "~"
    return f"lg/c/{_hash(namespace)}/{newest_first}"


def _writes_prefix(namespace: str, id: str) -> str:
    return f"lg/w/{_hash(namespace)}/{_hash(id)}/"
