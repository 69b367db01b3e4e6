"""Trajectories: every recorded session, exported in the Agent Trajectory Interchange Format, is valid by the models of `atif`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from contexture import Engine

pytest.importorskip("atif")

from atif import Trajectory  # noqa: E402

DATA = Path(__file__).resolve().parents[4] / "crates" / "testdata" / "data"


def _sessions() -> list[Path]:
    kinds = ["swe-agent/*.traj", "tau-bench/*.json.gz", "claude-code/*.jsonl"]
    return sorted(file for kind in kinds for file in DATA.glob(kind))


def test_recorded_sessions_are_valid_trajectories(memory: Engine) -> None:
    steps = calls = results = 0
    for file in _sessions():
        data = file.read_bytes()
        if file.suffix == ".gz":
            data = gzip.decompress(data)
        imported = memory.import_session(data, name=file.name, keep_going=True)
        for one in imported.imported:
            text = memory.open(one.conversation, existing=True).export("atif")
            trajectory = Trajectory.model_validate_json(text)
            assert trajectory.schema_version == "ATIF-v1.8" and trajectory.steps
            for step in trajectory.steps:
                calls += len(step.tool_calls or ())
                results += len(step.observation.results) if step.observation else 0
            steps += len(trajectory.steps)
            # Read again it is the same, and what is said next stands behind it.
            again = Engine("memory:")
            back = again.import_session(text, conversation="back")
            assert back.imported[0].items > 0
            chat = again.open("back", existing=True)
            assert json.loads(chat.export("atif")) == json.loads(text)
            chat.append("And then?")
            longer = Trajectory.model_validate_json(chat.export("atif"))
            assert len(longer.steps) == len(trajectory.steps) + 1
            assert longer.steps[-1].source == "user" and longer.steps[-1].message == "And then?"
    print(f"{steps} steps, {calls} calls, {results} results")
    assert steps > 4_000 and results > 1_000


def test_a_trajectory_of_another_program_comes_back_as_it_was(memory: Engine) -> None:
    document = {
        "schema_version": "ATIF-v1.6",
        "session_id": "run-7",
        "agent": {"name": "other", "version": "2.0", "model_name": "m", "extra": {"x": 1}},
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be brief."},
            {"step_id": 2, "source": "user", "message": [
                {"type": "text", "text": "What is this?"},
                {"type": "image", "source": {"media_type": "image/png", "path": "images/1.png"}},
            ]},
            {"step_id": 3, "timestamp": "2026-03-01T10:00:00Z", "source": "agent", "model_name": "m", "message": "I look.",
             "reasoning_content": "A picture.", "tool_calls": [
                 {"tool_call_id": "c1", "function_name": "look", "arguments": {"at": [1, 2.50]}},
                 {"tool_call_id": "c2", "function_name": "list", "arguments": {}}],
             "observation": {"results": [
                 {"source_call_id": "c1", "content": "a cat", "extra": {"is_error": True}},
                 {"source_call_id": "c2", "content": ""}]},
             "metrics": {"prompt_tokens": 10, "cost_usd": 0.1}},
            {"step_id": 4, "source": "agent", "message": "ls", "observation": {"results": [{"content": "a.txt"}]}},
            {"step_id": 5, "source": "agent", "message": "It is a cat.", "extra": {"y": 2}},
        ],
        "final_metrics": {"total_steps": 5},
    }
    Trajectory.model_validate(document)
    memory.import_session(json.dumps(document), conversation="c")
    chat = memory.open("c", existing=True)
    assert json.loads(chat.export("atif")) == document
    messages = json.loads(chat.export("openai-chat"))
    assert [one["role"] for one in messages] == ["system", "user", "assistant", "tool", "tool", "assistant", "user", "assistant"]
    assert [hit.snippet for hit in memory.search("cat")]
