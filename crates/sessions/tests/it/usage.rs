//! What the calls of a log used.

use contexture_sessions::{
    AnswerIdentity, LogEvent, LogUsage, ReadOptions, SessionFormat, UsageReader, read_sessions,
};
use contexture_testdata as testdata;
use serde_json::{Value, json};

const TOOLS: &str = include_str!("../fixtures/codex/rollout-tools.jsonl");
const HELLO: &str = include_str!("../fixtures/codex/rollout-hello.jsonl");
const CLAUDE: [&str; 2] = [
    include_str!(
        "../../../../examples/agent-logs/claude/projects/-src-katy/9b1e77d4-21aa-4f0e-8c39-64d2a7f05e00.jsonl"
    ),
    include_str!(
        "../../../../examples/agent-logs/claude/projects/-src-marshmallow/5f0c2a61-7d3b-4c1e-9a55-0b8f3e2d1c00.jsonl"
    ),
];

fn read(format: SessionFormat, text: &str) -> LogUsage {
    let mut reader = UsageReader::new(format).unwrap();
    text.lines().for_each(|line| reader.read_line(line));
    reader.finish()
}

fn claude(records: &[Value]) -> LogUsage {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    read(SessionFormat::ClaudeCode, &text)
}

fn codex(records: &[Value]) -> LogUsage {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    read(SessionFormat::Codex, &text)
}

/// Input, read, written and output tokens over all calls.
fn sums(usage: &LogUsage) -> [u64; 4] {
    usage.calls.iter().fold([0; 4], |sum, call| {
        let tokens = call.tokens;
        let more = [
            tokens.input(),
            tokens.cache_read,
            tokens.written(),
            tokens.output,
        ];
        std::array::from_fn(|at| sum[at] + more[at])
    })
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

/// The same sums from the lines of a Claude Code log: the largest usage of each message id.
fn claude_sums(text: &str) -> [u64; 4] {
    let mut answers: Vec<(String, [u64; 4])> = Vec::new();
    for line in text.lines() {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let message = &record["message"];
        if record["type"] != "assistant" || message["usage"].is_null() {
            continue;
        }
        let usage = &message["usage"];
        let read = number(usage, "cache_read_input_tokens");
        let written = number(usage, "cache_creation_input_tokens");
        let all = number(usage, "input_tokens") + read + written;
        let new = [all, read, written, number(usage, "output_tokens")];
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        match answers.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) if known[3] < new[3] => *known = new,
            Some(_) => {}
            None => answers.push((id, new)),
        }
    }
    answers.iter().fold([0; 4], |sum, (_, one)| {
        std::array::from_fn(|at| sum[at] + one[at])
    })
}

/// The sums of a rollout: its last running total.
fn codex_sums(text: &str) -> [u64; 4] {
    let mut totals = text.lines().rev().filter_map(|line| {
        let record: Value = serde_json::from_str(line).ok()?;
        let total = &record["payload"]["info"]["total_token_usage"];
        (!total.is_null()).then(|| total.clone())
    });
    let total = totals.next().unwrap_or(Value::Null);
    [
        "input_tokens",
        "cached_input_tokens",
        "cache_write_input_tokens",
        "output_tokens",
    ]
    .map(|name| number(&total, name))
}

#[test]
fn totals_are_those_of_the_lines() {
    let recorded = [
        "claude-code/representative_messages.jsonl",
        "claude-code/edge_cases.jsonl",
        "claude-code/session_b.jsonl",
        "claude-code/todowrite_examples.jsonl",
    ];
    let recorded = recorded.map(testdata::read_text);
    for text in recorded.iter().map(String::as_str).chain(CLAUDE) {
        let usage = read(SessionFormat::ClaudeCode, text);
        assert_eq!(sums(&usage), claude_sums(text));
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let is_object = |line: &&str| line.trim_start().starts_with('{');
        let sound = |line: &&str| is_object(line) && serde_json::from_str::<Value>(line).is_ok();
        assert_eq!(
            usage.damaged_lines,
            lines.filter(|line| !sound(line)).count()
        );
    }
    for text in [TOOLS, HELLO] {
        assert_eq!(sums(&read(SessionFormat::Codex, text)), codex_sums(text));
    }
}

