"""LangGraph: its own conformance kit on each store, a graph that goes on, and what the kit does not ask."""

from __future__ import annotations

import asyncio
import operator
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
