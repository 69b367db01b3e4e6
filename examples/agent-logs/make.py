"""Makes the logs of this folder from recorded sessions of SWE-agent: python3 make.py

The conversations are real, and nobody was billed: times, pauses, models and usage are made up. Usage follows the rules of a
prompt cache that keeps what it was sent for five minutes; a token is taken to be 3.6 characters.
"""

import json
import pathlib
from datetime import datetime, timedelta, timezone

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent.parent / "crates/testdata/data/swe-agent"
HIDDEN = 16_400  # tokens of tools and system prompt, which are in no log
SONNET, OPUS = "claude-sonnet-5", "claude-opus-5"


def tokens(text):
    return -(-len(text) * 10 // 36)


class Log:
    """One session, written as Claude Code writes its own."""

    def __init__(self, session, cwd, start, version="2.1.63"):
        self.session, self.cwd, self.version = session, cwd, version
        self.now = datetime.fromisoformat(start).replace(tzinfo=timezone.utc)
        self.lines, self.parent, self.history = [], None, 0
        self.caches, self.calls = {}, 0  # for each model: tokens it keeps, and since when

    def add(self, kind, seconds, **fields):
        self.now += timedelta(seconds=seconds)
        number = len(self.lines) + 1
        uuid = f"{self.session[:8]}-0000-4000-8000-{number:012x}"
        stamp = self.now.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        record = {"parentUuid": self.parent, "isSidechain": False, "userType": "external", "cwd": self.cwd,
                  "sessionId": self.session, "version": self.version, "type": kind, "uuid": uuid, "timestamp": stamp}
        record.update(fields)
        self.lines.append(record)
        self.parent = uuid

    def title(self, text):
        self.lines.append({"type": "custom-title", "customTitle": text, "sessionId": self.session})

    def user(self, content, seconds):
        self.history += tokens(content if isinstance(content, str) else content[0]["content"])
        self.add("user", seconds, message={"role": "user", "content": content})

    def answer(self, text, call, model):
        self.calls += 1
        sent = HIDDEN + self.history
        cached, since = self.caches.get(model, (0, self.now))
        read = min(cached, sent) if (self.now - since).total_seconds() <= 300 else 0
        self.caches[model] = (sent - 3, self.now)
        blocks = [{"type": "text", "text": text}] if text else []
        if call:
            blocks.append({"type": "tool_use", "id": f"toolu_{self.calls:04}", "name": call[0], "input": call[1]})
        output = sum(tokens(json.dumps(block)) for block in blocks) + 180
        for number, block in enumerate(blocks):
            last = number + 1 == len(blocks)
            usage = {"input_tokens": 3, "cache_creation_input_tokens": sent - 3 - read, "cache_read_input_tokens": read,
                     "cache_creation": {"ephemeral_5m_input_tokens": sent - 3 - read, "ephemeral_1h_input_tokens": 0},
                     # As the program writes it: only the last record of an answer has all of its output.
                     "output_tokens": output if last else 1}
            message = {"id": f"msg_{self.session[:8]}{self.calls:04}", "type": "message", "role": "assistant", "model": model,
                       "content": [block], "stop_reason": ("tool_use" if call else "end_turn") if last else None, "usage": usage}
            self.add("assistant", 4, requestId=f"req_{self.session[:8]}{self.calls:04}", message=message)
        self.history += output

    def compact(self, summary):
        boundary = {"subtype": "compact_boundary", "content": "Conversation compacted", "logicalParentUuid": self.parent}
        self.parent = None
        self.add("system", 30, **boundary)
        self.history = tokens(summary)
        # Tools and system prompt stay in the cache.
        self.caches = {model: (HIDDEN, since) for model, (_, since) in self.caches.items()}
        self.add("user", 1, isCompactSummary=True, message={"role": "user", "content": summary})

    def write(self, folder):
        path = HERE / folder / f"{self.session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in self.lines))


def steps(name):
    """The task, and for each step what was said, what was called and what came of it."""
    history = json.loads((DATA / name).read_text())["history"]
    history = [message for message in history if not message.get("is_demo") and message["role"] != "system"]
    texts = lambda message: message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
    task, found = texts(history[0]), []
    for said, came in zip(history[1::2], history[2::2]):
        call = said.get("tool_calls")
        if call:
            function = call[0]["function"]
            arguments = function["arguments"]
            call = (function["name"], json.loads(arguments) if isinstance(arguments, str) else arguments)
        else:
            call = ("Bash", {"command": (said.get("action") or "").strip()})
        found.append((texts(said), call, texts(came)))
    return task, found


def play(log, task, found, events, think):
    log.user(task, 1)
    model = SONNET
    for number, (said, call, came) in enumerate(found):
        event, value = events.get(number, (None, None))
        model = value if event == "switch" else model
        if event == "compact":
            log.compact(value)
        log.answer(said, call, model)
        # What is to happen before the next answer: somebody approves a call late, or another day.
        event, value = events.get(number + 1, (None, None))
        if event in ("pause", "resume"):
            log.now += timedelta(minutes=value)
        if event == "resume":  # another version says other things to begin with
            log.version, log.caches = "2.1.64", {}
        log.user([{"type": "tool_result", "tool_use_id": f"toolu_{log.calls:04}", "content": came}], think)
    log.answer("Done.", None, model)


marshmallow = Log("5f0c2a61-7d3b-4c1e-9a55-0b8f3e2d1c00", "/src/marshmallow", "2026-11-19T08:58:00")
marshmallow.title("Round time deltas instead of cutting them off")
task, found = steps("marshmallow-1867.function-calling-long.traj")
play(marshmallow, task, found, {4: ("pause", 43), 7: ("switch", OPUS), 9: ("switch", SONNET)}, 9)
marshmallow.write("claude/projects/-src-marshmallow")

katy = Log("9b1e77d4-21aa-4f0e-8c39-64d2a7f05e00", "/src/katy", "2026-11-20T13:20:00")
katy.title("Katy, a cryptography challenge")
task, found = steps("ctf-katy.traj")
summary = "This session continues an earlier one. " + " ".join(said + came[:900] for said, _, came in found[:9])
play(katy, task, found, {5: ("resume", 2), 9: ("compact", summary), 13: ("pause", 88)}, 12)
katy.write("claude/projects/-src-katy")