#[test]
fn calls_know_their_session() {
    let usage = read(SessionFormat::Codex, TOOLS);
    assert!(
        usage
            .project
            .is_some_and(|folder| folder.ends_with("/dev/notes"))
    );
    assert_eq!(usage.title.as_deref(), Some("What do the notes say?"));
    assert!(usage.calls.iter().all(|call| call.model == "gpt-5.1-codex"));
    assert_eq!(usage.calls.len(), 4);
    let usage = read(SessionFormat::ClaudeCode, CLAUDE[0]);
    assert_eq!(usage.project.as_deref(), Some("/src/katy"));
    assert!(usage.calls.iter().all(|call| !call.is_unfinished));
    assert_eq!(usage.context_starts.len(), 1);
}

/// A call names the record its answer begins with, and the node of that record is the answer's first.
#[test]
fn calls_name_the_records_of_their_answers() {
    for (format, text) in [
        (SessionFormat::Codex, TOOLS),
        (SessionFormat::ClaudeCode, CLAUDE[0]),
    ] {
        let usage = read(format, text);
        let sessions = read_sessions(format, text, &ReadOptions::default()).unwrap();
        let records = sessions[0].node_records();
        assert_eq!(records.len(), sessions[0].tree.len());
        for call in &usage.calls {
            let node = records.iter().position(|record| *record == call.record);
            let node = &sessions[0].tree[node.unwrap()];
            assert_eq!(node.origin, contexture_ir::Origin::Model, "{call:?}");
        }
    }
}

fn said(uuid: &str, parent: Option<&str>, more: &Value) -> Value {
    let mut record = json!({
        "type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "cwd": "/p",
        "timestamp": "2026-11-20T10:00:00Z", "message": {"role": "user", "content": uuid},
    });
    for (name, value) in more.as_object().unwrap() {
        record[name] = value.clone();
    }
    record
}

fn answer(uuid: &str, parent: &str, id: &str, output: u64, stop: Option<&str>) -> Value {
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 9_000, "cache_creation_input_tokens": 500,
        "cache_creation": {"ephemeral_1h_input_tokens": 400}, "output_tokens": output});
    let message = json!({"id": id, "role": "assistant", "model": "claude-sonnet-5", "stop_reason": stop,
        "content": [], "usage": usage});
    said(
        uuid,
        Some(parent),
        &json!({"type": "assistant", "requestId": "r", "message": message}),
    )
}

#[test]
fn an_answer_in_several_records_counts_once() {
    let usage = claude(&[
        said("a", None, &json!({})),
        answer("b", "a", "m1", 1, None),
        answer("c", "b", "m1", 1, None),
        answer("d", "c", "m1", 120, Some("end_turn")),
        said("e", Some("d"), &json!({})),
        answer("f", "e", "m2", 1, None),
    ]);
    assert_eq!(sums(&usage), [19_006, 18_000, 1_000, 121]);
    assert_eq!(usage.calls[0].tokens.cache_write_long, 400);
    assert_eq!(usage.calls[1].previous, Some(0));
    let unfinished: Vec<bool> = usage.calls.iter().map(|call| call.is_unfinished).collect();
    assert_eq!(unfinished, [false, true]);
}

#[test]
fn answers_of_no_model_are_no_calls() {
    let mut own = answer("b", "a", "m1", 0, Some("end_turn"));
    own["message"]["model"] = "<synthetic>".into();
    let usage = claude(&[said("a", None, &json!({})), own]);
    assert!(usage.calls.is_empty());
}

