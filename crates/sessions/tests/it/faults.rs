//! Bad records: named, or set aside.

use contexture_sessions::{ReadOptions, SessionFormat, read, write};
use contexture_testdata as testdata;

use crate::exact::same_lines;

fn fault(format: SessionFormat, text: &str) -> String {
    let error = read(format, text, &ReadOptions::default()).unwrap_err();
    error.to_string()
}

#[test]
fn the_first_bad_line_is_named() {
    let text = testdata::read("claude-code/edge_cases.jsonl");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        fault(SessionFormat::ClaudeCode, &text),
        "line 10: expected a Claude Code record, found no `content` in `message`: \
         {\"role\": \"user\", \"contenst\": [{\"type\": \"tool_result\", \"tool_…; 9 records were read"
    );
    let cut = format!("{}\n{}", lines[0], &lines[1][..40]);
    assert_eq!(
        fault(SessionFormat::ClaudeCode, &cut),
        "line 2: expected a Claude Code record, found truncated JSON; 1 records were read"
    );
    let other = format!("{}\n\n42\n", lines[0]);
    assert_eq!(
        fault(SessionFormat::ClaudeCode, &other),
        "line 3: expected a Claude Code record, found 42; 1 records were read"
    );
}

#[test]
fn bad_lines_are_set_aside_and_kept() {
    let text = testdata::read("claude-code/edge_cases.jsonl") + "\n{\"type\":\"user\",\"mess";
    let options = ReadOptions {
        keep_going: true,
        source_name: "edge.jsonl",
    };
    let session = read(SessionFormat::ClaudeCode, &text, &options)
        .unwrap()
        .remove(0);
    let numbers: Vec<usize> = session.skipped.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [10, 11, 13, 14, 15, 16, 18, 20]);
    assert_eq!(session.tree.len(), 12);
    same_lines(&write(SessionFormat::ClaudeCode, &session).unwrap(), &text);
}

#[test]
fn wrong_shapes_are_named() {
    let cases = [
        (
            SessionFormat::SweAgent,
            "{}",
            "not a swe-agent log: expected an object with `history`, an array of messages",
        ),
        (
            SessionFormat::SweAgent,
            r#"{"history":[{"role":"user","content":"a"},7]}"#,
            "message 2: expected a SWE-agent message, found 7; 1 records were read",
        ),
        (
            SessionFormat::TauBench,
            "[1]",
            "session 1: expected a tau-bench run, found 1; 0 records were read",
        ),
        (
            SessionFormat::TauBench,
            "[{\"traj\":",
            "not JSON, line 1 column 9",
        ),
        (
            SessionFormat::Codex,
            "{\"a\":1}",
            "line 1: expected a Codex rollout record, found an object without `type`: {\"a\":1}; 0 records were read",
        ),
    ];
    for (format, text, expected) in cases {
        assert_eq!(fault(format, text), expected, "{text}");
    }
}

#[test]
fn hostile_nesting_is_an_error_or_kept() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for format in SessionFormat::ALL {
        let _ = read(format, &deep, &ReadOptions::default());
        let object = format!(
            r#"{{"history":[{{"role":"user","content":{deep}}}],"traj":{deep},"messages":{deep}}}"#
        );
        let _ = read(format, &object, &ReadOptions::default());
    }
    assert!(contexture_sessions::detect(&deep, "").is_err());
}
