"""Hostile use, in small doses; a soak takes full ones. Nothing crashes, hangs or loses what was acknowledged."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import contexture
import pytest
from contexture import AsyncEngine, Engine, Forked, InvalidInput

unix = pytest.mark.skipif(os.name == "nt", reason="forks and signals of Unix")


def _run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program of its own: what it does to its process is nobody else's."""
    words = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


def test_cancelled_tasks_leave_whole_appends_or_none(address: str, soak: bool) -> None:
    tasks = 1000 if soak else 60

    async def main() -> set[int]:
        done: set[int] = set()
        async with AsyncEngine(address) as engine:
            chat = await engine.open("cancelled")

            async def append(number: int) -> None:
                pair = [{"role": "user", "content": f"{number} {half}"} for half in "ab"]
                await chat.append(pair, key=str(number))
                done.add(number)

            running = [asyncio.create_task(append(number)) for number in range(tasks)]
            # Every second is cancelled at another moment: before it starts, on its way, after its end.
            for number, task in enumerate(running):
                if number % 2:
                    for _ in range(number % 5):
                        await asyncio.sleep(0)
                    task.cancel()
            ended = await asyncio.gather(*running, return_exceptions=True)
            for number, end in enumerate(ended):
                assert end is None or isinstance(end, asyncio.CancelledError), end
                assert number % 2 or end is None
            # The engine goes on as if nothing had been.
            await chat.append("after")
        return done

    acknowledged = asyncio.run(main())
    with Engine(address) as engine:
        texts = [one.item["content"][0]["text"] for one in engine.open("cancelled").items(page=500)]
    pairs = [text.split() for text in texts if text != "after"]
    stored = [int(number) for number, half in pairs if half == "a"]
    assert stored == [int(number) for number, half in pairs if half == "b"]
    assert acknowledged <= set(stored) and len(stored) == len(set(stored))


def test_timeouts_of_asyncio_end_an_operation(file: str) -> None:
    async def main() -> None:
        async with AsyncEngine(file) as engine:
            chat = await engine.open("c")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(chat.append("late"), 0)
            assert (await chat.append("in time")).head

    asyncio.run(main())


def test_loop_closed_with_running_operations(file: str) -> None:
    async def main() -> None:
        chat = await AsyncEngine(file).open("c")
        for number in range(20):
            # Never awaited to its end: the loop closes first.
            asyncio.ensure_future(chat.append(f"text {number}"))
        await asyncio.sleep(0)

    asyncio.run(main())
    # The thread that hands results over lives on.
    assert asyncio.run(_count(file)) <= 20


async def _count(file: str) -> int:
    async with AsyncEngine(file) as engine:
        return (await (await engine.open("c")).info()).items


def test_many_threads_lose_no_append(address: str, soak: bool) -> None:
    threads, each = (1000, 10) if soak else (40, 5)
    errors: list[BaseException] = []
    with Engine(address) as engine:
        engine.open("shared")

        def work(number: int) -> None:
            try:
                chat = engine.open("shared")
                for turn in range(each):
                    chat.append(f"{number} {turn}")
            except BaseException as error:
                errors.append(error)

        working = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for thread in working:
            thread.start()
        for thread in working:
            thread.join(timeout=300)
            assert not thread.is_alive()
        assert errors == []
        texts = [one.item["content"][0]["text"] for one in engine.open("shared").items(page=500)]
    assert sorted(texts) == sorted(f"{number} {turn}" for number in range(threads) for turn in range(each))


@unix
def test_fork_opens_its_own_connection(address: str, soak: bool) -> None:
    """A child that is forked from a busy parent uses the same engine object, and both go on."""
    ended = _run(
        """
        import os, sys, threading
        import contexture
        engine = contexture.Engine(sys.argv[1])
        chat = engine.open("forked")
        chat.append("parent before")
        stop = threading.Event()
        def busy():
            while not stop.is_set():
                engine.open("busy").append("x")
        threads = [threading.Thread(target=busy) for _ in range(4)]
        for thread in threads: thread.start()
        children = []
        for number in range(int(sys.argv[2])):
            child = os.fork()
            if child == 0:
                try:
                    while True:
                        try:
                            # A file has one writer at a time, and the parent's are busy.
                            chat.append(f"child {number}", key=str(number))
                            break
                        except contexture.Unavailable:
                            pass
                    ok = any(one.item["content"][0]["text"] == f"child {number}" for one in chat.items())
                    os._exit(0 if ok else 3)
                except BaseException as error:
                    print(repr(error), file=sys.stderr, flush=True)
                    os._exit(4)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        stop.set()
        for thread in threads: thread.join()
        chat.append("parent after")
        print(codes, chat.info().items)
        """,
        address,
        "30" if soak else "4",
    )
    children = 30 if soak else 4
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == f"{[0] * children} {children + 2}".split(), ended.stdout + ended.stderr


