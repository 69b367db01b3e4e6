//! Bad records: named, or set aside.

use contexture_sessions::{ReadOptions, SessionFormat, read_sessions, write_session};
use contexture_testdata as testdata;
use contexture_wire::Format;

use crate::exact::same_lines;

fn fault(format: SessionFormat, text: &str) -> String {
    let error = read_sessions(format, text, &ReadOptions::default()).unwrap_err();
    error.to_string()
}

#[test]
fn the_first_damaged_line_is_named() {
    let text = testdata::read_text("claude-code/edge_cases.jsonl");
    let lines: Vec<&str> = text.lines().collect();
    let cut = format!("{}\n{}", lines[0], &lines[1][..40]);
    assert_eq!(
        fault(SessionFormat::ClaudeCode, &cut),
        "line 2: expected a Claude Code record, found truncated JSON; 1 record was read"
    );
    let other = format!("{}\n\n42,\n", lines[0]);
    assert_eq!(
        fault(SessionFormat::ClaudeCode, &other),
        "line 3: expected a Claude Code record, found broken JSON at column 3; 1 record was read"
    );
}

/// Whatever a line of JSON is, the records around it are read, and all of them are written back.
#[test]
fn lines_that_are_no_records_are_listed() {
    let claude = |uuid: &str, parent: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","message":{{"role":"user","content":"hi"}}}}"#
        )
    };
    let codex = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}"#;
    let logs = [
        (
            SessionFormat::ClaudeCode,
            claude("a", "null"),
            claude("b", "\"a\""),
        ),
        (SessionFormat::Codex, codex.to_owned(), codex.to_owned()),
    ];
    for (format, first, second) in logs {
        for line in [
            "\"massive error\"",
            "42",
            "[1]",
            "null",
            r#"{"silly":"this"}"#,
        ] {
            let text = format!("{first}\n{line}\n{second}\n");
            let session = read_sessions(format, &text, &ReadOptions::default())
                .unwrap()
                .remove(0);
            let [skipped] = session.skipped.as_slice() else {
                panic!("{text}: {:?}", session.skipped);
            };
            assert_eq!(skipped.number, 2);
            assert!(skipped.what.contains(line), "{}", skipped.what);
            assert_eq!(session.path_to(session.heads[0].node), [0, 1]);
            same_lines(&write_session(format, &session).unwrap(), &text);
        }
    }
    // A file of nothing else is of another program.
    for text in ["42\n[1]\n", "{\"a\":1}"] {
        let fault = fault(SessionFormat::Codex, text);
        assert!(fault.starts_with("no item was found"), "{fault}");
    }
}

#[test]
fn bad_lines_are_set_aside_and_kept() {
    let text = testdata::read_text("claude-code/edge_cases.jsonl") + "\n{\"type\":\"user\",\"mess";
    let options = ReadOptions {
        keep_going: true,
        source_name: "edge.jsonl",
    };
    let session = read_sessions(SessionFormat::ClaudeCode, &text, &options)
        .unwrap()
        .remove(0);
    let numbers: Vec<usize> = session.skipped.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [10, 11, 13, 14, 15, 16, 18, 20]);
    assert_eq!(session.tree.len(), 12);
    same_lines(
        &write_session(SessionFormat::ClaudeCode, &session).unwrap(),
        &text,
    );
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
            "message 2: expected a SWE-agent message, found 7; 1 record was read",
        ),
        (
            SessionFormat::TauBench,
            "[1]",
            "session 1: expected a tau-bench run, found 1; none before it was read",
        ),
        (
            SessionFormat::TauBench,
            "[{\"traj\":",
            "not JSON, line 1 column 9",
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
        let _ = read_sessions(format, &deep, &ReadOptions::default());
        let object = format!(
            r#"{{"history":[{{"role":"user","content":{deep}}}],"traj":{deep},"messages":{deep}}}"#
        );
        let _ = read_sessions(format, &object, &ReadOptions::default());
    }
    assert!(contexture_sessions::detect_format(&deep, "").is_err());
}