/// Each event, by the record that shows it between two calls.
#[test]
fn events_of_claude_code_are_found() {
    let command = |name: &str| {
        let text = format!("<command-name>{name}</command-name>");
        json!({"message": {"role": "user", "content": text}})
    };
    let rows = [
        (json!({}), None),
        (json!({"isCompactSummary": true}), Some(LogEvent::Compacted)),
        (
            json!({"type": "system", "subtype": "compact_boundary"}),
            Some(LogEvent::Compacted),
        ),
        (
            json!({"type": "system", "subtype": "microcompact_boundary"}),
            Some(LogEvent::Cleared),
        ),
        (json!({"version": "2"}), Some(LogEvent::Resumed)),
        (
            json!({"type": "progress", "data": {"hookName": "SessionStart:resume"}}),
            Some(LogEvent::Resumed),
        ),
        (
            json!({"type": "attachment", "attachment": {"type": "deferred_tools_delta"}}),
            Some(LogEvent::ToolsChanged),
        ),
        (command("/mcp"), Some(LogEvent::ToolsChanged)),
        (command("/output-style"), Some(LogEvent::SettingsChanged)),
        (
            json!({"thinkingMetadata": {"level": "none"}}),
            Some(LogEvent::SettingsChanged),
        ),
    ];
    let first = json!({"version": "1", "thinkingMetadata": {"level": "high"}});
    for (shown, event) in rows {
        let usage = claude(&[
            said("a", None, &first),
            answer("b", "a", "m1", 9, Some("tool_use")),
            said("c", Some("b"), &shown),
            answer("d", "c", "m2", 9, Some("end_turn")),
        ]);
        let found = usage.calls[1].events;
        let all = [
            LogEvent::Compacted,
            LogEvent::Cleared,
            LogEvent::Resumed,
            LogEvent::ToolsChanged,
            LogEvent::SettingsChanged,
            LogEvent::TakenBack,
        ];
        for one in all {
            assert_eq!(found.contains(one), event == Some(one), "{shown} {one:?}");
        }
    }
}

#[test]
fn a_second_way_on_takes_back_the_first() {
    let usage = claude(&[
        said("a", None, &json!({})),
        answer("b", "a", "m1", 9, Some("end_turn")),
        said("c", Some("b"), &json!({})),
        answer("d", "c", "m2", 9, Some("end_turn")),
        said("e", Some("b"), &json!({})),
        answer("f", "e", "m3", 9, Some("end_turn")),
        said("g", None, &json!({"isSidechain": true})),
    ]);
    assert_eq!(usage.calls[2].previous, Some(0));
    assert!(usage.calls[2].events.contains(LogEvent::TakenBack));
    assert!(!usage.calls[1].events.contains(LogEvent::TakenBack));
}

fn event(kind: &str, more: &Value) -> Value {
    let mut payload = more.clone();
    payload["type"] = kind.into();
    json!({"timestamp": "2026-11-20T10:00:00Z", "type": "event_msg", "payload": payload})
}

fn counts(input: u64, cached: u64, output: u64) -> Value {
    json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output})
}

fn token_count(total: Value, last: Value) -> Value {
    let info = json!({"total_token_usage": total, "last_token_usage": last});
    event("token_count", &json!({ "info": info }))
}

fn meta(id: &str, more: &Value) -> Value {
    let mut payload = more.clone();
    payload["id"] = id.into();
    json!({"type": "session_meta", "payload": payload})
}

#[test]
fn totals_of_codex_count_once() {
    let record = json!({"type": "token_usage_record", "payload": {"usage": counts(100, 10, 5)}});
    let usage = codex(&[
        meta("x", &json!({})),
        record,
        token_count(counts(100, 10, 5), counts(100, 10, 5)),
        token_count(counts(100, 10, 5), counts(100, 10, 5)),
        event("token_count", &json!({"info": null})),
        token_count(counts(350, 110, 12), counts(250, 100, 7)),
        // Begun anew: only the last answer is sure.
        token_count(counts(40, 0, 2), counts(40, 0, 2)),
    ]);
    assert_eq!(usage.calls.len(), 3);
    assert_eq!(sums(&usage), [390, 110, 0, 14]);
}

