//! Session logs of other agents: read, and written back without a difference.

use contexture_ir::Raw;
use contexture_sessions::{
    ReadOptions, Session, SessionFormat, UsageReader, detect_format, read_sessions, write_sessions,
};
use contexture_testdata as testdata;
use serde_json::Value;

use crate::input::{
    assert_bounded, assert_same_value, join_choice, pick_short, split_text_choice, value_of,
};

/// A log, read as the format that the input says and as the one that is detected.
pub(crate) fn check_sessions(data: &[u8]) {
    let Some((format, text)) = split_text_choice(&SessionFormat::ALL, data) else {
        return;
    };
    check_format(format, text);
    check_usage(format, text);
    if let Ok(detected) = detect_format(text, "session.jsonl")
        && detected.format != format
    {
        check_format(detected.format, text);
    }
}

/// Whatever a log says: calls stand in the order of their records, each goes on from an earlier one, and each line was read.
fn check_usage(format: SessionFormat, text: &str) {
    let Some(mut reader) = UsageReader::new(format) else {
        return;
    };
    text.lines().for_each(|line| reader.read_line(line));
    let usage = reader.finish();
    assert!(usage.damaged_lines <= usage.records);
    assert!(usage.context_starts.is_sorted());
    for (index, call) in usage.calls.iter().enumerate() {
        assert!(call.previous.is_none_or(|previous| previous < index));
        assert!(call.record < usage.records);
    }
}

fn check_format(format: SessionFormat, text: &str) {
    let strict = ReadOptions::default();
    let lenient = ReadOptions {
        keep_going: true,
        source_name: "session.jsonl",
    };
    let read = read_sessions(format, text, &strict);
    let Ok(sessions) = read_sessions(format, text, &lenient) else {
        assert!(read.is_err(), "what is bad is set aside, yet refused");
        return;
    };
    for session in &sessions {
        check_tree(session);
    }
    let Ok(written) = write_sessions(format, &sessions) else {
        return;
    };
    assert_bounded(format.as_str(), text.len(), written.len());
    let again = read_sessions(format, &written, &lenient)
        .unwrap_or_else(|error| panic!("{}: {error}\n{written}", format.as_str()));
    assert_eq!(again.len(), sessions.len(), "{}", format.as_str());
    // A run of tau-bench that cannot be read belongs to no session, so it is in nothing that is written.
    let is_incomplete = format == SessionFormat::TauBench
        && sessions.iter().any(|session| !session.skipped.is_empty());
    if !matches!(format, SessionFormat::Wire(_)) && !is_incomplete {
        check_lines(format, &written, text);
    }
}

/// A log is one JSON value, or its lines are: those that are JSON are written back as the same values, others as they
/// were.
fn check_lines(format: SessionFormat, written: &str, text: &str) {
    let what = format.as_str();
    if Raw::parse(text).is_ok() {
        return assert_same_value(what, written, text);
    }
    let lines = |text: &'_ str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.map(str::to_owned).collect()
    };
    let (written, read) = (lines(written), lines(text));
    assert_eq!(written.len(), read.len(), "{what}");
    for (written, read) in written.iter().zip(&read) {
        match Raw::parse(read.as_str()) {
            Ok(_) => assert_same_value(what, written, read),
            Err(_) => assert_eq!(written, read, "{what}"),
        }
    }
}

/// Parents stand before their children, and heads are nodes.
fn check_tree(session: &Session) {
    for (index, node) in session.tree.iter().enumerate() {
        assert!(node.parent.is_none_or(|parent| parent < index));
    }
    for head in &session.heads {
        assert!(head.node < session.tree.len());
        assert_eq!(session.path_to(head.node).last(), Some(&head.node));
    }
}

/// Beginnings of recorded logs of all programs.
pub(crate) fn logs() -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    for name in testdata::list_files("claude-code") {
        if name.ends_with(".jsonl") {
            let text = testdata::read_text(&format!("claude-code/{name}"));
            texts.push(first_lines(&text, 6));
            texts.push(text);
        }
    }
    texts.extend([CODEX, DEEP_AGENTS, UI_CHAT, TAU_BENCH].map(str::to_owned));
    let runs = value_of(&testdata::tau_bench()).unwrap();
    for run in runs.as_array().unwrap().iter().take(4) {
        let mut run = run.clone();
        shorten(&mut run["traj"]);
        texts.push(Value::Array(vec![run]).to_string());
    }
    for (_, text) in testdata::swe_agent() {
        let mut trajectory = value_of(&text).unwrap();
        shorten(&mut trajectory["history"]);
        shorten(&mut trajectory["trajectory"]);
        texts.push(trajectory.to_string());
    }
    let inputs = pick_short(texts, 40).into_iter();
    // The format of most seeds is detected; the choice only adds another.
    inputs
        .enumerate()
        .map(|(index, text)| join_choice(index % SessionFormat::ALL.len(), text))
        .collect()
}

fn first_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().take(count).collect();
    lines.join("\n")
}

/// Leaves the first elements of a list, without long texts.
fn shorten(list: &mut Value) {
    if let Some(list) = list.as_array_mut() {
        list.retain(|entry| entry.to_string().len() < 2_000);
        list.truncate(6);
    }
}

/// A short rollout of Codex.
const CODEX: &str = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"01a1f8fc-f63c-7c23-b95e-14cf68d4e41d","cwd":"/w","base_instructions":{"text":"Be brief."}}}
{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}
{"timestamp":"2026-01-01T00:00:01Z","type":"event_msg","payload":{"type":"user_message","message":"hi"}}
{"timestamp":"2026-01-01T00:00:02Z","type":"response_item","payload":{"type":"function_call","call_id":"c","name":"shell","arguments":"{\"command\":[\"ls\"]}"}}
{"timestamp":"2026-01-01T00:00:03Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"a\nb"}}
{"timestamp":"2026-01-01T00:00:04Z","type":"turn_context","payload":{"model":"gpt-5"}}
{"timestamp":"2026-01-01T00:00:05Z","type":"compacted","payload":{"message":"short"}}
"#;

/// A chat of the DeepAgents library.
const DEEP_AGENTS: &str = r#"{"chat":{"id":"c1","userId":"u","title":"T","metadata":null,"createdAt":1,"updatedAt":2},"messages":[{"id":"m1","chatId":"c1","parentId":null,"name":"user","type":"message","data":"{\"id\":\"m1\",\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"hi\"}]}","persist":1,"createdAt":1}],"branches":[{"id":"b","chatId":"c1","name":"main","headMessageId":"m1","isActive":1,"createdAt":1}],"checkpoints":[{"id":"k","chatId":"c1","name":"save","messageId":"m1","createdAt":1}]}"#;

/// A request of the AI SDK's chat.
const UI_CHAT: &str = r#"{"id":"chat","messages":[{"id":"","role":"system","parts":[{"type":"text","text":"s"}]},{"id":"a","role":"user","parts":[{"type":"text","text":"hi"}],"createdAt":1},{"id":"a","role":"assistant","metadata":{"n":1},"parts":[{"type":"step-start"},{"type":"data-x","data":1},{"type":"text","text":"yo"}]}],"trigger":"submit-message"}"#;

/// A run of tau-bench with a tool's name that its API refuses.
const TAU_BENCH: &str = r#"[{"task_id":0,"reward":0.0,"traj":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"users.find%","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","name":"users.find%","content":"none"}],"trial":0}]"#;
