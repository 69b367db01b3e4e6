"""The Claude Agent SDK's own contracts for session stores, on each store; and what they do not ask."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import contexture
import pytest

pytest.importorskip("claude_agent_sdk")

from claude_agent_sdk import (  # noqa: E402
    fork_session_via_store,
    get_session_messages_from_store,
    list_sessions_from_store,
    project_key_for_directory,
)
from claude_agent_sdk.testing import run_session_store_conformance  # noqa: E402
from contexture.claude_agent import SessionStore  # noqa: E402

KEY: Any = {"project_key": "p", "session_id": "s"}


def test_contracts(address: str) -> None:
    """All 14, on one database; each has a store of its own, which is an owner of its own here."""
    numbers = itertools.count()

    async def run() -> None:
        async with contexture.AsyncEngine(address) as engine:
            made: list[SessionStore] = []

            def make() -> SessionStore:
                made.append(SessionStore(engine.for_owner(f"owner{next(numbers)}")))
                return made[-1]

            await run_session_store_conformance(make)
            # One to look at, and one for each contract: none was left out.
            assert len(made) == 15

    asyncio.run(run())


def _entry(number: int, text: str, **more: Any) -> Any:
    uuid = f"00000000-0000-4000-8000-{number:012}"
    entry = {"type": "user", "uuid": uuid, "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z"}
    return {**entry, "message": {"role": "user", "content": [{"type": "text", "text": text}]}, **more}


def test_entries_are_stored_once_searched_and_changed(address: str) -> None:
    async def run() -> None:
        async with contexture.AsyncEngine(address) as engine:
            store = SessionStore(engine)
            exact = {"type": "mode", "n": 1.0, "big": 12345678901234567890123, "é": [None, True, {"z": 0, "a": "\u0000"}]}
            await store.append(KEY, [_entry(1, "Where is my parcel?"), exact])
            # A batch is sent again after a failure that was none, or with more behind it.
            await store.append(KEY, [_entry(1, "Where is my parcel?"), _entry(2, "It arrives today.", type="assistant")])
            assert await store.load(KEY) == [
                _entry(1, "Where is my parcel?"), exact, _entry(2, "It arrives today.", type="assistant")
            ]  # fmt: skip
            await store.append(KEY, [_entry(1, "Where is my letter?")])
            loaded = await store.load(KEY)
            assert loaded is not None and loaded[0] == _entry(1, "Where is my letter?") and len(loaded) == 3
            hits = await engine.search("parcel", resource="claude:p")
            assert [hit.snippet.text for hit in hits] == ["Where is my parcel?"]

    asyncio.run(run())


def test_concurrent_processes_lose_no_entry_and_no_summary(address: str) -> None:
    async def run() -> None:
        async with contexture.AsyncEngine(address) as first, contexture.AsyncEngine(address) as second:
            stores = [SessionStore(first), SessionStore(second)]
            numbers = range(12)
            await asyncio.gather(
                *(stores[n % 2].append(KEY, [_entry(n, f"text {n}"), {"type": "title", f"title{n}": n}]) for n in numbers)
            )
            loaded: Any = await stores[0].load(KEY)
            assert {entry["uuid"] for entry in loaded if "uuid" in entry} == {_entry(n, "")["uuid"] for n in numbers}
            # The entries of one call stay together.
            assert all(f"title{int(one['uuid'][-12:])}" in next_one for one, next_one in zip(loaded[::2], loaded[1::2]))
            (summary,), (listed,) = await stores[1].list_session_summaries("p"), await stores[1].list_sessions("p")
            assert summary["mtime"] == listed["mtime"] and summary["data"]["first_prompt"].startswith("text ")

    asyncio.run(run())


def test_entries_that_utf_8_cannot_hold_are_kept(address: str) -> None:
    deep: Any = "end"
    for _ in range(200):
        deep = [deep]
    odd = [_entry(1, "parcel \ud83d"), _entry(2, "x", n=float("inf")), _entry(3, "y", deep=deep), {"type": "mode", "half": "\ude00"}]

    async def run() -> None:
        async with contexture.AsyncEngine(address) as engine:
            store = SessionStore(engine)
            await store.append(KEY, odd)
            await store.append(KEY, odd[:3])
            assert await store.load(KEY) == odd
            assert [hit.snippet.text for hit in await engine.search("parcel")] == ["parcel \ufffd"]

    asyncio.run(run())


def test_entries_that_are_changed_back_are_loaded_so(address: str) -> None:
    async def run() -> None:
        async with contexture.AsyncEngine(address) as engine:
            store = SessionStore(engine)
            for number in (1, 2, 1, 2, 1, 1):
                await store.append(KEY, [_entry(0, f"version {number}")])
                assert await store.load(KEY) == [_entry(0, f"version {number}")]
            await store.append(KEY, [_entry(0, f"version {number}") for number in (3, 4, 3)])
            assert await store.load(KEY) == [_entry(0, "version 3")]

    asyncio.run(run())


def test_other_conversations_about_a_project_are_no_sessions(memory: contexture.Engine) -> None:
    async def run() -> None:
        async with contexture.AsyncEngine("memory:") as engine:
            store = SessionStore(engine)
            await store.append(KEY, [_entry(1, "Where?")])
            for name, metadata in (("notes", {}), ("copy", {"project_key": "p", "session_id": "s"})):
                await (await engine.open(name, resource="claude:p", metadata=metadata)).append("mine")
            assert [one["session_id"] for one in await store.list_sessions("p")] == ["s"]
            assert [one["session_id"] for one in await store.list_session_summaries("p")] == ["s"]

    asyncio.run(run())


def test_summaries_behind_their_transcript_are_not_called_fresh(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed, or fails, between the entries and the summary: the next one makes up for it."""

    async def run() -> None:
        async with contexture.AsyncEngine(file) as engine:
            store = SessionStore(engine)
            await store.append(KEY, [_entry(1, "Where?")])
            with monkeypatch.context() as patched:
                patched.setattr("contexture.claude_agent.fold_session_summary", lambda *_: 1 // 0)
                # No error: the SDK would append the entries once more.
                await store.append(KEY, [{"type": "custom-title", "customTitle": "A parcel"}])
            (summary,), (listed,) = await store.list_session_summaries("p"), await store.list_sessions("p")
            assert summary["mtime"] < listed["mtime"]
            await store.append(KEY, [{"type": "mode"}])
            (summary,), (listed,) = await store.list_session_summaries("p"), await store.list_sessions("p")
            assert summary["mtime"] == listed["mtime"] and summary["data"]["custom_title"] == "A parcel"

    asyncio.run(run())


def test_functions_of_the_sdk_work_on_it(file: str) -> None:
    async def run() -> None:
        async with contexture.AsyncEngine(file) as engine:
            store: Any = SessionStore(engine)
            session = "11111111-1111-4111-8111-111111111111"
            key: Any = {"project_key": project_key_for_directory("/tmp"), "session_id": session}
            question = _entry(1, "Where is my parcel?", sessionId=session, parentUuid=None, cwd="/tmp")
            answer = _entry(2, "Today.", type="assistant", sessionId=session, parentUuid=question["uuid"])
            answer["message"]["role"] = "assistant"
            await store.append(key, [question, answer])
            messages = await get_session_messages_from_store(store, session, directory="/tmp")
            assert [message.type for message in messages] == ["user", "assistant"]
            (info,) = await list_sessions_from_store(store, directory="/tmp")
            assert info.session_id == session and info.first_prompt == "Where is my parcel?"
            fork = await fork_session_via_store(store, session, directory="/tmp")
            assert len(await list_sessions_from_store(store, directory="/tmp")) == 2
            forked = await get_session_messages_from_store(store, fork.session_id, directory="/tmp")
            assert [message.message for message in forked] == [message.message for message in messages]

    asyncio.run(run())
