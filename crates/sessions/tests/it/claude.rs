//! Claude Code's records become a tree.

use contexture_ir::{Audience, Item, Message, Origin, Role};
use contexture_sessions::{SessionFormat, SessionNode, write_session};
use serde_json::{Value, json};

use crate::exact::{open, same_lines};

fn record(uuid: &str, parent: Option<&str>, more: Value) -> Value {
    let mut record = json!({
        "type": "user", "uuid": uuid, "parentUuid": parent, "isSidechain": false, "sessionId": "s",
        "timestamp": "2025-06-14T10:00:00.250Z", "message": {"role": "user", "content": uuid},
    });
    for (key, value) in more.as_object().unwrap() {
        record[key] = value.clone();
    }
    record
}

fn log(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn said(uuid: &str, parent: &str, id: &str, block: Value) -> Value {
    let message = json!({"id": id, "type": "message", "role": "assistant", "model": "m", "content": [block], "usage": {"input_tokens": 1}});
    record(
        uuid,
        Some(parent),
        json!({"type": "assistant", "message": message}),
    )
}

#[test]
fn parents_make_branches() {
    let call = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"x": 1}});
    let result = json!({"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok", "is_error": false}]}, "toolUseResult": {"stdout": "ok"}});
    let records = [
        json!({"type": "file-history-snapshot", "messageId": "x", "snapshot": {}}),
        record("a", None, json!({})),
        said("b1", "a", "msg_1", json!({"type": "text", "text": "look"})),
        said("b2", "b1", "msg_1", call),
        json!({"type": "system", "uuid": "note", "parentUuid": "b2", "sessionId": "s", "content": "hook ran"}),
        record("c", Some("note"), result),
        record("a2", Some("b1"), json!({"isMeta": true})),
        record("side", None, json!({"isSidechain": true})),
        record("d", Some("c"), json!({})),
        json!({"type": "summary", "summary": "A title", "leafUuid": "d"}),
    ];
    let text = log(&records);
    let (format, sessions) = open(&text, "x.jsonl");
    let session = &sessions[0];
    assert_eq!(session.source_id, "claude-code:s");
    assert_eq!(session.title.as_deref(), Some("A title"));
    let heads: Vec<(&str, Vec<String>)> = session
        .heads
        .iter()
        .map(|head| {
            let path = session.path_to(head.node).into_iter();
            (
                head.name.as_str(),
                path.map(|index| {
                    session.tree[index].item.kind().to_owned()
                        + " "
                        + &session.tree[index].item.text()
                })
                .collect(),
            )
        })
        .collect();
    let path = |items: &[&str]| {
        items
            .iter()
            .map(|item| (*item).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        heads,
        [
            (
                "main",
                path(&[
                    "message a",
                    "message look",
                    "function_call Bash {\"x\":1}",
                    "function_call_output ok",
                    "message d"
                ])
            ),
            (
                "branch-a2",
                path(&["message a", "message look", "message a2"])
            ),
            ("sidechain-side", path(&["message side"])),
        ]
    );
    let meta = session
        .tree
        .iter()
        .find(|node| node.item.text() == "a2")
        .unwrap();
    assert_eq!(meta.audience, Audience::MODEL);
    assert_eq!(session.tree[1].message_id, session.tree[2].message_id);
    assert_eq!(session.tree[0].created_at, Some(1_749_895_200_250));
    same_lines(&write_session(format, session).unwrap(), &text);
}

#[test]
fn compaction_boundaries_link_on() {
    let records = [
        record("a", None, json!({})),
        said("b", "a", "m", json!({"type": "text", "text": "x"})),
        json!({"type": "system", "subtype": "compact_boundary", "uuid": "k", "parentUuid": null, "logicalParentUuid": "b", "content": "Conversation compacted"}),
        record("sum", Some("k"), json!({"isCompactSummary": true})),
        record("c", Some("sum"), json!({})),
    ];
    let (_, sessions) = open(&log(&records), "x.jsonl");
    let session = &sessions[0];
    assert_eq!(session.heads.len(), 1);
    assert_eq!(session.path_to(session.heads[0].node).len(), 4);
    assert_eq!(session.tree[2].audience, Audience::MODEL);
}

#[test]
fn what_was_added_is_written_behind() {
    let text = log(&[record("a", None, json!({}))]);
    let (format, mut sessions) = open(&text, "x.jsonl");
    let session = &mut sessions[0];
    session.tree.push(SessionNode {
        parent: Some(0),
        item: Item::from(Message::text(Role::Assistant, "new")),
        message_id: Some("n".to_owned()),
        created_at: None,
        origin: Origin::Model,
        audience: Audience::ALL,
        imported: None,
    });
    session.heads[0].node = 1;
    let written = write_session(format, session).unwrap();
    let (format, again) = open(&written, "x.jsonl");
    assert_eq!(format, SessionFormat::ClaudeCode);
    assert_eq!(again[0].tree.len(), 2);
    assert_eq!(again[0].tree[1].item.text(), "new");
}

#[test]
fn branches_keep_their_names_when_the_log_grows() {
    let uuid = |n: usize| format!("{n}f6c02ab-1c1e-4c55-8d3a-000000000000");
    let chain = |from: usize, parent: usize| record(&uuid(from), Some(&uuid(parent)), json!({}));
    let names = |records: &[Value]| -> Vec<String> {
        let (_, sessions) = open(&log(records), "x.jsonl");
        let heads = sessions[0].heads.iter();
        heads.map(|head| head.name.clone()).collect()
    };
    // 1 ─ 2 ─ 3 was left for 1 ─ 4.
    let mut records = vec![
        record(&uuid(1), None, json!({})),
        chain(2, 1),
        chain(3, 2),
        chain(4, 1),
    ];
    assert_eq!(names(&records), ["main", "branch-2f6c02ab"]);
    records.extend([chain(5, 3), chain(6, 4), chain(7, 1), chain(8, 6)]);
    assert_eq!(
        names(&records),
        ["main", "branch-2f6c02ab", "branch-7f6c02ab"]
    );
    // Records of one uuid are no one branch's.
    records.extend([
        record("", Some(&uuid(1)), json!({})),
        chain(7, 1),
        chain(9, 8),
    ]);
    assert_eq!(
        names(&records),
        [
            "main",
            "branch-2f6c02ab",
            "branch-7f6c02ab",
            "branch",
            "branch-7f6c02ab-2"
        ]
    );
}
