"""The package itself: types, examples, the copy without asyncio, documents, import time."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import contexture
import pytest
from contexture import _documents

HERE = Path(__file__).resolve().parent
SOURCES = Path(os.environ.get("CONTEXTURE_PYTHON_SOURCES", HERE.parents[1] / "contexture"))
API = HERE.parents[3] / "docs/api/api.txt"
GUIDE = HERE.parents[3] / "docs/python.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)

MODULES = ["contexture", *(f"contexture.{path.stem}" for path in sorted(SOURCES.glob("_[a-z]*.py")))]


def _python(code: str) -> str:
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_of_the_guide_run(number: int) -> None:
    program = PROGRAMS[number]
    # Those that call a model run in `test_loop.py`, `test_wrap.py` and `test_openai_agents.py`, against one that answers from a script.
    if "OpenAI()" not in program and "Runner.run" not in program:
        exec(compile(program, f"docs/python.md, program {number}", "exec"), {"__name__": "__main__"})


def test_synchronous_engine_is_made_from_the_other() -> None:
    made = subprocess.run([sys.executable, HERE / "make_sync.py", "--check"], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout


def test_public_names_have_docs_and_types() -> None:
    for name in contexture.__all__:
        value = getattr(contexture, name)
        if name != "__version__":
            assert value.__doc__, name
    for kind in (contexture.Engine, contexture.AsyncEngine, contexture.Conversation, contexture.Values):
        for name, member in vars(kind).items():
            if callable(member) and not name.startswith("_"):
                assert member.__doc__, f"{kind.__name__}.{name}"
                assert "return" in member.__annotations__, f"{kind.__name__}.{name}"


def test_types_are_strict() -> None:
    """The package and a program that uses it have no faults; another program has one at each line that says so."""
    wrong = HERE / "mistyped_consumer.py"
    # Reading the types of a framework takes five times as long as all the rest: that is for a soak.
    frameworks = {"langgraph", "_langgraph_store", "openai_agents", "claude_agent", "pydantic_ai"} if os.environ.get("CONTEXTURE_SOAK") != "1" else set()
    files = [path for path in sorted(SOURCES.glob("*.py*")) if path.stem not in frameworks]
    words = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    checked = subprocess.run(
        [*words, *files, HERE / "typed_consumer.py", wrong], capture_output=True, text=True, cwd=SOURCES.parent
    )
    lines = wrong.read_text().splitlines()
    expected = {number for number, line in enumerate(lines, 1) if "# wrong" in line}
    found = {line.split(":")[1] for line in checked.stdout.splitlines() if "mistyped_consumer.py:" in line and " error: " in line}
    assert {int(number) for number in found} == expected, checked.stdout
    others = [line for line in checked.stdout.splitlines() if " error: " in line and "mistyped_consumer.py:" not in line]
    assert not others, "\n".join(others)


def test_oldest_python_can_read_it() -> None:
    for path in SOURCES.glob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 9))


def test_documents_have_the_members_of_the_api() -> None:
    """What `docs/api/api.txt` lists of a document is what the class here has."""
    api: dict[str, set[str]] = {}
    for kind, member in re.findall(r"^field (\w+)Document::(\w+):", API.read_text(), re.MULTILINE):
        api.setdefault(kind, set()).add(member)
    names = {
        "ConversationInfo": "Conversation", "Item": "Node", "MessagePage": "Messages", "SearchPage": "Search",
        "Compaction": "Cover", "Tokens": "CallTokens",
    }  # fmt: skip
    # Made here, or shown as raw JSON with a schema of its own.
    own = {"Document", "Report", "Resolved", "Compiled", "Value"}
    for name in _documents.__all__:
        if name in own:
            continue
        members = _documents._members(getattr(_documents, name)) - {"_data", "_nested", "_lists"}
        expected = api[names.get(name, name)]
        if name == "UsageGroup":
            expected = expected - {"sum"} | api["UsageSum"]
        assert members == expected, name


def test_import_is_quick_and_leaves_asyncio_alone() -> None:
    out = _python(
        """
        import sys
        import contexture
        print([name for name in ("asyncio", "dataclasses", "inspect", "logging", "pydantic") if name in sys.modules])
        """
    )
    assert out.strip() == "[]"
