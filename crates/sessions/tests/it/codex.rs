//! Codex rollouts, written by the program itself.

use contexture_ir::Item;
use contexture_sessions::{ReadOptions, SessionFormat, read_sessions, write_session};

use crate::exact::{open, same_lines};

const TOOLS: &str = include_str!("../fixtures/codex/rollout-tools.jsonl");
const HELLO: &str = include_str!("../fixtures/codex/rollout-hello.jsonl");

#[test]
fn rollouts_come_back() {
    for (name, text) in [
        ("rollout-tools.jsonl", TOOLS),
        ("rollout-hello.jsonl", HELLO),
    ] {
        let (format, sessions) = open(text, name);
        assert_eq!(format, SessionFormat::Codex, "{name}");
        same_lines(&write_session(format, &sessions[0]).unwrap(), text);
        // Nothing that the items say is kept twice.
        assert!(
            !sessions[0].metadata.get().contains("encrypted_content"),
            "{name}"
        );
    }
}

#[test]
fn items_calls_and_instructions_are_found() {
    let (_, sessions) = open(TOOLS, "rollout-tools.jsonl");
    let session = &sessions[0];
    assert_eq!(
        session.source_id,
        "codex:01a1f8fc-f63c-7c23-b95e-14cf68d4e41d"
    );
    assert_eq!(
        session.instructions[0].content[0].as_text(),
        Some("You are a careful assistant. Answer in one sentence.")
    );
    assert_eq!(session.title.as_deref(), Some("What do the notes say?"));
    let kinds: Vec<&str> = session.tree.iter().map(|node| node.item.kind()).collect();
    assert_eq!(
        kinds,
        [
            "message",
            "message",
            "reasoning",
            "message",
            "function_call",
            "function_call_output",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output",
            "message",
            "message",
            "message",
        ]
    );
    let own = session.tree.iter().filter_map(|node| node.item.extra());
    assert!(
        own.into_iter()
            .all(|extra| extra.iter().all(|(name, _)| !name.starts_with("internal_")))
    );
    assert!(session.tree.iter().all(|node| node.created_at.is_some()));
}

#[test]
fn older_rollouts_have_bare_items() {
    let text = concat!(
        r#"{"id":"old","timestamp":"2025-05-01T10:00:00.000Z","instructions":"Be brief."}"#,
        "\n",
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}"#,
        "\n",
        r#"{"record_type":"state","type":"state"}"#,
        "\n",
    );
    let sessions = read_sessions(SessionFormat::Codex, text, &ReadOptions::default()).unwrap();
    assert_eq!(sessions[0].source_id, "codex:old");
    assert_eq!(sessions[0].instructions.len(), 1);
    assert!(matches!(&sessions[0].tree[0].item, Item::Message(_)));
    same_lines(
        &write_session(SessionFormat::Codex, &sessions[0]).unwrap(),
        text,
    );
}