#[test]
fn bad_messages_of_documents_are_listed() {
    let good = r#"{"role":"user","content":"a"}"#;
    let odd = r#"{"role":"user","content":7}"#;
    let ui = |id: u32| {
        format!(r#"{{"id":"{id}","role":"user","parts":[{{"type":"text","text":"a"}}]}}"#)
    };
    let content = r#"{"role":"user","parts":[{"text":"a"}]}"#;
    let cases = [
        (
            Format::OpenAiChat,
            format!(r#"{{"model":"m","messages":[7,{good},{odd},{good}]}}"#),
        ),
        (Format::OpenAiChat, format!("[7,{good},{odd},{good}]")),
        (
            Format::OpenAiResponses,
            format!(r#"{{"model":"m","input":[7,{good},{odd},{good}]}}"#),
        ),
        (
            Format::Anthropic,
            format!(r#"{{"model":"m","messages":[7,{good},{odd},{good}]}}"#),
        ),
        (
            Format::Gemini,
            format!(r#"{{"contents":[7,{content},{{"role":"user","parts":7}},{content}]}}"#),
        ),
        (
            Format::Items,
            format!(r#"{{"items":[7,{good},{odd},{good}]}}"#),
        ),
        (
            Format::Ui,
            format!(r#"[7,{},{{"id":"x","role":"user"}},{}]"#, ui(1), ui(2)),
        ),
    ];
    let options = ReadOptions {
        keep_going: true,
        ..ReadOptions::default()
    };
    for (format, text) in cases {
        let format = SessionFormat::Wire(format);
        assert!(
            read_sessions(format, &text, &ReadOptions::default()).is_err(),
            "{text}"
        );
        let session = read_sessions(format, &text, &options).unwrap().remove(0);
        let numbers: Vec<usize> = session.skipped.iter().map(|one| one.number).collect();
        assert_eq!(
            (numbers.as_slice(), session.tree.len()),
            ([1, 3].as_slice(), 2),
            "{text}"
        );
        assert!(session.skipped.iter().all(|one| !one.what.is_empty()));
    }
    // Where no message is at fault there is nothing to set aside.
    let text = format!(r#"{{"model":7,"messages":[{good}]}}"#);
    assert!(read_sessions(SessionFormat::Wire(Format::OpenAiChat), &text, &options).is_err());
}

#[test]
fn bad_runs_are_listed() {
    let good =
        |id: u32| format!(r#"{{"task_id":{id},"traj":[{{"role":"user","content":"run {id}"}}]}}"#);
    let text = format!(r#"[7,{},{{"task_id":2}},{},null]"#, good(1), good(3));
    let options = ReadOptions {
        keep_going: true,
        ..ReadOptions::default()
    };
    let sessions = read_sessions(SessionFormat::TauBench, &text, &options).unwrap();
    let skipped: Vec<Vec<String>> = sessions
        .iter()
        .map(|session| {
            let skipped = session.skipped.iter();
            skipped
                .map(|one| format!("{}: {}", one.number, one.what))
                .collect()
        })
        .collect();
    assert_eq!(
        skipped,
        [
            vec!["1: expected a tau-bench run, found 7"],
            vec![
                "3: expected a tau-bench run, found no `traj` in {\"task_id\":2}",
                "5: expected a tau-bench run, found null",
            ],
        ]
    );
    assert_eq!(
        fault(SessionFormat::TauBench, &text),
        "session 1: expected a tau-bench run, found 7; none before it was read"
    );
    // Where nothing can be read there is nothing to go on with.
    let error = read_sessions(SessionFormat::TauBench, "[7, 8]", &options).unwrap_err();
    assert!(error.to_string().starts_with("session 1: "), "{error}");
}

#[test]
fn what_is_not_known_is_named() {
    for (text, expected) in [
        ("{}", "an empty object"),
        ("[]", "an empty array"),
        (r#"{"a":1,"b":2}"#, "an object with `a`, `b`"),
        ("42", "the JSON value 42"),
    ] {
        let error = contexture_sessions::detect_format(text, "")
            .unwrap_err()
            .to_string();
        let start = format!("not a session log that is known ({expected}): expected one of ");
        assert!(error.starts_with(&start), "{error}");
    }
}
