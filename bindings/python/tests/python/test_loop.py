"""The program of docs/python.md: forty turns with three tools, killed with -9 and resumed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import contexture
import pytest

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[3] / "docs/python.md"

# All of them in a soak: with an engine that is not optimised, each takes half a second.
TURNS = 40 if os.environ.get("CONTEXTURE_SOAK") == "1" else 8

# What the program imports as `openai`: each turn calls the three tools in a row, then answers. A call counts once it is answered.
MODEL = '''
import os, pathlib
import scripted

NAMES = ["weather", "trains", "hotels"]
ANSWERED = pathlib.Path("answered")

class OpenAI:
    def __init__(self):
        self.chat = self.completions = self
    def create(self, **request):
        number = len(ANSWERED.read_bytes()) if ANSWERED.exists() else 0
        if number == int(os.environ["KILLED_AT"]):
            os.kill(os.getpid(), 9)
        with ANSWERED.open("a") as answered:
            answered.write("x")
        if number % 4 < 3:
            return scripted.answer(calls=[(f"call_{number}", NAMES[number % 4], {"city": f"city {number // 4}"})])
        return scripted.answer(f"Answer {number // 4}.")
'''


def program() -> str:
    """The first program of the page that has a loop."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return next(block for block in blocks if "range(" in block and "OpenAI()" in block)


def _start(folder: Path, killed_at: int = -1) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KILLED_AT": str(killed_at), "PYTHONPATH": os.pathsep.join([str(folder), str(HERE), *sys.path])}
    words = [sys.executable, "agent.py"]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(os.name == "nt", reason="kill -9")
def test_loop_killed_and_resumed_has_each_turn_once(tmp_path: Path) -> None:
    code = program()
    lines = [line for line in code.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(lines) <= 25, f"{len(lines)} lines"
    imports = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import", "from"))}
    assert imports == {"contexture", "openai"}
    assert code.count(", 40)") == 1
    (tmp_path / "agent.py").write_text(code.replace(", 40)", f", {TURNS})"))
    (tmp_path / "openai.py").write_text(MODEL)
    for killed_at in (3, 17, 4 * TURNS - 1):
        assert _start(tmp_path, killed_at).returncode == -signal.SIGKILL
    ended = _start(tmp_path)
    assert ended.returncode == 0, ended.stderr
    with contexture.Engine(str(tmp_path / "trip.db")) as engine:
        messages = engine.open("trip", existing=True).messages().messages
        asked = [message for message in messages if message["role"] == "user"]
        assert len(asked) == TURNS
        chat = engine.open("trip")
        kinds = [one.kind for one in chat.items(page=500)]
        assert kinds.count("call") == kinds.count("output") == 3 * TURNS
        assert chat.compactions(), "nothing was compacted"
    # A second start has nothing left to do.
    again = _start(tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout == ended.stdout
