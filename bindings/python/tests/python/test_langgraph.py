"""LangGraph: its own conformance kit on each store, a graph that goes on, and what the kit does not ask."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import contexture
import pytest
from contexture.langgraph import Saver

pytest.importorskip("langgraph")

from langgraph.checkpoint.base import empty_checkpoint  # noqa: E402
from langgraph.checkpoint.conformance import checkpointer_test, validate  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402


def test_conformance_kit(address: str) -> None:
    with contexture.Engine(address) as engine:

        @checkpointer_test(name="contexture")
        async def saver() -> AsyncIterator[Saver]:
            yield Saver(engine)

        report = asyncio.run(validate(saver))
    report.print_report()
    assert report.passed_all()
    results = report.results
    assert len(results) == 8 and sum(one.tests_passed for one in results.values()) == 81


def test_two_runs_from_the_newest_checkpoint_do_not_fork_a_thread_without_a_word(address: str) -> None:
    config: Any = {"configurable": {"thread_id": "shared"}}
    with contexture.Engine(address) as engine:
        inner = _graph(Saver(engine))
        inner.invoke({"texts": ["zero"]}, config)
        inner.invoke(None, config)

        def answer(state: State) -> dict[str, list[str]]:
            # Meanwhile another program answers in the same thread.
            other = threading.Thread(target=lambda: inner.invoke({"texts": ["theirs"]}, config))
            other.start()
            other.join()
            return {"texts": ["ours"]}

        graph = StateGraph(State)
        graph.add_node("answer", answer)
        graph.add_edge(START, "answer")
        outer = graph.compile(checkpointer=Saver(engine))
        with pytest.raises(contexture.Conflict) as raised:
            # The question is stored before the node runs: the other program goes on from it.
            outer.invoke({"texts": ["question"]}, config, durability="sync")
        assert raised.value.code == "head_moved" and "shared" in str(raised.value)
        # What the other said is there, and who reads again can go on.
        texts = inner.get_state(config).values["texts"]
        assert texts[-3:] == ["question", "theirs", "one"] and "ours" not in texts
        assert inner.invoke({"texts": ["again"]}, config)["texts"][-1] == "one"


def test_a_run_that_was_killed_before_it_stored_its_checkpoint_is_in_nobodys_way(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contexture.langgraph, "_CLAIM_SECONDS", 0.0)
    config: Any = {"configurable": {"thread_id": "killed"}}
    with contexture.Engine(address) as engine:
        _graph(Saver(engine)).invoke({"texts": ["zero"]}, config)
        values = engine.open("lg:killed").values
        (head,) = values.items("lg/h/")
        values.put(head.key, b"never-stored")
        assert _graph(Saver(engine)).invoke(None, config)["texts"] == ["zero", "one", "two"]


def test_an_exported_thread_has_its_large_values(address: str) -> None:
    config: Any = {"configurable": {"thread_id": "large"}}
    large = "long " * 10_000
    with contexture.Engine(address) as engine:
        _graph(Saver(engine)).invoke({"texts": [large]}, config)
        lines = engine.open("lg:large", existing=True).export_lines()
    with contexture.Engine("memory:") as other:
        assert other.import_lines(lines) == ["lg:large"]
        assert _graph(Saver(other)).invoke(None, config)["texts"] == [large, "one", "two"]


class State(TypedDict):
    texts: Annotated[list[str], operator.add]


def _graph(saver: Saver) -> Any:
    graph = StateGraph(State)
    graph.add_node("one", lambda state: {"texts": ["one"]})
    graph.add_node("two", lambda state: {"texts": ["two"]})
    graph.add_edge(START, "one")
    graph.add_edge("one", "two")
    graph.add_edge("two", END)
    return graph.compile(checkpointer=saver, interrupt_before=["two"])


def test_graph_goes_on_in_another_engine(address: str) -> None:
    config: Any = {"configurable": {"thread_id": "ada / 42"}}
    with contexture.Engine(address) as engine:
        assert _graph(Saver(engine)).invoke({"texts": ["zero"]}, config)["texts"] == ["zero", "one"]
    with contexture.Engine(address) as engine:
        graph = _graph(Saver(engine))
        assert graph.invoke(None, config)["texts"] == ["zero", "one", "two"]
        history = list(graph.get_state_history(config))
        assert [len(one.values["texts"]) for one in history] == [3, 2, 1, 0]
        # Going back and on again is a fork, which leaves the other line as it is.
        back = history[1].config
        assert graph.invoke(None, back)["texts"] == ["zero", "one", "two"]
        assert len(list(graph.get_state_history(config))) > len(history)
        assert graph.get_state(history[0].config).values["texts"] == ["zero", "one", "two"]


def test_unchanged_values_are_stored_once(tmp_path: Path) -> None:
    """A large channel that one step wrote is not written again by the steps after it."""
    large = [str(number) * 8 for number in range(20_000)]

    def size() -> int:
        return sum(path.stat().st_size for path in tmp_path.iterdir())

    sizes = []
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for step in range(30):
        with contexture.Engine(tmp_path / "a.db") as engine:
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = {"large": large, "step": step}
            checkpoint["channel_versions"] = {"large": 1, "step": step + 1}
            new: Any = {"step": step + 1} if step else checkpoint["channel_versions"]
            config = Saver(engine).put(config, checkpoint, {"step": step}, new)
        sizes.append(size())
    # A closed file keeps its log, which has a few pages of each step.
    assert (sizes[-1] - sizes[0]) / 29 < len(str(large)) / 8, sizes
    with contexture.Engine(tmp_path / "a.db") as engine:
        saver = Saver(engine)
        loaded = saver.get_tuple({"configurable": {"thread_id": "t"}})
        assert loaded is not None
        assert loaded.checkpoint["channel_values"] == {"large": large, "step": 29}
        assert len([*saver.list(None, limit=7)]) == 7


def test_concurrent_writers_lose_nothing(address: str) -> None:
    """Tasks of one step write at the same time, from two engines as from two processes."""
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    with contexture.Engine(address) as first, contexture.Engine(address) as second:
        savers = [Saver(first), Saver(second)]
        config = savers[0].put(config, empty_checkpoint(), {}, {})

        async def write() -> None:
            await asyncio.gather(
                *(savers[n % 2].aput_writes(config, [("a", n), ("b", n)], f"task {n // 2}") for n in range(20))
            )

        asyncio.run(write())
        loaded = savers[0].get_tuple(config)
        assert loaded is not None and loaded.pending_writes is not None
        # Two writers wrote for each task: the first under an index stays, whole.
        assert len(loaded.pending_writes) == 20
        assert {task for task, _, _ in loaded.pending_writes} == {f"task {n}" for n in range(10)}
