//! Appends that are repeated.

use std::sync::Arc;

use contexture_store::{
    Activation, AppendPoint, AppendRequest, Appended, BranchLabel, Error, IdConflict, NewItem,
    OnMoved, StateKey, StatePatch, Store,
};

use crate::chat::{Chat, NOW, branch, branch_end, item, new_branch, node, raw_item};

type Tested = Arc<dyn Store>;

fn user_items(words: &[&str]) -> Vec<NewItem> {
    words.iter().map(|word| item(word)).collect()
}

/// The second result is the first one, marked as a replay.
fn expect_replay(first: &Appended, second: &Appended) {
    let expected = Appended {
        replayed: true,
        // A repetition opens nothing, whatever the first call did.
        on_sibling_branch: false,
        ..first.clone()
    };
    assert_eq!(*second, expected);
}

pub(in crate::behaviours) async fn a_repeated_append_is_a_replay(store: Tested) {
    let chat = Chat::start(store).await;
    let patch = StatePatch::put_entry(StateKey::new("k").unwrap(), 1, *b"v");
    // With a patch and a blob: a repetition must not apply the one or store the other again.
    let request = AppendRequest {
        patch,
        blobs: vec![Arc::from(*b"blob")],
        ..AppendRequest::new(Chat::at_head("main", None), user_items(&["a", "b"]), NOW)
    };
    let first = chat.append_request(request.clone()).await.unwrap();
    for _ in 0..3 {
        expect_replay(&first, &chat.append_request(request.clone()).await.unwrap());
    }
    chat.expect_path("main", &["a", "b"]).await;
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(record.nodes, 2);
}

pub(in crate::behaviours) async fn after_the_head_has_moved(store: Tested) {
    let chat = Chat::start(store).await;
    let request = AppendRequest::new(Chat::at_head("main", None), user_items(&["a", "b"]), NOW);
    let first = chat.append_request(request.clone()).await.unwrap();
    chat.append_messages("main", &["c"]).await;
    expect_replay(&first, &chat.append_request(request).await.unwrap());
    // Also at the tip, where there is no head to compare: the ids alone tell a repetition.
    let again = chat.append_messages("main", &["c"]).await;
    assert!(again.replayed);
    chat.expect_path("main", &["a", "b", "c"]).await;
}

pub(in crate::behaviours) async fn of_a_new_branch(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    for label in [
        BranchLabel::After(branch("main")),
        BranchLabel::Named(branch("x")),
    ] {
        let word = format!("{label:?}");
        let at = AppendPoint::New(new_branch(Some("a"), label, Activation::Keep));
        let request = AppendRequest::new(at, vec![item(&word)], NOW);
        let first = chat.append_request(request.clone()).await.unwrap();
        expect_replay(&first, &chat.append_request(request).await.unwrap());
    }
    // One branch for each label: a repetition makes no second one, not even with an automatic name.
    assert_eq!(chat.branch_names().await, ["main", "main-v2", "x"]);
}

pub(in crate::behaviours) async fn of_a_sibling(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    let request = AppendRequest {
        on_moved: OnMoved::Sibling,
        ..AppendRequest::new(Chat::at_head("main", Some("a")), user_items(&["late"]), NOW)
    };
    let first = chat.append_request(request.clone()).await.unwrap();
    expect_replay(&first, &chat.append_request(request).await.unwrap());
    assert_eq!(chat.branch_names().await, ["main", "main-v2"]);
}

async fn expect_conflict(chat: &Chat, items: Vec<NewItem>, word: &str, why: IdConflict) {
    match chat.append_to_tip("main", items).await.unwrap_err() {
        Error::IdConflict { node: at, why: got } => assert_eq!((at, got), (node(word), why)),
        other => panic!("{other}"),
    }
}

pub(in crate::behaviours) async fn other_bytes_are_a_conflict(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    // One more space makes another item.
    let spaced = raw_item("b", &item("b").json.replacen('{', "{ ", 1));
    expect_conflict(&chat, vec![spaced.clone()], "b", IdConflict::OtherBytes).await;
    // The error names the item that differs, not the first of the append.
    expect_conflict(&chat, vec![item("a"), spaced], "b", IdConflict::OtherBytes).await;
    chat.expect_path("main", &["a", "b"]).await;
    assert_eq!(
        chat.path_nodes(branch_end("main")).await[1].json,
        item("b").json
    );
}

pub(in crate::behaviours) async fn a_part_is_a_conflict(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    // Partly known, partly new is no repetition: the rest would be stored at an unexpected
    // position.
    let why = IdConflict::NotARepeat;
    expect_conflict(&chat, user_items(&["b", "c"]), "b", why).await;
    expect_conflict(&chat, user_items(&["c", "a"]), "a", why).await;
    chat.expect_path("main", &["a", "b"]).await;
}

pub(in crate::behaviours) async fn another_order_is_a_conflict(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b", "c"]).await;
    let why = IdConflict::NotARepeat;
    expect_conflict(&chat, user_items(&["b", "a"]), "a", why).await;
    expect_conflict(&chat, user_items(&["a", "c"]), "c", why).await;
    // A run of neighbours is a repetition, wherever it begins.
    assert!(chat.append_messages("main", &["b", "c"]).await.replayed);
}

pub(in crate::behaviours) async fn an_id_twice_is_a_conflict(store: Tested) {
    let chat = Chat::start(store).await;
    expect_conflict(&chat, user_items(&["a", "a"]), "a", IdConflict::Twice).await;
    chat.expect_path("main", &[]).await;
}

pub(in crate::behaviours) async fn ids_belong_to_conversations(store: Tested) {
    let one = Chat::start_as(Arc::clone(&store), "ada", "one").await;
    let two = Chat::start_as(store, "ada", "two").await;
    one.append_messages("main", &["a"]).await;
    // The same node id with other bytes: a conflict if ids were global.
    let other = raw_item("a", "{\"type\":\"x:y\"}");
    assert!(
        !two.append_to_tip("main", vec![other])
            .await
            .unwrap()
            .replayed
    );
    one.expect_path("main", &["a"]).await;
    assert_eq!(
        one.path_nodes(branch_end("main")).await[0].json,
        item("a").json
    );
}
