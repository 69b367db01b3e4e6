//! Logs to test with: those of the examples, and small ones that are written here.

use std::path::Path;

use contexture_sessions::{LogUsage, SessionFormat, UsageReader};
use serde_json::{Value, json};

/// A model whose prices and cache the catalogue knows.
pub(crate) const MODEL: &str = "claude-sonnet-5";

/// Reads the usage of a text.
pub(crate) fn read(format: SessionFormat, text: &str) -> LogUsage {
    let mut reader = UsageReader::new(format).unwrap();
    text.lines().for_each(|line| reader.read_line(line));
    reader.finish()
}

/// The example logs: their names, formats and texts.
pub(crate) fn examples() -> Vec<(String, SessionFormat, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agent-logs");
    let (claude, codex) = (SessionFormat::ClaudeCode, SessionFormat::Codex);
    let files = [
        (
            "claude/projects/-src-katy/9b1e77d4-21aa-4f0e-8c39-64d2a7f05e00.jsonl",
            claude,
        ),
        (
            "claude/projects/-src-marshmallow/5f0c2a61-7d3b-4c1e-9a55-0b8f3e2d1c00.jsonl",
            claude,
        ),
        (
            "codex/sessions/2026/11/20/rollout-2026-11-20T12-44-50-01a1f8fc-f63c-7c23-b95e-14cf68d4e41d.jsonl",
            codex,
        ),
    ];
    let read = |(name, format): (&str, SessionFormat)| {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        (name.to_owned(), format, text)
    };
    files.into_iter().map(read).collect()
}

/// An answer of Claude Code's log and what it used, for [`claude_log`].
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) id: String,
    /// Seconds after the answer before.
    pub(crate) pause: i64,
    pub(crate) model: String,
    pub(crate) read: u64,
    pub(crate) written: u64,
    pub(crate) long: bool,
    pub(crate) output: u64,
    /// Members of the user's record before it.
    pub(crate) before: Value,
    /// Index of the answer that it goes on from; the one before if `None`.
    pub(crate) after: Option<usize>,
}

impl Answer {
    pub(crate) fn new(id: &str, read: u64, written: u64) -> Self {
        Self {
            id: id.to_owned(),
            pause: 20,
            model: MODEL.to_owned(),
            read,
            written,
            long: false,
            output: 100,
            before: json!({}),
            after: None,
        }
    }
}

/// A Claude Code log of these answers, each to a user's record of its own.
pub(crate) fn claude_log(session: &str, folder: &str, answers: &[Answer]) -> LogUsage {
    let mut lines = String::new();
    let mut now = 1_795_170_000_000_i64;
    for (at, answer) in answers.iter().enumerate() {
        now += answer.pause * 1_000;
        let time = jiff::Timestamp::from_millisecond(now).unwrap().to_string();
        let above = answer.after.or(at.checked_sub(1));
        let mut asked = json!({
            "type": "user", "uuid": format!("u{at}"), "parentUuid": above.map(|above| format!("a{above}")),
            "sessionId": session, "cwd": folder, "timestamp": time, "version": "1",
            "message": {"role": "user", "content": "go on"},
        });
        for (name, value) in answer.before.as_object().unwrap() {
            asked[name] = value.clone();
        }
        let long = if answer.long { answer.written } else { 0 };
        let usage = json!({"input_tokens": 3, "cache_read_input_tokens": answer.read,
            "cache_creation_input_tokens": answer.written, "output_tokens": answer.output,
            "cache_creation": {"ephemeral_1h_input_tokens": long}});
        let told = json!({
            "type": "assistant", "uuid": format!("a{at}"), "parentUuid": format!("u{at}"), "sessionId": session,
            "timestamp": time,
            "message": {"id": answer.id, "role": "assistant", "model": answer.model, "content": [],
                "stop_reason": "end_turn", "usage": usage},
        });
        lines.push_str(&format!("{asked}\n{told}\n"));
    }
    read(SessionFormat::ClaudeCode, &lines)
}
