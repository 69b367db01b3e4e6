"""The Python half of `border.rs`: the same work through the package."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import contexture

FOLDER, APPENDS, COMPILES = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


def median(work: Callable[[int], object], times: int) -> float:
    """The median time of some work, in milliseconds."""
    taken = []
    for number in range(times):
        started = time.perf_counter()
        work(number)
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


def started(code: str) -> float:
    """The least time in which Python starts, runs some code and ends, in milliseconds."""
    taken = []
    for _ in range(15):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-S", "-c", code], check=True)
        taken.append((time.perf_counter() - begun) * 1000)
    return min(taken)


def main() -> None:
    engine = contexture.Engine("memory:")
    text = (FOLDER / "messages.json").read_bytes()
    messages = json.loads(text)
    options = {"model": "gpt-4o", "to": "openai-chat", "window": 1_000_000}
    taken = median(lambda _: engine.compile_messages(text, **options), COMPILES)
    print(f"python: compile, bytes in and out: {taken:.1f} ms")
    taken = median(lambda _: engine.compile_messages(messages, **options).payload, COMPILES)
    print(f"python: compile, dicts in and out: {taken:.1f} ms")

    chat = contexture.Engine(FOLDER / "python.db").open("c")
    taken = median(lambda number: chat.append({"role": "user", "content": f"message {number}"}), APPENDS)
    print(f"python: append, median of {APPENDS}: {taken * 1000:.1f} µs")

    taken = started("import contexture") - started("pass")
    also = started("import json, typing, collections.abc, atexit, sysconfig") - started("pass")
    print(f"python: import {taken:.1f} ms, of which the standard library {also:.1f} ms")

    module = FOLDER / "contexture/_native.abi3.so"
    print(f"module: {os.path.getsize(module):,} bytes, compressed {len(zlib.compress(module.read_bytes(), 9)):,}")


main()
