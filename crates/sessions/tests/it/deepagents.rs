//! Chats of `@deepagents/context`, also hostile ones.

use contexture_sessions::{
    ReadOptions, Session, SessionError, SessionFormat, detect_format, read_sessions, write_session,
};
use contexture_wire::Format;
use serde_json::{Value, json};

const GOING_ON: ReadOptions<'_> = ReadOptions {
    keep_going: true,
    source_name: "",
};

fn message(id: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": id}]})
}

fn row(id: &str, parent: Option<&str>) -> Value {
    json!({"id": id, "chatId": "c", "parentId": parent, "name": "user", "type": "message",
        "data": message(id).to_string(), "createdAt": 7})
}

fn chat(messages: &[Value], branches: &[(&str, &str)]) -> String {
    let branch = |(name, head): &(&str, &str)| json!({"name": name, "headMessageId": head});
    json!({"chat": {"id": "c", "userId": "ada", "createdAt": 1}, "messages": messages,
        "branches": branches.iter().map(branch).collect::<Vec<_>>(), "checkpoints": []})
    .to_string()
}

fn one(text: &str) -> Session {
    let mut sessions = read_sessions(SessionFormat::DeepAgents, text, &GOING_ON).unwrap();
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

/// The message ids up to each head, by its name.
fn paths(session: &Session) -> Vec<(String, Vec<String>)> {
    let path = |node: usize| {
        let nodes = session.path_to(node).into_iter();
        let mut ids: Vec<String> = nodes
            .map(|node| session.tree[node].message_id.clone().unwrap())
            .collect();
        ids.dedup();
        ids
    };
    let heads = session.heads.iter();
    heads
        .map(|head| (head.name.clone(), path(head.node)))
        .collect()
}

fn check(
    messages: &[Value],
    branches: &[(&str, &str)],
    expected: &[(&str, &[&str])],
    said: &[&str],
) {
    let text = chat(messages, branches);
    let session = one(&text);
    let expected: Vec<(String, Vec<String>)> = expected
        .iter()
        .map(|(name, ids)| {
            (
                (*name).to_owned(),
                ids.iter().map(|id| (*id).to_owned()).collect(),
            )
        })
        .collect();
    assert_eq!(paths(&session), expected, "{text}");
    let skipped: Vec<&str> = session
        .skipped
        .iter()
        .map(|one| one.what.as_str())
        .collect();
    assert_eq!(skipped.len(), said.len(), "{skipped:?}");
    for (skipped, said) in skipped.iter().zip(said) {
        assert!(skipped.contains(said), "{skipped}: {said}");
    }
    let strict = read_sessions(SessionFormat::DeepAgents, &text, &ReadOptions::default());
    match (strict, said.is_empty()) {
        (Ok(_), true) => {}
        (Err(SessionError::Record { number, .. }), false) => {
            assert_eq!(number, session.skipped[0].number);
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_chat_is_known_by_its_tables() {
    let text = chat(&[row("a", None)], &[("main", "a")]);
    assert_eq!(
        detect_format(&text, "").unwrap().format,
        SessionFormat::DeepAgents
    );
    let session = one(&text);
    assert_eq!(session.source_id, "deepagents:c:1");
    assert_eq!(session.info.owner.as_deref(), Some("ada"));
    assert_eq!(session.info.node_keys.len(), session.tree.len());
    let again = write_session(SessionFormat::Wire(Format::Ui), &session).unwrap();
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again, json!([message("a")]));
    let error = write_session(SessionFormat::DeepAgents, &session).unwrap_err();
    assert!(error.to_string().contains("rows of a database"), "{error}");
}

#[test]
fn rows_stand_behind_their_parents_in_any_order() {
    // As after a message was given another parent, or rows of PostgreSQL with JSON columns.
    let mut second = row("b", Some("a"));
    second["data"] = message("b");
    check(
        &[second, row("c", Some("b")), row("a", None)],
        &[("main", "c"), ("early", "a")],
        &[("main", &["a", "b", "c"])],
        &[],
    );
}

#[test]
fn what_no_name_reaches_has_a_branch_of_its_own() {
    check(
        &[
            row("a", None),
            row("b", Some("a")),
            row("c", Some("b")),
            row("lost message", Some("a")),
        ],
        &[("main", "b")],
        &[
            ("main", &["a", "b"]),
            ("loose-c", &["a", "b", "c"]),
            ("loose-lost mes", &["a", "lost message"]),
        ],
        &[],
    );
}

#[test]
fn one_id_may_stand_in_several_branches_and_once_on_a_path() {
    let mut again = row("row 2", Some("a"));
    again["data"] = message("a").to_string().into();
    let mut aside = row("row 3", None);
    aside["data"] = message("a").to_string().into();
    let mut none = row("row 4", Some("row 3"));
    none["data"] = message("").to_string().into();
    check(
        &[row("a", None), again, aside, none],
        &[("main", "row 2"), ("edit", "row 4")],
        &[("main", &["a", "a#row 2"]), ("edit", &["a", "#row 4"])],
        &[],
    );
}

#[test]
fn damaged_rows_are_named_and_the_rest_is_read() {
    let with = |column: &str, value: Value| {
        let mut bad = row("bad", Some("a"));
        bad[column] = value;
        bad
    };
    let after = row("z", Some("bad"));
    for (bad, said) in [
        (with("data", json!("{")), "found {, not JSON"),
        (with("data", json!("")), "found , not JSON"),
        (with("data", Value::Null), "UI message"),
        (with("data", json!({"bytes": 3})), "UI message"),
        (with("data", json!("\"content\"")), "UI message"),
        (
            with(
                "data",
                json!("{\"type\":\"last-assistant\",\"content\":\"x\"}"),
            ),
            "UI message",
        ),
        (
            with(
                "data",
                json!("{\"id\":\"x\",\"role\":\"tool\",\"parts\":[]}"),
            ),
            "UI message",
        ),
        (
            with("data", json!(format!("{},{}", message("x"), message("y")))),
            "not JSON",
        ),
        (with("type", json!("compaction")), "type \"compaction\""),
        (with("type", json!("fragment")), "type \"fragment\""),
    ] {
        let rows = [row("a", None), bad, after.clone()];
        check(&rows, &[("main", "z")], &[("main", &["a", "z"])], &[said]);
        check(&rows[..2], &[("main", "bad")], &[("main", &["a"])], &[said]);
    }
    let long = "x".repeat(300);
    let mut named = with("data", json!(message(&long).to_string()));
    named["id"] = json!("bad");
    let session = one(&chat(
        &[row("a", None), named, after.clone()],
        &[("main", "z")],
    ));
    assert!(
        session.skipped[0]
            .what
            .contains("message id of 1 to 255 bytes")
    );
    assert_eq!(paths(&session)[0].1.len(), 3);
    let twice = [row("a", None), row("a", None), row("b", Some("a"))];
    let session = one(&chat(&twice, &[("main", "b")]));
    assert!(session.skipped[0].what.contains("stands twice"));
    let list = json!([7, {"id": null}, {"id": {"bytes": 2}}]);
    let text = json!({"chat": {"id": "c"}, "messages": list, "branches": [], "checkpoints": []});
    let session = one(&text.to_string());
    let nameless = |one: &contexture_sessions::Skipped| one.what.contains("a row with an id");
    assert_eq!(
        session.skipped.iter().filter(|one| nameless(one)).count(),
        3
    );
}

#[test]
fn circles_are_cut_once() {
    let rows = [
        row("tail", Some("b")),
        row("c", Some("b")),
        row("a", Some("c")),
        row("b", Some("a")),
        row("self", Some("self")),
    ];
    check(
        &rows,
        &[("main", "tail"), ("other", "self")],
        &[("main", &["c", "a", "b", "tail"]), ("other", &["self"])],
        &[
            "itself among those before it",
            "itself among those before it",
        ],
    );
}

#[test]
fn names_that_point_nowhere_are_named() {
    let text = json!({"chat": {"id": "c", "metadata": "no object"}, "messages": [row("a", None)],
        "branches": [{"name": "gone", "headMessageId": "x"}, {"name": "empty", "headMessageId": null},
            7, {"name": "a b", "headMessageId": "a", "isActive": 1}],
        "checkpoints": [{"name": "gone", "messageId": "x"}, {"name": "", "messageId": "a"}, "no",
            {"name": "here", "messageId": "a"}]});
    let session = one(&text.to_string());
    let names = |list: &[contexture_sessions::SessionName]| -> Vec<String> {
        list.iter().map(|one| one.name.clone()).collect()
    };
    assert_eq!(names(&session.info.branches), ["empty", "a b"]);
    assert_eq!(names(&session.info.checkpoints), ["here"]);
    assert_eq!(session.heads[0].name, "a b");
    assert_eq!(session.skipped.len(), 7, "{:?}", session.skipped);
}

#[test]
fn long_chains_and_large_circles_take_no_long_walk() {
    // A walk that begins anew at every row would take minutes here.
    let count = 20_000;
    for last in [None, Some("0")] {
        let rows: Vec<Value> = (0..count)
            .map(|n| {
                let parent = (n + 1 < count).then(|| (n + 1).to_string());
                let mut row = row(&n.to_string(), parent.as_deref().or(last));
                row["data"] = message("same").to_string().into();
                row
            })
            .collect();
        let session = one(&chat(&rows, &[("main", "0")]));
        assert_eq!(session.tree.len(), count);
        assert_eq!(session.skipped.len(), usize::from(last.is_some()));
        let mut ids: Vec<_> = session.tree.iter().map(|node| &node.message_id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}

/// Any parents at all: every row is there once, behind what it stands behind.
#[test]
fn any_parents_give_a_tree() {
    let mut state = 42_u64;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(state >> 33).unwrap() % below
    };
    for _ in 0..300 {
        let count = 1 + next(9);
        let rows: Vec<Value> = (0..count)
            .map(|n| {
                let parent = next(count + 2).to_string();
                row(
                    &n.to_string(),
                    (parent != count.to_string()).then_some(&parent),
                )
            })
            .collect();
        let heads: Vec<(String, String)> = (0..3)
            .map(|n| (format!("b{n}"), next(count + 1).to_string()))
            .collect();
        let heads: Vec<(&str, &str)> = heads
            .iter()
            .map(|(name, head)| (name.as_str(), head.as_str()))
            .collect();
        let session = one(&chat(&rows, &heads));
        assert_eq!(session.tree.len(), count);
        for (index, node) in session.tree.iter().enumerate() {
            assert!(node.parent.is_none_or(|parent| parent < index));
        }
        let mut reached = vec![false; count];
        for head in &session.heads {
            for node in session.path_to(head.node) {
                reached[node] = true;
            }
        }
        assert!(reached.iter().all(|reached| *reached), "{rows:?}");
    }
}