/// Rollouts of some versions have no items: what was said stands in events, among others that say nothing of it.
#[test]
fn messages_of_events_are_read_where_there_are_no_items() {
    let event = |payload: &str| {
        format!(
            r#"{{"timestamp":"2025-05-01T10:00:00Z","type":"event_msg","payload":{{{payload}}}}}"#
        ) + "\n"
    };
    let meta = "{\"type\":\"session_meta\",\"payload\":{\"id\":\"x\"}}\n".to_owned();
    let events = [
        event(r#""type":"task_started""#),
        event(r#""type":"user_message","message":"one","kind":"plain""#),
        event(r#""type":"token_count","info":null"#),
        event(r#""type":"agent_message","message":"two""#),
        event(r#""type":"user_message","message":"three""#),
    ]
    .concat();
    let texts = |text: &str| -> Vec<String> {
        let (_, sessions) = open(text, "rollout-x.jsonl");
        let nodes = sessions[0].tree.iter();
        nodes.map(|node| node.item.text()).collect()
    };
    let text = meta.clone() + &events;
    assert_eq!(texts(&text), ["one", "two", "three"]);
    let (format, sessions) = open(&text, "rollout-x.jsonl");
    assert_eq!(sessions[0].title.as_deref(), Some("one"));
    same_lines(&write_session(format, &sessions[0]).unwrap(), &text);
    // With a turn taken back, the user's messages are the turns.
    let back = text.clone() + &event(r#""type":"thread_rolled_back","num_turns":1"#);
    let (_, sessions) = open(&back, "rollout-x.jsonl");
    assert_eq!(sessions[0].heads.len(), 2);
    assert_eq!(sessions[0].heads[0].node, 1);
    // Where an item says it, the event only tells of it.
    let item = r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}}"#;
    assert_eq!(texts(&(text + item + "\n")), ["two", "three", "one"]);
}

fn record(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2025-05-01T10:00:00Z","type":"{kind}","payload":{{{payload}}}}}"#)
        + "\n"
}

/// A record in a short notation: `U:` and `A:` are items of the two sides, with `+` between their parts, `u:` and `a:` are
/// events.
fn record_of(word: &str) -> String {
    let (kind, text) = word.split_once(':').unwrap();
    let event = |kind: &str| {
        let payload = format!(r#""type":"{kind}_message","message":"{text}""#);
        record("event_msg", &payload)
    };
    let item = |role: &str, part: &str| {
        let parts = text.split('+');
        let parts: Vec<String> = parts
            .map(|text| format!(r#"{{"type":"{part}","text":"{text}"}}"#))
            .collect();
        let content = parts.join(",");
        let payload = format!(r#""type":"message","role":"{role}","content":[{content}]"#);
        record("response_item", &payload)
    };
    match kind {
        "U" => item("user", "input_text"),
        "A" => item("assistant", "output_text"),
        "u" => event("user"),
        "a" => event("agent"),
        other => panic!("{other}"),
    }
}

/// A message that an item and an event both have is read once, wherever the two stand in their turn, and one that only an
/// event has is read where the event stands.
#[test]
fn messages_that_stand_only_in_events_are_read() {
    let question = "What-is-the-capital-of-the-largest-of-them?";
    let in_context = format!("U:#context:{question} u:{question}");
    let both = format!("#context:{question}");
    let cases = [
        ("U:one u:one A:two a:two", "one two"),
        ("u:one U:one a:two A:two", "one two"),
        (
            "U:one u:one a:two A:two u:three a:four",
            "one two three four",
        ),
        (
            "u:one a:two U:three u:three A:four a:four",
            "one two three four",
        ),
        // The same said again.
        ("U:yes u:yes u:yes a:yes U:yes u:yes", "yes yes yes yes"),
        ("u:yes u:yes", "yes yes"),
        // All events before the items, and one event for each part.
        ("U:q u:q a:one a:two A:one A:two", "q one two"),
        (
            "U:<image>+q u:q a:one a:two A:one+two",
            "<image>\nq one\ntwo",
        ),
        (&in_context, &both),
        // One side's words are not the other's.
        ("U:one u:one a:one", "one one"),
    ];
    for (words, expected) in cases {
        let meta = record("session_meta", r#""id":"x""#);
        let lines = words.split(' ').map(record_of);
        let text = lines.fold(meta, |text, line| text + &line);
        let (format, sessions) = open(&text, "rollout-x.jsonl");
        let found = sessions[0].tree.iter().map(|node| node.item.text());
        let found: Vec<String> = found.collect();
        assert_eq!(found.join(" "), expected, "{words}");
        same_lines(&write_session(format, &sessions[0]).unwrap(), &text);
    }
}

#[test]
fn a_turn_that_only_an_event_began_is_taken_back() {
    let lines = ["U:one", "u:one", "A:two", "u:three", "a:four"];
    let back = record("event_msg", r#""type":"thread_rolled_back","num_turns":1"#);
    let text = lines.map(record_of).concat() + &back;
    let (_, sessions) = open(&text, "rollout-x.jsonl");
    let ends: Vec<usize> = sessions[0].heads.iter().map(|head| head.node).collect();
    assert_eq!(ends, [1, 3]);
}

/// Some versions wrote an output as an object.
#[test]
fn outputs_that_are_objects_are_read() {
    let line = |output: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c","output":{output}}}}}"#
        ) + "\n"
    };
    let text = [
        line(r#"{"content":"done","success":true}"#),
        line(r#"{"content":"no","success":false}"#),
        line(r#"{"stdout":"x"}"#),
    ]
    .concat();
    let (format, sessions) = open(&text, "rollout-x.jsonl");
    let outputs: Vec<String> = sessions[0]
        .tree
        .iter()
        .map(|node| node.item.text())
        .collect();
    assert_eq!(outputs, ["done", "no", r#"{"stdout":"x"}"#]);
    let failed = &sessions[0].tree[1].item;
    assert!(matches!(failed, Item::FunctionCallOutput(output) if output.is_error == Some(true)));
    assert!(sessions[0].skipped.is_empty());
    same_lines(&write_session(format, &sessions[0]).unwrap(), &text);
}

#[test]
fn compacted_history_is_a_compaction() {
    let text = concat!(
        r#"{"timestamp":"2025-05-01T10:00:00.000Z","type":"session_meta","payload":{"id":"x"}}"#,
        "\n",
        r#"{"timestamp":"2025-05-01T10:00:01.000Z","type":"compacted","payload":{"message":"so far"}}"#,
        "\n",
    );
    let (format, sessions) = open(text, "rollout-x.jsonl");
    assert_eq!(sessions[0].tree[0].item.kind(), "compaction");
    assert_eq!(sessions[0].tree[0].item.text(), "so far");
    same_lines(&write_session(format, &sessions[0]).unwrap(), text);
}

/// A rollout of turns `a`, `b`, …, with rollbacks: `<2`. With `Events::Told` events say what began
/// turns.
fn rollout(words: &str, events: Events) -> String {
    let event = |payload: String| format!(r#"{{"type":"event_msg","payload":{{{payload}}}}}"#);
    let item = |role: &str, kind: &str, text: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}}}"#
        )
    };
    let mut lines = vec![r#"{"type":"session_meta","payload":{"id":"x"}}"#.to_owned()];
    for word in words.split_whitespace() {
        if let Some(turns) = word.strip_prefix('<') {
            lines.push(event(format!(
                r#""type":"thread_rolled_back","num_turns":{turns}"#
            )));
            continue;
        }
        if events == Events::Told {
            lines.push(event(r#""type":"task_started""#.to_owned()));
            lines.push(item("user", "input_text", &format!("about {word}")));
        }
        lines.push(item("user", "input_text", word));
        if events == Events::Told {
            lines.push(event(format!(
                r#""type":"item_completed","item":{{"type":"UserMessage","id":"{word}"}}"#
            )));
            lines.push(event(format!(
                r#""type":"user_message","message":"{word}""#
            )));
        }
        lines.push(item("assistant", "output_text", &word.to_uppercase()));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Events {
    Told,
    Silent,
}

#[test]
fn rollbacks_make_branches() {
    let cases = [
        ("a b", Events::Silent, "main: a A b B"),
        (
            "a b <1 c",
            Events::Silent,
            "main: a A c C; rollback-1: a A b B",
        ),
        (
            "a b c <2",
            Events::Silent,
            "main: a A; rollback-1: a A b B c C",
        ),
        (
            "a b <1 c <1 d",
            Events::Silent,
            "main: a A d D; rollback-1: a A b B; rollback-2: a A c C",
        ),
        (
            "a b <1 <1 c",
            Events::Silent,
            "main: c C; rollback-1: a A b B",
        ),
        // What is more than there is takes back all; what nothing follows has no end of its own.
        ("a <7", Events::Silent, "rollback-1: a A"),
        ("a <0", Events::Silent, "main: a A"),
        // What was said to the model for a turn goes with it, but what came before all turns stays.
        (
            "a b <1 c",
            Events::Told,
            "main: about a a A about c c C; rollback-1: about a a A about b b B",
        ),
        (
            "a b <2 c",
            Events::Told,
            "main: about a about c c C; rollback-1: about a a A about b b B",
        ),
    ];
    for (words, events, expected) in cases {
        let text = rollout(words, events);
        let (format, sessions) = open(&text, "rollout-x.jsonl");
        let session = &sessions[0];
        let drawn: Vec<String> = session
            .heads
            .iter()
            .map(|head| {
                let path = session.path_to(head.node).into_iter();
                let texts: Vec<String> =
                    path.map(|index| session.tree[index].item.text()).collect();
                format!("{}: {}", head.name, texts.join(" "))
            })
            .collect();
        assert_eq!(drawn.join("; "), expected, "{words}");
        same_lines(&write_session(format, session).unwrap(), &text);
    }
}
