"""The Codex CLI, `@openai/codex`, with a provider that speaks `responses`: one process a turn, and one for a thread.

What it prints is JSON, one event a line, here without the ids and times that it makes anew.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import scenarios
from scenarios import ABORT_AFTER, SAID, TURNS

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
{more}
"""
# Its own, and those that the upstream makes of them.
IDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|msg_[0-9a-f]{16}")
# A command's output says how long it took, and has a number of its own.
PASSING = re.compile(r"(Wall time: )[0-9.]+|(Chunk ID: )\w+")
COMMAND = 'List the files.\nupstream: call exec_command {"cmd": "echo one two", "yield_time_ms": 5000}'
# What is seen of a thread's turns, beside their texts.
SEEN = {"turn/completed", "item/agentMessage/delta", "item/completed", "thread/tokenUsage/updated"}
TIMES = {"emittedAtMs", "startedAt", "startedAtMs", "completedAt", "completedAtMs", "durationMs"}


class Codex:
    """A home and a place to work, both empty, and always the same: they are told to the model."""

    def __init__(self, base, more=""):
        folder = pathlib.Path("codex").absolute()
        shutil.rmtree(folder, ignore_errors=True)
        self.home = folder / "home"
        self.place = folder / "place"
        self.home.mkdir(parents=True)
        self.place.mkdir()
        (self.home / "config.toml").write_text(CONFIGURATION.format(base=base, more=more))

    def start(self, *words, stdin):
        return subprocess.Popen(
            [CODEX, *words],
            cwd=self.place,
            env={**os.environ, "CODEX_HOME": str(self.home), "HOME": str(self.home), "OPENAI_API_KEY": "sk-client"},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def turn(self, text, *words):
        words = ["exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", *words, text]
        process = self.start(*words, stdin=subprocess.DEVNULL)
        said, _ = process.communicate()
        return [told(line) for line in said.splitlines()] + [{"exit": process.returncode}]


class Thread:
    """A thread in the process of `codex app-server`: requests and notifications, one a line."""

    def __init__(self, base):
        codex = Codex(base)
        self.process = codex.start("app-server", stdin=subprocess.PIPE)
        self.send("initialize", clientInfo={"name": "scenarios", "version": "1"})
        self.send("thread/start", cwd=str(codex.place), sandbox="danger-full-access", approvalPolicy="never")
        self.id = self.next("thread/started")["params"]["thread"]["id"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()

    def send(self, method, **params):
        print(json.dumps({"id": method, "method": method, "params": params}), file=self.process.stdin, flush=True)

    def events(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if "error" in event:
                raise RuntimeError(line)
            yield event

    def next(self, method):
        return next(event for event in self.events() if event.get("method") == method)

    def begin(self, text):
        self.send("turn/start", threadId=self.id, input=[{"type": "text", "text": text}])

    def turn(self, text):
        self.begin(text)
        saw = []
        for event in self.events():
            if event.get("method") in SEEN:
                saw.append(told(json.dumps(event)))
            if event.get("method") == "turn/completed":
                return saw

    def interrupt(self, text):
        self.begin(text)
        turn = self.next("turn/started")["params"]["turn"]["id"]
        saw = [told(json.dumps(self.next("item/agentMessage/delta"))) for _ in range(ABORT_AFTER)]
        self.send("turn/interrupt", threadId=self.id, turnId=turn)
        # Some more may have come before it was heard.
        return saw + [self.next("turn/completed")["params"]["turn"]["status"]]


def told(line):
    return scenarios.without(json.loads(PASSING.sub("", IDS.sub("ID", line))), TIMES)


def turn(text):
    return lambda base: Codex(base).turn(text)


def resumed(base):
    codex = Codex(base)
    return [codex.turn(scenarios.turn(0)), codex.turn(scenarios.turn(1), "resume", "--last")]


def session(base):
    with Thread(base) as thread:
        return [thread.turn(scenarios.turn(number)) for number in range(TURNS)]


def abort(base):
    with Thread(base) as thread:
        return thread.interrupt(SAID["abort"])


if __name__ == "__main__":
    scenarios.run(
        {
            "plain": turn(SAID["plain"]),
            "stream": turn(SAID["stream"]),
            "tools": turn(COMMAND),
            "resumed": resumed,
            "session": session,
            "abort": abort,
            "limited_once": turn(SAID["limited_once"]),
            "limited": turn(SAID["limited"]),
            "failing": turn(SAID["failing"]),
            "lost_once": turn(SAID["lost_once"]),
            "cut": turn(SAID["cut"]),
        }
    )
