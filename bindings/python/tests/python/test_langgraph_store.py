"""LangGraph's store beside its own in memory: the same random calls, the same answers; and what only this one does."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import contexture
import pytest
from contexture.langgraph import Store

pytest.importorskip("langgraph")

from langgraph.config import get_store  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp  # noqa: E402
from langgraph.store.memory import InMemoryStore  # noqa: E402

NAMESPACES = [("users",), ("users", "ada"), ("users", "bob"), ("users", "ada", "facts"), ("docs", "v1"), ("docs", "v2", "é/ü")]
# Deeper than what keys have room for label by label.
DEEP = tuple(f"level {n}" for n in range(14))


@pytest.fixture
def store(engine: contexture.Engine) -> Iterator[Store]:
    yield Store(engine)


def _shown(item: Any) -> Any:
    return None if item is None else (item.namespace, item.key, item.value)


def _sorted(items: Any) -> Any:
    return sorted((_shown(item) for item in items), key=repr)


def test_random_calls_have_the_answers_of_the_store_in_memory(store: Store, soak: bool) -> None:
    seed = int(os.environ.get("CONTEXTURE_SEED", "24"))
    print(f"CONTEXTURE_SEED={seed}")
    some = random.Random(seed)
    reference = InMemoryStore()
    namespaces = [*NAMESPACES, DEEP, (*DEEP, "below")]
    for _ in range(2000 if soak else 40):
        namespace, key = some.choice(namespaces), some.choice(["a", "b", "with / slash", "k" * 300])
        prefix = namespace[: some.randrange(len(namespace) + 1)]
        wanted = some.choice(
            [None, {"n": some.randrange(4)}, {"n": {"$gte": 2}}, {"n": {"$lt": 3, "$ne": 1}}, {"in": {"deep": [1, 2]}}, {"no": None}]
        )
        call = some.choice(["put", "put", "put", "get", "delete", "search", "page", "list"])
        if call == "put":
            value = {"n": some.randrange(4), "text": some.choice(["tea", "coffee"]), "in": {"deep": [1, some.randrange(3)]}}
            for one in (store, reference):
                one.put(namespace, key, value)
        elif call == "delete":
            for one in (store, reference):
                one.delete(namespace, key)
        elif call == "get":
            assert _shown(store.get(namespace, key)) == _shown(reference.get(namespace, key))
        elif call == "search":
            ours, theirs = (one.search(prefix, filter=wanted, limit=1000) for one in (store, reference))
            assert _sorted(ours) == _sorted(theirs)
        elif call == "page":
            size = some.randrange(1, 4)
            pages = [store.search(prefix, filter=wanted, limit=size, offset=at) for at in range(0, 40, size)]
            whole = store.search(prefix, filter=wanted, limit=1000)
            assert [_shown(item) for page in pages for item in page] == [_shown(item) for item in whole]
        else:
            # The other one also lists namespaces from which everything was deleted, or that were only asked for.
            there = {item.namespace for item in reference.search((), limit=1000)}
            suffix = some.choice([None, ("ada",), ("*", "facts")])
            found = {
                one: one.list_namespaces(prefix=prefix or None, suffix=suffix, limit=1000) for one in (store, reference)
            }
            assert found[store] == [name for name in found[reference] if name in there]
            depth = some.randrange(1, 4)
            assert store.list_namespaces(max_depth=depth) == sorted({name[:depth] for name in there})


def test_query_is_a_text_search(store: Store) -> None:
    store.put(("ada",), "tea", {"text": "Prefers green tea to coffee", "rank": 1})
    store.put(("ada", "work"), "job", {"text": "Works on compilers; drinks tea"}, index=["text"])
    store.put(("ada",), "secret", {"text": "tea, too"}, index=False)
    store.put(("bob",), "tea", {"text": "tea"})
    hits = store.search(("ada",), query="which tea?")
    assert {hit.key for hit in hits} == {"tea", "job"}
    assert all(hit.score is not None and hit.score > 0 for hit in hits)
    assert [hit.key for hit in store.search(("ada",), query="tea", filter={"rank": 1})] == ["tea"]
    assert store.search(("ada",), query="submarines") == []
    # What a value said before is not found any more, nor is what was deleted.
    created = store.get(("ada",), "tea")
    store.put(("ada",), "tea", {"text": "Prefers water"})
    again = store.get(("ada",), "tea")
    assert created is not None and again is not None
    assert again.created_at == created.created_at < again.updated_at
    assert [hit.key for hit in store.search(("ada",), query="green tea coffee")] == ["job"]
    store.delete(("ada", "work"), "job")
    assert store.search(("ada",), query="compilers") == []
    with pytest.raises(InvalidNamespaceError):
        store.put(("a.b",), "k", {})


def test_deleted_items_leave_nothing(store: Store, engine: contexture.Engine) -> None:
    large = {"text": "marmalade " * 40_000}
    store.put(("ada",), "large", large)
    store.put(("ada",), "none", {"flag": True})
    item = store.get(("ada",), "large")
    assert item is not None and item.value == large
    assert len(engine.search("marmalade", limit=5)) == 1
    for key in ("large", "none"):
        store.delete(("ada",), key)
        store.delete(("ada",), key)
    assert store.get(("ada",), "large") is None and store.list_namespaces() == []
    assert len(engine.search("marmalade", limit=5)) == 0
    assert [one.id for one in engine.conversations()] == ["lgs"]


def test_batch_reads_before_it_writes(store: Store) -> None:
    ops = [
        PutOp(("ada",), "k", {"n": 1}), PutOp(("ada",), "k", {"n": 2}), GetOp(("ada",), "k"), SearchOp(("ada",))
    ]  # fmt: skip
    assert store.batch(ops) == [None, None, None, []]
    (first, second) = asyncio.run(store.abatch([GetOp(("ada",), "k"), SearchOp(("ada",), filter={"n": 2})]))
    assert first is not None and first.value == {"n": 2} and len(second) == 1


def test_puts_beside_a_put_and_a_delete_are_not_lost(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a put's texts and its value, another process puts the same item and deletes it."""
    large = {"text": "zebra " * 60_000}
    with contexture.Engine(file) as first, contexture.Engine(file) as second:
        store, other = Store(first), Store(second)
        values = type(first.open("lgs").values)
        put, is_first = values.put, [True]

        def put_later(self: Any, *arguments: Any, **more: Any) -> int:
            if is_first:
                is_first.clear()
                other.put(("ada",), "k", large)
                other.delete(("ada",), "k")
            return put(self, *arguments, **more)

        monkeypatch.setattr(values, "put", put_later)
        store.put(("ada",), "k", large)
        item = store.get(("ada",), "k")
        assert item is not None and item.value == large
        assert len(store.search(("ada",), query="zebra")) == 1