@unix
def test_fork_of_asyncio_and_child_that_ends_normally(file: str) -> None:
    """The child runs its destructors and a loop of its own; the parent's connection survives both."""
    ended = _run(
        """
        import asyncio, os, sys
        import contexture
        engine = contexture.AsyncEngine(sys.argv[1])
        async def append(text):
            chat = await engine.open("c")
            await chat.append(text)
            return (await chat.info()).items
        asyncio.run(append("parent"))
        child = os.fork()
        if child == 0:
            print("child", asyncio.run(append("child")), flush=True)
            del engine
            sys.exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print("parent", code, asyncio.run(append("parent again")))
        """,
        file,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["child 2", "parent 0 3"], ended.stdout + ended.stderr


@unix
def test_fork_of_memory_is_refused(memory: Engine) -> None:
    memory.open("c").append("hello")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            memory.open("c")
        except Forked as error:
            os.write(write, error.code.encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"forked"
    os.close(read)
    assert memory.open("c").info().items == 1


@unix
def test_ctrl_c_ends_a_call_and_the_engine_goes_on(file: str) -> None:
    """The writer waits for a lock that another process holds for longer than the test may take."""
    with Engine(file) as engine:
        engine.open("c")
    ended = _run(
        """
        import os, signal, subprocess, sys, threading, time
        import contexture
        # In a process of its own: two copies of SQLite in one process do not see each other's locks.
        hold = "import sqlite3, sys; lock = sqlite3.connect(sys.argv[1], isolation_level=None); " \\
            "lock.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()"
        holder = subprocess.Popen(
            [sys.executable, "-c", hold, sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        holder.stdout.readline()
        engine = contexture.Engine(sys.argv[1])
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            engine.open("c").append("waits")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        holder.communicate()
        print(engine.open("c").append("goes on").branch)
        """,
        file,
    )
    assert ended.stdout.splitlines() == ["interrupted", "main"], ended.stdout + ended.stderr
    assert ended.returncode == 0


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)", "raise SystemExit(0)", "pass"])
def test_interpreter_exit_in_the_middle(file: str, end: str) -> None:
    """Threads and tasks are on their way when the interpreter ends; what was acknowledged is there."""
    ended = _run(
        f"""
        import asyncio, os, sys, threading
        import contexture
        engine = contexture.Engine(sys.argv[1])
        chat = engine.open("exit")
        def work():
            while True:
                chat.append("x")
                print("stored", flush=True)
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        other = contexture.AsyncEngine(sys.argv[1])
        async def main():
            chat = await other.open("exit")
            for _ in range(30):
                asyncio.ensure_future(chat.append("y"))
            for _ in range(5):
                await chat.append("z")
                os.write(1, b"stored\\n")
        asyncio.run(main())
        {end}
        """,
        file,
    )
    assert ended.returncode == 0, (ended.returncode, ended.stderr)
    assert "panicked" not in ended.stderr and "Fatal" not in ended.stderr, ended.stderr
    with Engine(file) as engine:
        assert engine.open("exit", existing=True).info().items >= ended.stdout.count("stored")


class _Liar(Mapping[str, Any]):
    """Says that it has members, and has others each time."""

    def __init__(self) -> None:
        self.asked = 0

    def __getitem__(self, key: str) -> Any:
        self.asked += 1
        raise KeyError(key) if self.asked % 2 else RuntimeError("no")

    def __iter__(self) -> Iterator[str]:
        return iter(("role", "content"))

    def __len__(self) -> int:
        return 2


class _Raises:
    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise ValueError("cannot be dumped")


class _DumpsItself:
    def model_dump(self, **_: Any) -> _DumpsItself:
        return self


class _EndlessText(str):
    def encode(self, *_: Any) -> bytes:
        return b"not what it says"


def test_objects_that_lie_are_refused_or_taken_at_their_word(memory: Engine) -> None:
    chat = memory.open("c")
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    circle: dict[str, Any] = {"role": "user"}
    circle["content"] = circle
    lies: list[Any] = [_Raises(), _DumpsItself(), nested, circle, {"role": "user", "content": nested}, object(), [object()], {1: 2}]
    for lie in lies:
        with pytest.raises(contexture.Error):
            chat.append(lie)
    # An exception of their own goes through as it is.
    with pytest.raises((KeyError, RuntimeError, InvalidInput)):
        chat.append(_Liar())
    with pytest.raises(InvalidInput, match="integer `7`"):
        chat.append("fine", key=7)  # type: ignore[arg-type]
    deep = b'[{"role":"user","content":' + b"[" * 200_000 + b"]" * 200_000 + b"}]"
    with pytest.raises(contexture.Error):
        chat.append(deep)
    assert chat.append(_EndlessText("hello")).items
    assert chat.info().items == 1