#[test]
fn a_fork_inherits_a_baseline() {
    let usage = codex(&[
        meta(
            "y",
            &json!({"forked_from_id": "x", "thread_source": "subagent"}),
        ),
        token_count(counts(90_000, 80_000, 700), counts(0, 0, 0)),
        token_count(counts(90_500, 80_400, 720), counts(500, 400, 20)),
    ]);
    assert!(usage.is_fork && usage.calls[0].is_side);
    assert_eq!(sums(&usage), [500, 400, 0, 20]);
    assert!(matches!(usage.calls[0].identity, AnswerIdentity::Total(_)));
}

#[test]
fn events_of_codex_are_found() {
    let context = |effort: &str| json!({"type": "turn_context", "payload": {"model": "gpt-5.1-codex", "effort": effort}});
    let rows = [
        (event("agent_message", &json!({})), None),
        (
            event("context_compacted", &json!({})),
            Some(LogEvent::Compacted),
        ),
        (
            json!({"type": "compacted", "payload": {"message": "short"}}),
            Some(LogEvent::Compacted),
        ),
        (
            event("thread_rolled_back", &json!({"num_turns": 1})),
            Some(LogEvent::TakenBack),
        ),
        (
            event("mcp_startup_complete", &json!({})),
            Some(LogEvent::ToolsChanged),
        ),
        (meta("x", &json!({})), Some(LogEvent::Resumed)),
        (context("low"), Some(LogEvent::SettingsChanged)),
        (context("high"), None),
    ];
    for (shown, event) in rows {
        let usage = codex(&[
            meta("x", &json!({})),
            context("high"),
            token_count(counts(10, 0, 1), counts(10, 0, 1)),
            shown.clone(),
            token_count(counts(20, 0, 2), counts(10, 0, 1)),
        ]);
        let all = [
            LogEvent::Compacted,
            LogEvent::Resumed,
            LogEvent::ToolsChanged,
            LogEvent::SettingsChanged,
            LogEvent::TakenBack,
        ];
        for one in all {
            let found = usage.calls[1].events.contains(one);
            assert_eq!(found, event == Some(one), "{shown} {one:?}");
        }
    }
}

#[test]
fn damaged_lines_are_counted() {
    let mut reader = UsageReader::new(SessionFormat::ClaudeCode).unwrap();
    for line in ["", "{\"type\":\"us", "[1]", "null"] {
        reader.read_line(line);
    }
    reader.skip_line();
    reader.read_line(&answer("b", "a", "m", 7, None).to_string());
    let usage = reader.finish();
    assert_eq!(
        (usage.damaged_lines, usage.first_damaged_line),
        (4, Some(2))
    );
    assert_eq!((usage.calls.len(), usage.calls[0].line), (1, 6));
}

/// At full length the time is measured: a gigabyte is to take less than half a minute.
#[test]
fn a_long_log_is_read_at_speed() {
    let is_soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let output = "a line of an output\n".repeat(300);
    let mut text = String::new();
    let steps = if is_soak { 20_000 } else { 200 };
    for step in 0..steps {
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": output}]);
        let parent = format!("a{}", step.max(1) - 1);
        let asked = json!({"message": {"role": "user", "content": result}});
        text.push_str(&format!(
            "{}\n",
            said(&format!("u{step}"), Some(&parent), &asked)
        ));
        let told = answer(
            &format!("a{step}"),
            &format!("u{step}"),
            &format!("m{step}"),
            9,
            None,
        );
        text.push_str(&format!("{told}\n"));
    }
    let start = std::time::Instant::now();
    let usage = read(SessionFormat::ClaudeCode, &text);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(usage.calls.len(), steps);
    // Two processors read two files at a time; a soak is built with little optimisation, so one of them has to do.
    let rate = text.len() as f64 / seconds;
    assert!(!is_soak || rate > 34e6, "{rate} bytes a second");
}
