"""The Codex CLI, `@openai/codex`: one process a turn, with a provider that speaks `responses`.

What it prints is JSON, one event a line; its ids are replaced by their order, for it makes them anew each time.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import scenarios
from scenarios import SAID

CODEX = pathlib.Path("node_modules/.bin/codex").absolute()
CONFIGURATION = """
model = "scripted"
model_provider = "contexture"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.contexture]
name = "Contexture"
base_url = "{base}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# A command's output says how long it took, and has a number of its own.
PASSING = re.compile(r"(Wall time: )[0-9.]+|(Chunk ID: )\w+")
COMMAND = 'List the files.\nupstream: call exec_command {"cmd": "echo one two", "yield_time_ms": 5000}'
# Each turn is a process.
TURNS = 6


class Codex:
    """A home and a place to work, both empty, and always the same: they are told to the model."""

    def __init__(self, base):
        folder = pathlib.Path("codex").absolute()
        shutil.rmtree(folder, ignore_errors=True)
        self.home = folder / "home"
        self.place = folder / "place"
        self.home.mkdir(parents=True)
        self.place.mkdir()
        (self.home / "config.toml").write_text(CONFIGURATION.format(base=base))

    def turn(self, text, *words):
        done = subprocess.run(
            [CODEX, "exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", *words, text],
            cwd=self.place,
            env={**os.environ, "CODEX_HOME": str(self.home), "HOME": str(self.home), "OPENAI_API_KEY": "sk-client"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return [told(line) for line in done.stdout.splitlines()] + [{"exit": done.returncode}]


def told(line):
    return json.loads(PASSING.sub("", UUID.sub("ID", line)))


def turn(text):
    return lambda base: Codex(base).turn(text)


def session(base):
    codex = Codex(base)
    saw = [codex.turn(scenarios.turn(0))]
    for number in range(1, TURNS):
        saw.append(codex.turn(scenarios.turn(number), "resume", "--last"))
    return saw


scenarios.run(
    {
        "plain": turn(SAID["plain"]),
        "stream": turn(SAID["stream"]),
        "tools": turn(COMMAND),
        "session": session,
        "limited": turn(SAID["limited"]),
        "failing": turn(SAID["failing"]),
        "lost_once": turn(SAID["lost_once"]),
        "cut": turn(SAID["cut"]),
    }
)
