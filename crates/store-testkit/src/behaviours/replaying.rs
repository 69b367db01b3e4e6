//! Repeating an append.

use std::sync::Arc;

use contexture_store::{
    Activation, AppendAt, AppendRequest, Appended, BranchLabel, Error, IdConflict, NewItem,
    OnMoved, StateKey, StatePatch, Store,
};

use crate::chat::{Chat, NOW, branch, item, new_branch, node, on, raw};

type Tested = Arc<dyn Store>;

fn items(words: &[&str]) -> Vec<NewItem> {
    words.iter().map(|word| item(word)).collect()
}

/// The second answer is the first one, marked as a repetition.
fn expect_replay(first: &Appended, second: &Appended) {
    let expected = Appended {
        replayed: true,
        sibling: false,
        ..first.clone()
    };
    assert_eq!(*second, expected);
}

pub(super) async fn the_same_append_again(store: Tested) {
    let chat = Chat::start(store).await;
    let patch = StatePatch::put(StateKey::new("k").unwrap(), 1, *b"v");
    let request = AppendRequest {
        patch,
        blobs: vec![Arc::from(*b"blob")],
        ..AppendRequest::new(Chat::at_head("main", None), items(&["a", "b"]), NOW)
    };
    let first = chat.append(request.clone()).await.unwrap();
    for _ in 0..3 {
        expect_replay(&first, &chat.append(request.clone()).await.unwrap());
    }
    chat.expect("main", &["a", "b"]).await;
    let record = chat
        .store
        .conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(record.nodes, 2);
}

pub(super) async fn after_the_head_has_moved(store: Tested) {
    let chat = Chat::start(store).await;
    let request = AppendRequest::new(Chat::at_head("main", None), items(&["a", "b"]), NOW);
    let first = chat.append(request.clone()).await.unwrap();
    chat.say("main", &["c"]).await;
    expect_replay(&first, &chat.append(request).await.unwrap());
    let again = chat.say("main", &["c"]).await;
    assert!(again.replayed);
    chat.expect("main", &["a", "b", "c"]).await;
}

pub(super) async fn of_a_new_branch(store: Tested) {
    let chat = Chat::start(store).await;
    chat.say("main", &["a", "b"]).await;
    for label in [
        BranchLabel::After(branch("main")),
        BranchLabel::Named(branch("x")),
    ] {
        let word = format!("{label:?}");
        let at = AppendAt::New(new_branch(Some("a"), label, Activation::Keep));
        let request = AppendRequest::new(at, vec![item(&word)], NOW);
        let first = chat.append(request.clone()).await.unwrap();
        expect_replay(&first, &chat.append(request).await.unwrap());
    }
    assert_eq!(chat.branches().await, ["main", "main-v2", "x"]);
}

pub(super) async fn of_a_sibling(store: Tested) {
    let chat = Chat::start(store).await;
    chat.say("main", &["a", "b"]).await;
    let request = AppendRequest {
        on_moved: OnMoved::Sibling,
        ..AppendRequest::new(Chat::at_head("main", Some("a")), items(&["late"]), NOW)
    };
    let first = chat.append(request.clone()).await.unwrap();
    expect_replay(&first, &chat.append(request).await.unwrap());
    assert_eq!(chat.branches().await, ["main", "main-v2"]);
}

async fn expect_conflict(chat: &Chat, items: Vec<NewItem>, word: &str, why: IdConflict) {
    match chat.tip("main", items).await.unwrap_err() {
        Error::IdConflict { node: at, why: got } => assert_eq!((at, got), (node(word), why)),
        other => panic!("{other}"),
    }
}

pub(super) async fn other_bytes_are_a_conflict(store: Tested) {
    let chat = Chat::start(store).await;
    chat.say("main", &["a", "b"]).await;
    // One space more is another item.
    let spaced = raw("b", &item("b").json.replacen('{', "{ ", 1));
    expect_conflict(&chat, vec![spaced.clone()], "b", IdConflict::OtherBytes).await;
    expect_conflict(&chat, vec![item("a"), spaced], "b", IdConflict::OtherBytes).await;
    chat.expect("main", &["a", "b"]).await;
    assert_eq!(chat.path(on("main")).await[1].json, item("b").json);
}

pub(super) async fn a_part_is_a_conflict(store: Tested) {
    let chat = Chat::start(store).await;
    chat.say("main", &["a", "b"]).await;
    let why = IdConflict::NotARepeat;
    expect_conflict(&chat, items(&["b", "c"]), "b", why).await;
    expect_conflict(&chat, items(&["c", "a"]), "a", why).await;
    chat.expect("main", &["a", "b"]).await;
}

pub(super) async fn another_order_is_a_conflict(store: Tested) {
    let chat = Chat::start(store).await;
    chat.say("main", &["a", "b", "c"]).await;
    let why = IdConflict::NotARepeat;
    expect_conflict(&chat, items(&["b", "a"]), "a", why).await;
    expect_conflict(&chat, items(&["a", "c"]), "c", why).await;
    // A run of neighbours is a repetition, wherever it begins.
    assert!(chat.say("main", &["b", "c"]).await.replayed);
}

pub(super) async fn an_id_twice_is_a_conflict(store: Tested) {
    let chat = Chat::start(store).await;
    expect_conflict(&chat, items(&["a", "a"]), "a", IdConflict::Twice).await;
    chat.expect("main", &[]).await;
}

pub(super) async fn ids_belong_to_conversations(store: Tested) {
    let one = Chat::start_as(Arc::clone(&store), "ada", "one").await;
    let two = Chat::start_as(store, "ada", "two").await;
    one.say("main", &["a"]).await;
    let other = raw("a", "{\"type\":\"x:y\"}");
    assert!(!two.tip("main", vec![other]).await.unwrap().replayed);
    one.expect("main", &["a"]).await;
    assert_eq!(one.path(on("main")).await[0].json, item("a").json);
}
