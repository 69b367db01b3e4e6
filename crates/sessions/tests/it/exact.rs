//! Every recorded session comes back as the same JSON values.

use contexture_sessions::{
    ReadOptions, Session, SessionFormat, detect_format, read_sessions, write_session,
    write_sessions,
};
use contexture_testdata as testdata;
use contexture_wire::Format;
use serde_json::Value;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Reads a file by what is detected, and checks what holds of every session.
pub(crate) fn open(text: &str, name: &str) -> (SessionFormat, Vec<Session>) {
    let options = ReadOptions {
        keep_going: true,
        source_name: name,
    };
    let format = detect_format(text, name).unwrap().format;
    let sessions = read_sessions(format, text, &options).unwrap();
    for session in &sessions {
        assert_eq!(session.format, format);
        assert!(!session.source_id.is_empty());
        for (index, node) in session.tree.iter().enumerate() {
            assert!(node.parent.is_none_or(|parent| parent < index));
            assert_eq!(node.imported, Some(index));
        }
        assert!(
            session
                .heads
                .iter()
                .all(|head| head.node < session.tree.len())
        );
        assert_eq!(session.heads.is_empty(), session.tree.is_empty());
    }
    (format, sessions)
}

#[test]
fn all_tau_bench_runs() {
    let text = testdata::tau_bench();
    let (format, sessions) = open(&text, "gpt-4o-airline.json");
    assert_eq!(format, SessionFormat::TauBench);
    let Value::Array(runs) = value(&text) else {
        panic!()
    };
    assert_eq!((runs.len(), sessions.len()), (200, 200));
    for (run, session) in runs.iter().zip(&sessions) {
        let messages = run["traj"].as_array().unwrap().len();
        assert_eq!(session.instructions.len(), 1);
        assert!(session.tree.len() + 1 >= messages, "{}", session.source_id);
        assert_eq!(&value(&write_session(format, session).unwrap()), run);
        assert!(session.title.is_some());
    }
    assert_eq!(
        value(&write_sessions(format, &sessions).unwrap()),
        value(&text)
    );
    let mut ids: Vec<&str> = sessions.iter().map(|s| s.source_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 200);
}

/// A call of a tool whose name OpenAI refuses, as other providers take it.
#[test]
fn a_tau_bench_run_keeps_names_that_its_api_refuses() {
    let run = r#"[{"task_id":1,"traj":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"users.find%","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","name":"users.find%","content":"none"}]}]"#;
    let (format, mut sessions) = open(run, "t.json");
    let written = write_sessions(format, &sessions).unwrap();
    assert_eq!(value(&written), value(run));
    // A session that went on is written from its items.
    let session = &mut sessions[0];
    let last = session.tree.len() - 1;
    let mut answer = session.tree[0].clone();
    (answer.parent, answer.imported) = (Some(last), None);
    session.tree.push(answer);
    session.heads[0].node = last + 1;
    let written = value(&write_session(format, session).unwrap());
    assert_eq!(written["traj"].as_array().unwrap().len(), 4);
    assert_eq!(written["traj"][3]["content"], "hi");
}

#[test]
fn all_swe_agent_trajectories() {
    let files = testdata::swe_agent();
    assert_eq!(files.len(), 5);
    for (name, text) in files {
        let (format, sessions) = open(&text, &name);
        assert_eq!(format, SessionFormat::SweAgent, "{name}");
        let session = &sessions[0];
        assert_eq!(session.instructions.len(), 1, "{name}");
        let history = value(&text)["history"].as_array().unwrap().len();
        assert!(session.tree.len() + 1 >= history, "{name}");
        assert_eq!(
            value(&write_session(format, session).unwrap()),
            value(&text),
            "{name}"
        );
        // What the messages say is kept once, in the items.
        let kept = session.metadata.get();
        let head = session.heads[0].node;
        let last = session.tree[head].item.text();
        let said: String = last.lines().next().unwrap().chars().take(60).collect();
        let records = &value(kept)["records"];
        assert!(
            !records.to_string().contains(&said) || said.len() < 20,
            "{name}: {said}"
        );
    }
}

