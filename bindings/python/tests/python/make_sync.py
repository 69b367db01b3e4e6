"""Makes `contexture/_engine.py` and others from `contexture/_async_engine.py` and so on: the same operations without asyncio.

    python bindings/python/tests/python/make_sync.py          writes them
    python bindings/python/tests/python/make_sync.py --check  fails if one is not what would be written
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "contexture"
MODULES = {
    "engine": "The engine for programs without asyncio.",
    "notes": "Notes of a conversation, for programs without asyncio.",
    "wrap": "Calls of a wrapped client, for programs without asyncio: see `_wrapping.py`.",
    "values": "A program's own values beside the tree of a conversation, for programs without asyncio.",
}

EXAMPLE = '''    >>> import contexture
    >>> with contexture.Engine("memory:") as engine:
    ...     chat = engine.open("support-42")
    ...     saved = chat.append("Where is my parcel?")
    ...     print(len(chat.messages()))
    1
'''


def make(name: str) -> str:
    """Return the synchronous form of a module."""
    text = (PACKAGE / f"_async_{name}.py").read_text()
    header = f'"""{MODULES[name]}\n\nMade from `_async_{name}.py` by `tests/python/make_sync.py`; do not edit it.\n"""\n'
    text = re.sub(r'\A""".*?"""\n', "", text, flags=re.DOTALL)
    text = re.sub(r"    >>> import asyncio, contexture\n.*?    1\n", EXAMPLE, text, flags=re.DOTALL)
    for pattern, replacement in [
        (r"\basync (def|for|with)\b", r"\1"),
        (r"\bawait ", ""),
        (r"\bAsync(Engine|Conversation|Notes|Values|Calls|RecordedStream|Border|Iterator)\b", r"\1"),
        (r"\b_async_(engine|notes|values)\b", r"_\1"),
        (r"\bStopAsyncIteration\b", "StopIteration"),
        (r"__a(enter|exit|iter|next)__", r"__\1__"),
    ]:
        text = re.sub(pattern, replacement, text)
    text = text.replace("import Iterator, Iterable, Mapping", "import Iterable, Iterator, Mapping")
    return header + text


def main() -> int:
    different = 0
    for name in MODULES:
        target, made = PACKAGE / f"_{name}.py", make(name)
        if "--check" not in sys.argv:
            target.write_text(made)
        elif not target.is_file() or target.read_text() != made:
            print(f"{target.name} is not what _async_{name}.py makes: run {Path(__file__).name}")
            different = 1
    return different


if __name__ == "__main__":
    sys.exit(main())
