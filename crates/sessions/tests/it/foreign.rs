//! Files that are damaged, or of programs we do not know: none is read as a session without items.

use contexture_sessions::{
    ReadOptions, Session, SessionError, SessionFormat, detect_format, read_sessions,
};

/// Detects and reads a file as every command does.
fn read(text: &str, name: &str, keep_going: bool) -> Result<Vec<Session>, SessionError> {
    let format = detect_format(text, name)?.format;
    let options = ReadOptions {
        keep_going,
        source_name: name,
    };
    read_sessions(format, text, &options)
}

/// Small files of other programs, and damaged ones, with the names they have.
const FILES: [(&str, &str); 23] = [
    // Amp: what was said stands in `text`.
    (
        "T-1.json",
        r#"{"v":3,"id":"T-1","created":1,"messages":[{"role":"user","text":"hi"},{"role":"assistant","text":"hello"}]}"#,
    ),
    // Droid, as its command line streams.
    (
        "droid.jsonl",
        r#"{"type":"system","subtype":"init","sessionId":"s","cwd":"/"}
{"type":"message","role":"user","id":"m","text":"hi","sessionId":"s"}
{"type":"tool_call","id":"c","toolName":"ls","sessionId":"s"}
{"type":"tool_result","id":"c","value":"a","sessionId":"s"}"#,
    ),
    // Qwen Code: linked as Claude Code's, with messages of Gemini's.
    (
        "qwen.jsonl",
        r#"{"uuid":"a","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"hi"}]}}
{"uuid":"b","parentUuid":"a","sessionId":"s","type":"system","subtype":"ui_telemetry"}
{"uuid":"c","parentUuid":"b","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"hello"}]}}"#,
    ),
    (
        "session-gemini.json",
        r#"{"sessionId":"s","projectHash":"h","messages":[{"id":"1","timestamp":"t","type":"user","content":"hi"}]}"#,
    ),
    (
        "opencode.json",
        r#"{"info":{"id":"ses_1"},"messages":[{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"hi"}]}]}"#,
    ),
    (
        "ui_messages.json",
        r#"[{"ts":1,"type":"say","say":"text","text":"hi"},{"ts":2,"type":"ask","ask":"followup","text":"?"}]"#,
    ),
    (
        "openhands.json",
        r#"[{"id":0,"source":"user","action":"message","args":{"content":"hi"}},{"id":1,"source":"agent","observation":"run","content":"x"}]"#,
    ),
    (
        "conversations.json",
        r#"[{"title":"t","mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["hi"]}}}}}]"#,
    ),
    (
        "claude-ai.json",
        r#"[{"uuid":"u","name":"n","chat_messages":[{"sender":"human","text":"hi"}]}]"#,
    ),
    (
        "copilot.jsonl",
        r#"{"type":"session.start","data":{"sessionId":"s"},"id":"a","timestamp":"t","parentId":null}
{"type":"user.message","data":{"content":"hi"},"id":"b","timestamp":"t","parentId":"a"}"#,
    ),
    (
        "context.jsonl",
        "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assistant\",\"content\":\"hello\"}\n",
    ),
    (
        "run.json",
        r#"{"id":"r","run_type":"llm","inputs":{"messages":[[{"kwargs":{"content":"hi"}}]]},"outputs":{}}"#,
    ),
    (
        "pi.jsonl",
        r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}
{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#,
    ),
    (
        "aider.chat.history.md",
        "# aider chat started at 2025-05-01\n\n#### hi\n\nHello.\n",
    ),
    // Logs of programs we know in which nothing was said.
    (
        "rollout-1.jsonl",
        r#"{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}
{"timestamp":"t","type":"event_msg","payload":{"type":"token_count"}}"#,
    ),
    (
        "claude.jsonl",
        r#"{"type":"summary","summary":"s","leafUuid":"l"}
{"type":"system","uuid":"a","parentUuid":null,"sessionId":"s","content":"x"}"#,
    ),
    ("x.traj", r#"{"history":[],"trajectory":[],"info":{}}"#),
    (
        "tau.json",
        r#"[{"task_id":1,"traj":[]},{"task_id":2,"traj":[]}]"#,
    ),
    // Damaged ones.
    (
        "rollout-2.jsonl",
        r#"{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"robot","content":[]}}
{"timestamp":"t","type":"response_item","payload":{"type":"mess"#,
    ),
    (
        "cut.jsonl",
        r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","contenst":"hi"}}
{"type":"assistant","uuid":"b","paren"#,
    ),
    ("cut.json", r#"{"messages":[{"role":"user","content":"h"#),
    ("empty.jsonl", ""),
    ("zeros.jsonl", "\0\0\0\0\n\0\0"),
];

#[test]
fn no_foreign_or_damaged_file_is_an_empty_session() {
    for (name, text) in FILES {
        for keep_going in [false, true] {
            let error = match read(text, name, keep_going) {
                Err(error) => error,
                Ok(sessions) => panic!("{name}: {sessions:?}"),
            };
            let message = error.to_string();
            match error {
                SessionError::Unknown { .. } | SessionError::NoItems { .. } => assert!(
                    message.contains("claude-code, codex or deepagents"),
                    "{message}"
                ),
                SessionError::NotJson { .. } | SessionError::Record { .. } => {}
                other => panic!("{name}: {other}"),
            }
        }
    }
}

/// A file that was declared to be of a format, and of whose messages nothing is read in it.
#[test]
fn messages_without_content_are_no_session() {
    let chat = r#"{"messages":[{"role":"user","text":"hi"},{"role":"assistant","text":"hello"}]}"#;
    let items = r#"[{"type":"message","role":"user","text":"hi"}]"#;
    let input = r#"{"input":[{"role":"user","text":"hi"}]}"#;
    let empty = r#"[{"role":"user","content":""}]"#;
    let files = [
        ("openai-chat", chat),
        ("openai-chat", empty),
        ("openai-responses", input),
        ("items", items),
    ];
    for (name, text) in files {
        let format: SessionFormat = name.parse().unwrap();
        let read = read_sessions(format, text, &ReadOptions::default());
        assert!(
            matches!(read, Err(SessionError::NoItems { .. })),
            "{name}: {read:?}"
        );
    }
    // One message that says something is a session.
    let more = chat.replacen('[', r#"[{"role":"user","content":"x"},"#, 1);
    let format = SessionFormat::Wire(contexture_wire::Format::OpenAiChat);
    let sessions = read_sessions(format, &more, &ReadOptions::default()).unwrap();
    assert_eq!(sessions[0].tree.len(), 3);
}

/// A record in the middle that is not understood is listed; what stands around it is read, and all of it is written back.
#[test]
fn what_is_not_understood_is_listed_and_kept() {
    let claude = |uuid: &str, parent: &str, role: &str, content: &str| {
        format!(
            r#"{{"type":"{role}","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","message":{{"role":"{role}","content":{content}}}}}"#
        )
    };
    let codex = |payload: &str| format!(r#"{{"type":"response_item","payload":{payload}}}"#);
    let said = |text: &str| {
        codex(&format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#
        ))
    };
    let logs = [
        // A call without an id.
        [
            claude("a", "null", "user", "\"one\""),
            claude(
                "b",
                "\"a\"",
                "assistant",
                r#"[{"type":"tool_use","name":"f","input":{}}]"#,
            ),
            claude("c", "\"b\"", "user", "\"two\""),
        ],
        // A record of a type that is not known, with words in it.
        [
            claude("a", "null", "user", "\"one\""),
            claude("b", "\"a\"", "guest", "\"x\""),
            claude("c", "\"b\"", "user", "\"two\""),
        ],
        [
            said("one"),
            codex(r#"{"type":"function_call","call_id":"c","name":7,"arguments":"{}"}"#),
            said("two"),
        ],
        [
            said("one"),
            r#"{"type":"newer_item","payload":{"role":"user","content":"x"}}"#.to_owned(),
            said("two"),
        ],
    ];
    for lines in logs {
        let text = lines.map(|line| line + "\n").concat();
        let session = read(&text, "x.jsonl", false).unwrap().remove(0);
        let numbers: Vec<usize> = session.skipped.iter().map(|one| one.number).collect();
        assert_eq!(numbers, [2], "{text}");
        let path = session.path_to(session.heads[0].node);
        let texts: Vec<String> = path
            .into_iter()
            .map(|node| session.tree[node].item.text())
            .collect();
        assert_eq!(texts, ["one", "two"], "{text}");
        let written = contexture_sessions::write_session(session.format, &session).unwrap();
        crate::exact::same_lines(&written, &text);
    }
}

/// However a log is cut, what is read of it is something or an error.
#[test]
fn a_cut_log_is_never_empty() {
    let logs = [
        include_str!("../fixtures/codex/rollout-tools.jsonl").to_owned(),
        contexture_testdata::read_text("claude-code/session_b.jsonl"),
    ];
    for text in logs {
        let ends = (0..text.len()).step_by(997);
        for end in ends.filter(|end| text.is_char_boundary(*end)) {
            for keep_going in [false, true] {
                if let Ok(sessions) = read(&text[..end], "rollout-cut.jsonl", keep_going) {
                    let session = &sessions[0];
                    let says = !session.tree.is_empty() || !session.instructions.is_empty();
                    assert!(says, "{end}");
                }
            }
        }
    }
}