#[test]
fn function_calls_of_swe_agent_are_calls() {
    let (_, text) = testdata::swe_agent()
        .into_iter()
        .find(|(name, _)| name == "simple.function-calling.traj")
        .unwrap();
    let (_, sessions) = open(&text, "simple.function-calling.traj");
    let kinds: Vec<&str> = sessions[0]
        .tree
        .iter()
        .map(|node| node.item.kind())
        .collect();
    let calls = kinds
        .iter()
        .filter(|kind| **kind == "function_call")
        .count();
    let outputs = kinds
        .iter()
        .filter(|kind| **kind == "function_call_output")
        .count();
    assert_eq!((calls, outputs), (5, 5));
}

#[test]
fn claude_code_logs() {
    for name in testdata::list_files("claude-code") {
        if !name.ends_with(".jsonl") {
            continue;
        }
        let text = testdata::read_text(&format!("claude-code/{name}"));
        let (format, sessions) = open(&text, &name);
        assert_eq!(format, SessionFormat::ClaudeCode, "{name}");
        let written = write_session(format, &sessions[0]).unwrap();
        same_lines(&written, &text);
    }
}

/// Lines of JSON compare as values, others as text.
pub(crate) fn same_lines(written: &str, text: &str) {
    let cut = |text: &str| -> Vec<Result<Value, String>> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines
            .map(|line| serde_json::from_str(line).map_err(|_| line.to_owned()))
            .collect()
    };
    assert_eq!(cut(written), cut(text));
}

#[test]
fn recorded_provider_documents() {
    let mut count = 0;
    for (name, format) in [
        ("openai-chat", Format::OpenAiChat),
        ("openai-responses", Format::OpenAiResponses),
        ("anthropic", Format::Anthropic),
        ("gemini", Format::Gemini),
    ] {
        for exchange in testdata::exchanges(name) {
            if exchange.status != 200 {
                continue;
            }
            let text = exchange.request.get();
            let detected = detect_format(text, "request.json").unwrap();
            assert_eq!(
                detected.format,
                SessionFormat::Wire(format),
                "{}: {}",
                exchange.file,
                detected.evidence
            );
            let (_, sessions) = open(text, "request.json");
            let written = write_session(detected.format, &sessions[0]).unwrap();
            assert_eq!(
                value(&written),
                value(text),
                "{} {}",
                exchange.file,
                exchange.index
            );
            count += 1;
        }
    }
    assert!(count > 150, "{count}");
}

#[test]
fn ui_messages_with_any_ids() {
    let text = r#"{"id":"chat","messages":[
        {"id":"","role":"system","parts":[{"type":"text","text":"s"}]},
        {"id":"a","role":"user","parts":[{"type":"text","text":"hi"}],"createdAt":1},
        {"id":"a","role":"assistant","metadata":{"n":1},"parts":[{"type":"step-start"},{"type":"data-x","data":1},{"type":"text","text":"yo"}]},
        {"id":"","role":"assistant","parts":[]}],"trigger":"submit-message"}"#;
    let (format, sessions) = open(text, "chat.json");
    assert_eq!(format, SessionFormat::Wire(Format::Ui));
    assert_eq!(
        value(&write_session(format, &sessions[0]).unwrap()),
        value(text)
    );
    let mut ids: Vec<_> = sessions[0]
        .tree
        .iter()
        .map(|node| node.message_id.clone())
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    assert_eq!(sessions[0].instructions[0].content[0].as_text(), Some("s"));
}

#[test]
fn any_session_becomes_messages() {
    let (_, sessions) = open(&testdata::tau_bench(), "t.json");
    for format in Format::ALL {
        let text = write_session(SessionFormat::Wire(format), &sessions[0]).unwrap();
        contexture_wire::lift(format, &text).unwrap();
    }
    let error = write_session(SessionFormat::Codex, &sessions[0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a tau-bench session cannot be written as codex: write it as tau-bench or as a wire format"
    );
}
