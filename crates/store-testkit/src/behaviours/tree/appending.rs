//! Appends: where the items go.

use std::sync::Arc;

use contexture_ir::{Audience, ContentHash, MessageId, Origin, ResponseId, Role, RunId};
use contexture_store::{
    Activation, AppendPoint, AppendRequest, BranchLabel, EntityKind, Error, NewItem, NodeKind,
    OnMoved, Store,
};

use crate::chat::{Chat, NOW, branch, branch_end, item, message_item, new_branch, node};

type Tested = Arc<dyn Store>;

pub(in crate::behaviours) async fn at_the_tip(store: Tested) {
    let chat = Chat::start(store).await;
    let first = chat.append_messages("main", &["a", "b"]).await;
    assert_eq!(first.head, Some(node("b")));
    assert_eq!((first.first, first.depth), (1, 2));
    assert_eq!((first.messages, first.turns), (2, 2));
    assert_eq!(first.nodes, [node("a"), node("b")]);
    assert_eq!(first.branch, Some(branch("main")));
    assert!(!first.replayed && !first.on_sibling_branch);
    let second = chat.append_messages("main", &["c"]).await;
    assert_eq!((second.first, second.depth), (3, 3));
    chat.expect_path("main", &["a", "b", "c"]).await;
}

pub(in crate::behaviours) async fn at_the_head(store: Tested) {
    let chat = Chat::start(store).await;
    let mut head = None;
    for word in ["a", "b", "c"] {
        let at = Chat::at_head("main", head);
        let done = chat
            .append_request(AppendRequest::new(at, vec![item(word)], NOW))
            .await;
        assert_eq!(done.unwrap().head, Some(node(word)));
        head = Some(word);
    }
    chat.expect_path("main", &["a", "b", "c"]).await;
}

pub(in crate::behaviours) async fn a_moved_head_is_refused_and_nothing_stored(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    // The beginning, an older head, and an unknown node: none is the head.
    for stale in [None, Some("a"), Some("never")] {
        let at = Chat::at_head("main", stale);
        let late = AppendRequest::new(at, vec![item("late")], NOW);
        match chat.append_request(late).await.unwrap_err() {
            Error::HeadMoved {
                branch: moved,
                expected,
                actual,
            } => {
                assert_eq!(moved, branch("main"));
                assert_eq!((expected, actual), (stale.map(node), Some(node("b"))));
            }
            other => panic!("{other}"),
        }
    }
    chat.expect_path("main", &["a", "b"]).await;
    assert_eq!(chat.branch_names().await, ["main"]);
    let late = contexture_store::NodeQuery::Id(node("late"));
    assert!(
        chat.store
            .find_nodes(&chat.owner, &chat.id, late)
            .await
            .is_err()
    );
}

fn sibling(head: Option<&str>, word: &str) -> AppendRequest {
    AppendRequest {
        on_moved: OnMoved::Sibling,
        ..AppendRequest::new(Chat::at_head("main", head), vec![item(word)], NOW)
    }
}

pub(in crate::behaviours) async fn a_moved_head_may_open_a_sibling(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    let late = chat
        .append_request(sibling(Some("a"), "late"))
        .await
        .unwrap();
    assert!(late.on_sibling_branch);
    assert_eq!(late.branch, Some(branch("main-v2")));
    assert_eq!((late.first, late.depth), (2, 2));
    chat.expect_path("main", &["a", "b"]).await;
    chat.expect_path("main-v2", &["a", "late"]).await;
    // A sibling does not become active: a race opened it, not a user.
    assert!(chat.branch_record("main").await.active);
    let timely = chat
        .append_request(sibling(Some("b"), "timely"))
        .await
        .unwrap();
    assert!(!timely.on_sibling_branch);
    chat.expect_path("main", &["a", "b", "timely"]).await;
    let unknown = chat
        .append_request(sibling(Some("never"), "x"))
        .await
        .unwrap_err();
    assert!(matches!(
        unknown,
        Error::NotFound {
            what: EntityKind::Node,
            ..
        }
    ));
}

pub(in crate::behaviours) async fn a_sibling_of_the_beginning(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let late = chat.append_request(sibling(None, "late")).await.unwrap();
    assert_eq!((late.first, late.on_sibling_branch), (1, true));
    chat.expect_path("main-v2", &["late"]).await;
}