def test_killed_deletes_are_gone_on_with(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with contexture.Engine(file) as engine:
        store = Store(engine)
        store.put(("ada",), "k", {"text": "marmalade " * 40_000})
        for step in ("engine", "values"):
            with monkeypatch.context() as patched:
                kind = type(engine) if step == "engine" else type(engine.open("lgs").values)
                patched.setattr(kind, "delete", lambda *_, **__: 1 // 0)
                with pytest.raises(ZeroDivisionError):
                    store.delete(("ada",), "k")
            assert store.get(("ada",), "k") is None
            assert store.search(("ada",)) == store.search(("ada",), query="marmalade") == store.list_namespaces() == []
        store.delete(("ada",), "k")
        assert [one.id for one in engine.conversations()] == ["lgs"]
        assert [*engine.open("lgs").values.items()] == [] and len(engine.search("marmalade")) == 0


def test_changed_items_leave_one_text(store: Store, engine: contexture.Engine) -> None:
    """Texts that an item had before take no room in a search, which looks at a limited number of them."""
    for number in range(5):
        store.put(("ada",), "k", {"text": f"zebra {number}"})
    assert [hit.snippet.text for hit in engine.search("zebra")] == ["zebra 4"]
    assert len([*engine.conversations()]) == 2


@pytest.mark.parametrize(
    "query", ["tea " * 3000, "x" * 5000 + " tea", "-tea", "from:assistant tea", "after:2099-01 tea", '"green tea', "tea \ud83d"]
)
def test_query_has_words_and_no_operators(memory: contexture.Engine, query: str) -> None:
    store = Store(memory)
    store.put(("ada",), "k", {"text": "Tea from Assam"})
    assert [hit.key for hit in store.search(("ada",), query=query)] == ["k"]


def test_batches_are_checked_before_they_write(memory: contexture.Engine) -> None:
    store = Store(memory)
    with pytest.raises(contexture.InvalidInput):
        store.batch([PutOp(("ada",), "a", {"n": 1}), PutOp(("ada",), "b", {"n": {1, 2}})])
    assert store.search(("ada",)) == []
    with pytest.raises(contexture.InvalidInput, match="list of paths"):
        Store(memory, fields="text")


def test_lists_of_namespaces_read_what_is_under_their_prefix(memory: contexture.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(memory)
    for namespace in NAMESPACES:
        store.put(namespace, "k", {"n": 1}, index=False)
    values = type(memory.open("lgs").values)
    items, read = values.items, []

    def counted(self: Any, *arguments: Any, **more: Any) -> Iterator[Any]:
        for value in items(self, *arguments, **more):
            read.append(value.key)
            yield value

    monkeypatch.setattr(values, "items", counted)
    assert store.list_namespaces(prefix=("docs", "*")) == [("docs", "v1"), ("docs", "v2", "é/ü")]
    assert len(read) == 2


def test_concurrent_writers_leave_items_that_queries_find(address: str) -> None:
    """Two engines, as of two processes, put and delete the same items; whatever is there in the end is found by its words."""
    with contexture.Engine(address) as first, contexture.Engine(address) as second:
        stores = [Store(first), Store(second)]

        def write(number: int) -> None:
            some = random.Random(number)
            for step in range(4):
                key = str(some.randrange(2))
                if some.randrange(3):
                    stores[number % 2].put(("ada",), key, {"text": f"zebra {number} {step}"})
                else:
                    stores[number % 2].delete(("ada",), key)

        with ThreadPoolExecutor(4) as threads:
            # Reading the results raises what a thread raised.
            assert [*threads.map(write, range(4))] == [None] * 4
        stores[0].put(("ada",), "0", {"text": "zebra at the end"})
        there = {item.key for item in stores[0].search(("ada",))}
        assert {item.key for item in stores[1].search(("ada",), query="zebra")} == there


def test_nodes_of_a_graph_remember_across_threads(store: Store) -> None:
    def node(state: dict[str, Any]) -> dict[str, Any]:
        memory = get_store()
        known = memory.search(("ada",), query="parcel")
        memory.put(("ada",), "parcel", {"text": "The parcel is W8342."})
        return {"known": [item.value["text"] for item in known]}

    graph = StateGraph(dict)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    app = graph.compile(store=store)
    assert app.invoke({})["known"] == []
    assert app.invoke({})["known"] == ["The parcel is W8342."]
