"""Makes `contexture/_engine.py` from `contexture/_async_engine.py`: the same operations without asyncio.

    python bindings/python/tests/python/make_sync.py          writes it
    python bindings/python/tests/python/make_sync.py --check  fails if it is not what would be written
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "contexture"
SOURCE = PACKAGE / "_async_engine.py"
TARGET = PACKAGE / "_engine.py"

HEADER = '"""The engine for programs without asyncio. Made from `_async_engine.py` by `tests/python/make_sync.py`; do not edit it."""\n'

EXAMPLE = '''    >>> import contexture
    >>> with contexture.Engine("memory:") as engine:
    ...     chat = engine.open("support-42")
    ...     saved = chat.append("Where is my parcel?")
    ...     print(len(chat.messages()))
    1
'''


def make(text: str) -> str:
    """Return the synchronous form of a module."""
    text = re.sub(r'\A""".*?"""\n', HEADER, text, flags=re.DOTALL)
    text = re.sub(r"    >>> import asyncio, contexture\n.*?    1\n", EXAMPLE, text, flags=re.DOTALL)
    for pattern, replacement in [
        (r"\basync (def|for|with)\b", r"\1"),
        (r"\bawait ", ""),
        (r"\bAsync(Engine|Conversation|Values|Border|Iterator)\b", r"\1"),
        (r"__a(enter|exit)__", r"__\1__"),
    ]:
        text = re.sub(pattern, replacement, text)
    return text.replace("import Iterator, Iterable, Mapping", "import Iterable, Iterator, Mapping")


def main() -> int:
    made = make(SOURCE.read_text())
    if "--check" in sys.argv:
        if TARGET.read_text() == made:
            return 0
        print(f"{TARGET.name} is not what {SOURCE.name} makes: run {Path(__file__).name}")
        return 1
    TARGET.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