pub(in crate::behaviours) async fn on_a_new_branch_at_a_node(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b", "c"]).await;
    let named = BranchLabel::Named(branch("draft/1"));
    let at = AppendPoint::New(new_branch(Some("a"), named, Activation::Keep));
    let done = chat
        .append_request(AppendRequest::new(at, vec![item("x"), item("y")], NOW))
        .await;
    let done = done.unwrap();
    assert_eq!((done.first, done.depth), (2, 3));
    assert_eq!(done.branch, Some(branch("draft/1")));
    chat.expect_path("draft/1", &["a", "x", "y"]).await;
    chat.expect_path("main", &["a", "b", "c"]).await;
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!((record.nodes, record.branches), (5, 2));
}

pub(in crate::behaviours) async fn on_a_new_empty_branch(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let label = BranchLabel::After(branch("main"));
    let at = AppendPoint::New(new_branch(None, label, Activation::Activate));
    let done = chat
        .append_request(AppendRequest::new(at, vec![item("x")], NOW))
        .await;
    assert_eq!(done.unwrap().first, 1);
    chat.expect_path("main-v2", &["x"]).await;
    chat.expect_path("main", &["a"]).await;
}

pub(in crate::behaviours) async fn a_new_branch_without_items(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    for (base, depth, name) in [(Some("a"), 1, "main-v2"), (None, 0, "main-v3")] {
        let label = BranchLabel::After(branch("main"));
        let at = AppendPoint::New(new_branch(base, label, Activation::Keep));
        let done = chat
            .append_request(AppendRequest::new(at, Vec::new(), NOW))
            .await
            .unwrap();
        assert_eq!(
            (done.head, done.depth, done.first),
            (base.map(node), depth, depth + 1)
        );
        assert_eq!(done.branch, Some(branch(name)));
    }
    chat.expect_path("main-v2", &["a"]).await;
    chat.expect_path("main-v3", &[]).await;
    chat.append_messages("main-v3", &["z"]).await;
    chat.expect_path("main-v3", &["z"]).await;
}

pub(in crate::behaviours) async fn a_new_branch_may_become_active(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    let label = BranchLabel::After(branch("main"));
    let at = AppendPoint::New(new_branch(Some("a"), label, Activation::Activate));
    let done = chat
        .append_request(AppendRequest::new(at, vec![item("x")], NOW))
        .await;
    let name = done.unwrap().branch.unwrap();
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!((&record.active, record.messages), (&name, 2));
    assert!(!chat.branch_record("main").await.active);
}

pub(in crate::behaviours) async fn a_taken_branch_name_is_refused(store: Tested) {
    let chat = Chat::start(store).await;
    let named = BranchLabel::Named(branch("main"));
    let at = AppendPoint::New(new_branch(None, named, Activation::Keep));
    let error = chat
        .append_request(AppendRequest::new(at, vec![item("x")], NOW))
        .await;
    assert!(matches!(
        error.unwrap_err(),
        Error::AlreadyExists {
            what: EntityKind::Branch,
            ..
        }
    ));
    chat.expect_path("main", &[]).await;
}

pub(in crate::behaviours) async fn an_unknown_branch_is_refused(store: Tested) {
    let chat = Chat::start(store).await;
    for at in [Chat::at_tip("never"), Chat::at_head("never", None)] {
        let error = chat
            .append_request(AppendRequest::new(at, vec![item("x")], NOW))
            .await;
        assert!(matches!(
            error.unwrap_err(),
            Error::NotFound {
                what: EntityKind::Branch,
                ..
            }
        ));
    }
}

pub(in crate::behaviours) async fn an_unknown_base_is_refused(store: Tested) {
    let other = Chat::start_as(Arc::clone(&store), "ada", "other").await;
    // A node of another conversation of the same owner is as unknown as one that never was.
    other.append_messages("main", &["elsewhere"]).await;
    let chat = Chat::start(store).await;
    for base in ["never", "elsewhere"] {
        let label = BranchLabel::After(branch("main"));
        let at = AppendPoint::New(new_branch(Some(base), label, Activation::Keep));
        let error = chat
            .append_request(AppendRequest::new(at, vec![item("x")], NOW))
            .await;
        assert!(matches!(
            error.unwrap_err(),
            Error::NotFound {
                what: EntityKind::Node,
                ..
            }
        ));
    }
    assert_eq!(chat.branch_names().await, ["main"]);
}

pub(in crate::behaviours) async fn nothing_to_append_is_refused(store: Tested) {
    let chat = Chat::start(store).await;
    for at in [Chat::at_tip("main"), Chat::at_head("main", None)] {
        let error = chat
            .append_request(AppendRequest::new(at, Vec::new(), NOW))
            .await;
        assert!(matches!(error.unwrap_err(), Error::Invalid { .. }));
    }
}

pub(in crate::behaviours) async fn outputs_answer_calls_on_their_path(store: Tested) {
    let chat = Chat::start(store).await;
    let answering = |word: &str, call: &str| NewItem {
        kind: NodeKind::FunctionCallOutput,
        answers: Some(node(call)),
        ..item(word)
    };
    chat.append_messages("main", &["a", "call"]).await;
    // An earlier item of the same append, and one on the path.
    let both = vec![
        item("call 2"),
        answering("out 2", "call 2"),
        answering("out", "call"),
    ];
    chat.append_to_tip("main", both).await.unwrap();
    assert_eq!(
        chat.path_nodes(branch_end("main")).await[3].answers,
        Some(node("call 2"))
    );
    // Unknown, later in the append, and on another branch only.
    chat.rewind("main", "a", Activation::Keep).await;
    for (name, items) in [
        ("main", vec![answering("x", "never")]),
        ("main", vec![answering("x", "y"), item("y")]),
        ("main-v2", vec![answering("x", "call")]),
    ] {
        let error = chat.append_to_tip(name, items).await.unwrap_err();
        assert!(
            matches!(
                error,
                Error::NotFound {
                    what: EntityKind::Node,
                    ..
                }
            ),
            "{error}"
        );
    }
    chat.expect_path("main-v2", &["a"]).await;
}

pub(in crate::behaviours) async fn copies_name_their_source(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    chat.rewind("main", "a", Activation::Keep).await;
    let copy = |of: &str| NewItem {
        copied_from: Some(node(of)),
        ..item("copy")
    };
    let error = chat
        .append_to_tip("main-v2", vec![copy("never")])
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        Error::NotFound {
            what: EntityKind::Node,
            ..
        }
    ));
    chat.append_to_tip("main-v2", vec![copy("b")])
        .await
        .unwrap();
    assert_eq!(
        chat.path_nodes(branch_end("main-v2")).await[1].copied_from,
        Some(node("b"))
    );
}

/// An item with every field; it names the node `call`.
fn full_item() -> NewItem {
    NewItem {
        kind: NodeKind::FunctionCallOutput,
        answers: Some(node("call")),
        message_id: Some(MessageId::new("msg-1").unwrap()),
        run: Some(RunId::derive("t", &[b"run"])),
        // Extreme and negative values find columns that are too narrow.
        step: Some(u32::MAX),
        response: Some(ResponseId::derive("t", &[b"response"])),
        origin: Origin::Tool,
        audience: Audience::USER,
        copied_from: Some(node("call")),
        meaning_hash: Some(ContentHash::of(b"meaning")),
        created_ms: -1,
        ..message_item(Role::Assistant, "full")
    }
}

pub(in crate::behaviours) async fn every_field_comes_back(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["call"]).await;
    let full = full_item();
    chat.append_to_tip("main", vec![full.clone()])
        .await
        .unwrap();
    let path = chat.path_nodes(branch_end("main")).await;
    let got = &path[1];
    assert_eq!(got.id, full.id);
    assert_eq!(got.json, full.json);
    assert_eq!(got.content_hash, ContentHash::of(full.json.as_bytes()));
    assert_eq!(got.kind, full.kind);
    assert_eq!(got.answers, full.answers);
    assert_eq!(got.message_id, full.message_id);
    assert_eq!(
        (got.run, got.step, got.response),
        (full.run, full.step, full.response)
    );
    assert_eq!((got.origin, got.audience), (full.origin, full.audience));
    assert_eq!(
        (got.copied_from, got.meaning_hash),
        (full.copied_from, full.meaning_hash)
    );
    assert_eq!(got.created_ms, -1);
    assert_eq!(path[0].effective_message_id(), node("call").to_string());
    expect_every_kind(&chat).await;
}

/// Every kind once: each is stored as a number, and the numbers must be distinct.
async fn expect_every_kind(chat: &Chat) {
    for (code, kind) in NodeKind::ALL.into_iter().enumerate() {
        let word = format!("kind {code}");
        chat.append_to_tip(
            "main",
            vec![NewItem {
                kind,
                ..item(&word)
            }],
        )
        .await
        .unwrap();
        let path = chat.path_nodes(branch_end("main")).await;
        assert_eq!(path.last().unwrap().kind, kind);
    }
}
