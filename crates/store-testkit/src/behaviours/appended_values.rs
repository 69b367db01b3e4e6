//! Values outside the tree that are written with an append.

use std::sync::Arc;

use contexture_ir::{Owner, ResponseId};
use contexture_store::{
    Activation, AppendPoint, AppendRequest, Appended, BlobId, BranchLabel, Error, ExpectedVersion,
    KeyScope, OnMoved, PutEntry, ResponseRecord, StateKey, StatePatch, Store,
};

use super::limits::expect_limit;
use crate::chat::{Chat, NOW, branch, branch_end, item, new_branch};

type Tested = Arc<dyn Store>;
type ScopedPut = (KeyScope, PutEntry);

fn resource_scope() -> KeyScope {
    KeyScope::Resource("r".to_owned())
}

fn conversation_scope(chat: &Chat) -> KeyScope {
    KeyScope::Conversation(chat.id.clone())
}

fn scoped_put(
    scope: KeyScope,
    key: &str,
    value: Option<&str>,
    expect: ExpectedVersion,
) -> ScopedPut {
    let put = PutEntry {
        key: key.to_owned(),
        value: value.map(|value| Arc::from(value.as_bytes())),
        expect,
        at_ms: NOW,
    };
    (scope, put)
}

fn append_with_entries(at: AppendPoint, word: &str, entries: Vec<ScopedPut>) -> AppendRequest {
    AppendRequest {
        entries,
        ..AppendRequest::new(at, vec![item(word)], NOW)
    }
}

/// A value and its version.
async fn stored_value(chat: &Chat, scope: &KeyScope, key: &str) -> Option<(String, u64)> {
    let entry = chat
        .store
        .get_entry(&chat.owner, scope, key)
        .await
        .unwrap()?;
    let value = String::from_utf8(entry.value.to_vec()).unwrap();
    Some((value, entry.version))
}

fn expected_value(text: &str, version: u64) -> Option<(String, u64)> {
    Some((text.to_owned(), version))
}

pub(super) async fn entries_come_with_their_nodes(store: Tested) {
    let chat = Chat::start(store).await;
    let scopes = [conversation_scope(&chat), KeyScope::Owner, resource_scope()];
    let all = |text, expect| -> Vec<ScopedPut> {
        let scopes = scopes.iter().cloned();
        scopes
            .map(|scope| scoped_put(scope, "k", text, expect))
            .collect()
    };
    let mut first = all(Some("1"), ExpectedVersion::Absent);
    let any = ExpectedVersion::Any;
    first.push(scoped_put(KeyScope::Owner, "a", Some("a"), any));
    let done = chat
        .append_request(append_with_entries(Chat::at_tip("main"), "a", first))
        .await;
    assert_eq!(done.unwrap().versions, [1, 1, 1, 1]);
    for scope in &scopes {
        assert_eq!(
            stored_value(&chat, scope, "k").await,
            expected_value("1", 1)
        );
    }
    let version = ExpectedVersion::Version(1);
    let (scope, alone) = scoped_put(resource_scope(), "k", Some("2"), version);
    let alone = chat.store.put_entry(&chat.owner, &scope, alone).await;
    assert_eq!(alone.unwrap(), 2);
    replace_entries(&chat).await;
    let third = all(Some("x"), ExpectedVersion::Any);
    let done = chat
        .append_request(append_with_entries(Chat::at_tip("main"), "c", third))
        .await;
    assert_eq!(done.unwrap().versions, [3, 3, 4]);
    chat.expect_path("main", &["a", "b", "c"]).await;
}

/// Replaces, deletes and overwrites values with one append.
async fn replace_entries(chat: &Chat) {
    let version = ExpectedVersion::Version;
    let entries = vec![
        scoped_put(resource_scope(), "k", Some("3"), version(2)),
        scoped_put(KeyScope::Owner, "k", None, version(1)),
        scoped_put(conversation_scope(chat), "k", Some("2"), version(1)),
        scoped_put(KeyScope::Owner, "a", Some("b"), ExpectedVersion::Any),
    ];
    let done = chat
        .append_request(append_with_entries(Chat::at_tip("main"), "b", entries))
        .await;
    // In the order of the request, whatever order the store writes in.
    assert_eq!(done.unwrap().versions, [3, 2, 2, 2]);
    assert_eq!(
        stored_value(chat, &resource_scope(), "k").await,
        expected_value("3", 3)
    );
    assert_eq!(stored_value(chat, &KeyScope::Owner, "k").await, None);
}

pub(super) async fn a_conflict_stores_nothing(store: Tested) {
    let chat = Chat::start(store).await;
    let absent = ExpectedVersion::Absent;
    let first = vec![scoped_put(resource_scope(), "k", Some("1"), absent)];
    chat.append_request(append_with_entries(Chat::at_tip("main"), "a", first))
        .await
        .unwrap();
    let (before, events) = (chat.snapshot_text().await, chat.event_kinds().await.len());
    let response = ResponseId::derive("testkit", &[b"answer"]);
    for (expect, expected, actual) in [
        (ExpectedVersion::Absent, 0, 1),
        (ExpectedVersion::Version(2), 2, 1),
        (ExpectedVersion::Version(7), 7, 1),
    ] {
        for at in [
            Chat::at_tip("main"),
            AppendPoint::New(new_branch(
                Some("a"),
                BranchLabel::Named(branch("new")),
                Activation::Activate,
            )),
        ] {
            let request = append_with_everything(&chat, at, response, expect);
            match chat.append_request(request).await.unwrap_err() {
                Error::VersionConflict {
                    name,
                    expected: e,
                    actual: a,
                    ..
                } => assert_eq!((&*name, e, a), ("k", expected, actual)),
                other => panic!("{other}"),
            }
        }
    }
    assert_eq!(chat.snapshot_text().await, before);
    assert_eq!(chat.event_kinds().await.len(), events);
    expect_nothing_beside(&chat, response).await;
}

/// An append with state, a blob, a response and values, of which `k` expects a version.
fn append_with_everything(
    chat: &Chat,
    at: AppendPoint,
    response: ResponseId,
    expect: ExpectedVersion,
) -> AppendRequest {
    let (any, absent) = (ExpectedVersion::Any, ExpectedVersion::Absent);
    let entries = vec![
        scoped_put(KeyScope::Owner, "a", Some("x"), any),
        scoped_put(resource_scope(), "k", Some("x"), expect),
        scoped_put(conversation_scope(chat), "z", Some("x"), absent),
    ];
    AppendRequest {
        patch: StatePatch::put_entry(StateKey::new("s").unwrap(), 1, *b"v"),
        blobs: vec![Arc::from(*b"blob")],
        response: Some(ResponseRecord::new(response, None, NOW)),
        ..append_with_entries(at, "b", entries)
    }
}

/// Checks that nothing of [`append_with_everything`] is stored.
async fn expect_nothing_beside(chat: &Chat, response: ResponseId) {
    assert_eq!(stored_value(chat, &KeyScope::Owner, "a").await, None);
    assert_eq!(
        stored_value(chat, &resource_scope(), "k").await,
        expected_value("1", 1)
    );
    let blob = BlobId::of(&chat.owner, b"blob");
    let blob = chat.store.read_blob(&chat.owner, &chat.id, blob).await;
    assert_eq!(blob.unwrap_err().kind(), "not_found");
    let record = chat
        .store
        .load_response(&chat.owner, &chat.id, response)
        .await;
    assert_eq!(record.unwrap_err().kind(), "not_found");
}

pub(super) async fn a_refused_append_writes_none(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let entries = || {
        vec![scoped_put(
            resource_scope(),
            "k",
            Some("x"),
            ExpectedVersion::Any,
        )]
    };
    let refused = chat.append_request(append_with_entries(
        Chat::at_head("main", None),
        "b",
        entries(),
    ));
    assert_eq!(refused.await.unwrap_err().kind(), "head_moved");
    let refused = chat.append_request(append_with_entries(Chat::at_tip("never"), "b", entries()));
    assert_eq!(refused.await.unwrap_err().kind(), "not_found");
    // The head is checked before the values.
    let stale = vec![scoped_put(
        resource_scope(),
        "k",
        Some("x"),
        ExpectedVersion::Version(1),
    )];
    let refused = chat.append_request(append_with_entries(Chat::at_head("main", None), "b", stale));
    assert_eq!(refused.await.unwrap_err().kind(), "head_moved");
    assert_eq!(stored_value(&chat, &resource_scope(), "k").await, None);
    // A key that was never written gets version 1.
    let done = chat.append_request(append_with_entries(Chat::at_tip("main"), "b", entries()));
    assert_eq!(done.await.unwrap().versions, [1]);
}

pub(super) async fn a_repetition_changes_no_value(store: Tested) {
    let chat = Chat::start(store).await;
    let entries = vec![
        scoped_put(resource_scope(), "k", Some("1"), ExpectedVersion::Absent),
        scoped_put(
            conversation_scope(&chat),
            "k",
            Some("1"),
            ExpectedVersion::Any,
        ),
    ];
    let request = append_with_entries(Chat::at_head("main", None), "a", entries);
    let first = chat.append_request(request.clone()).await.unwrap();
    let again = chat.append_request(request.clone()).await.unwrap();
    let expected = Appended {
        replayed: true,
        versions: Vec::new(),
        ..first
    };
    assert_eq!(again, expected);
    for scope in [resource_scope(), conversation_scope(&chat)] {
        assert_eq!(
            stored_value(&chat, &scope, "k").await,
            expected_value("1", 1)
        );
    }
    // A replay does not restore a value that was overwritten meanwhile.
    let version = ExpectedVersion::Version(1);
    let (scope, later) = scoped_put(resource_scope(), "k", Some("2"), version);
    let later = chat.store.put_entry(&chat.owner, &scope, later).await;
    assert_eq!(later.unwrap(), 2);
    assert!(chat.append_request(request).await.unwrap().replayed);
    assert_eq!(
        stored_value(&chat, &resource_scope(), "k").await,
        expected_value("2", 2)
    );
    assert_eq!(
        stored_value(&chat, &conversation_scope(&chat), "k").await,
        expected_value("1", 1)
    );
}

pub(super) async fn a_late_answer_brings_them_to_its_branch(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    let entries = vec![scoped_put(
        resource_scope(),
        "k",
        Some("1"),
        ExpectedVersion::Absent,
    )];
    let request = AppendRequest {
        on_moved: OnMoved::Sibling,
        ..append_with_entries(Chat::at_head("main", Some("a")), "c", entries)
    };
    let done = chat.append_request(request).await.unwrap();
    assert!(done.on_sibling_branch);
    assert_eq!(done.versions, [1]);
    assert_eq!(
        stored_value(&chat, &resource_scope(), "k").await,
        expected_value("1", 1)
    );
    // A conflict opens no branch.
    let entries = vec![scoped_put(
        resource_scope(),
        "k",
        Some("2"),
        ExpectedVersion::Absent,
    )];
    let request = AppendRequest {
        on_moved: OnMoved::Sibling,
        ..append_with_entries(Chat::at_head("main", Some("a")), "d", entries)
    };
    let refused = chat.append_request(request).await.unwrap_err();
    assert_eq!(refused.kind(), "version_conflict");
    assert_eq!(chat.branch_names().await.len(), 2);
}

pub(super) async fn owners_are_isolated(store: Tested) {
    let ada = Chat::start(Arc::clone(&store)).await;
    let bob = Chat::start_as(store, "bob", "chat").await;
    let entries = |chat: &Chat, text| {
        [KeyScope::Owner, resource_scope(), conversation_scope(chat)]
            .map(|scope| scoped_put(scope, "k", Some(text), ExpectedVersion::Absent))
            .to_vec()
    };
    for (chat, text) in [(&ada, "ada"), (&bob, "bob")] {
        let request = append_with_entries(Chat::at_tip("main"), "a", entries(chat, text));
        assert_eq!(
            chat.append_request(request).await.unwrap().versions,
            [1, 1, 1]
        );
    }
    for (chat, text) in [(&ada, "ada"), (&bob, "bob")] {
        for scope in [KeyScope::Owner, resource_scope(), conversation_scope(chat)] {
            assert_eq!(
                stored_value(chat, &scope, "k").await,
                expected_value(text, 1)
            );
        }
    }
    // An append to another owner's conversation stores nothing, not even the caller's own values.
    let eve = Chat {
        owner: Owner::new("eve").unwrap(),
        ..ada
    };
    let request = append_with_entries(Chat::at_tip("main"), "b", entries(&eve, "eve"));
    assert_eq!(
        eve.append_request(request).await.unwrap_err().kind(),
        "not_found"
    );
    for scope in [KeyScope::Owner, resource_scope()] {
        assert_eq!(stored_value(&eve, &scope, "k").await, None);
    }
}

pub(super) async fn limits_and_contradictions_are_refused(store: Tested) {
    let chat = Chat::start(store).await;
    let limits = chat.store.limits().clone();
    let append = async |entries| {
        chat.append_request(append_with_entries(Chat::at_tip("main"), "a", entries))
            .await
    };
    let any = any_put;
    let many: Vec<ScopedPut> = (0..=limits.append_entries)
        .map(|n| any(&n.to_string(), "x"))
        .collect();
    expect_limit(append(many.clone()).await, "append_entries");
    let large = "x".repeat(limits.entry_bytes);
    let over = format!("{large}x");
    expect_limit(append(vec![any("k", &over)]).await, "entry_bytes");
    if limits.entry_bytes * limits.append_entries > limits.append_bytes {
        let heavy = (0..=limits.append_bytes / limits.entry_bytes)
            .map(|n| any(&n.to_string(), &large))
            .collect();
        expect_limit(append(heavy).await, "append_bytes");
    }
    let long = KeyScope::Resource("r".repeat(limits.title_bytes + 1));
    let long = scoped_put(long, "k", Some("x"), ExpectedVersion::Any);
    expect_limit(append(vec![long]).await, "title_bytes");
    expect_refused_entries(&chat).await;
    assert_eq!(chat.event_kinds().await.len(), 1, "nothing was stored");
    // The same key in two scopes is two keys, and the largest number of entries is allowed.
    let mut most = many;
    most.truncate(limits.append_entries.saturating_sub(1));
    most.push(scoped_put(
        KeyScope::Owner,
        "0",
        Some(&large),
        ExpectedVersion::Any,
    ));
    let done = append(most).await.unwrap();
    assert_eq!(done.versions.len(), limits.append_entries);
    chat.expect_path("main", &["a"]).await;
    assert!(chat.state_values(branch_end("main")).await.is_empty());
}

fn any_put(key: &str, text: &str) -> ScopedPut {
    scoped_put(resource_scope(), key, Some(text), ExpectedVersion::Any)
}

/// Entries that contradict each other or their append.
async fn expect_refused_entries(chat: &Chat) {
    let any = any_put;
    let append = async |entries| {
        chat.append_request(append_with_entries(Chat::at_tip("main"), "a", entries))
            .await
    };
    for (entries, what) in [
        (vec![any("", "x")], "key"),
        (vec![any(&"k".repeat(256), "x")], "key"),
        (vec![any("k", "x"), any("k", "y")], "entries"),
    ] {
        let refused = append(entries).await.unwrap_err();
        assert!(
            matches!(refused, Error::Invalid { what: found, .. } if found == what),
            "{refused}"
        );
    }
    let other = Chat::start_as(Arc::clone(&chat.store), "ada", "other").await;
    let foreign = scoped_put(
        conversation_scope(&other),
        "k",
        Some("x"),
        ExpectedVersion::Any,
    );
    let refused = append(vec![foreign]).await.unwrap_err();
    assert!(
        refused.to_string().contains("of the conversation other"),
        "{refused}"
    );
    expect_no_items_refused(chat).await;
}

/// Entries without items are refused, since a repetition could not be recognised.
async fn expect_no_items_refused(chat: &Chat) {
    let empty = AppendRequest {
        items: Vec::new(),
        ..append_with_entries(
            AppendPoint::New(new_branch(
                None,
                BranchLabel::Named(branch("empty")),
                Activation::Keep,
            )),
            "a",
            vec![any_put("k", "x")],
        )
    };
    let refused = chat.append_request(empty).await.unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Invalid {
                what: "entries",
                ..
            }
        ),
        "{refused}"
    );
}

const COUNTER_KEYS: [&str; 3] = ["a", "b", "c"];

pub(super) async fn writers_at_once_lose_no_update(store: Tested) {
    const WRITERS: usize = 8;
    const TIMES: usize = 6;
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            let chat = Chat::start_as(store, "ada", &format!("chat-{writer}")).await;
            for time in 0..TIMES {
                count_up(&chat, &format!("{writer} {time}"), writer).await;
            }
            chat
        }));
    }
    let mut last = None;
    for task in tasks {
        let chat = task.await.unwrap();
        assert_eq!(chat.path_nodes(branch_end("main")).await.len(), TIMES);
        last = Some(chat);
    }
    let total = WRITERS * TIMES;
    for key in COUNTER_KEYS {
        let stored = stored_value(last.as_ref().unwrap(), &resource_scope(), key).await;
        assert_eq!(stored, expected_value(&total.to_string(), total as u64));
    }
}

/// Increments every counter with one append, and retries after each conflict.
async fn count_up(chat: &Chat, word: &str, writer: usize) {
    loop {
        let mut entries = Vec::new();
        for key in COUNTER_KEYS {
            let (count, expect) = match stored_value(chat, &resource_scope(), key).await {
                None => (0, ExpectedVersion::Absent),
                Some((count, version)) => (
                    count.parse::<u64>().unwrap(),
                    ExpectedVersion::Version(version),
                ),
            };
            let text = (count + 1).to_string();
            entries.push(scoped_put(resource_scope(), key, Some(&text), expect));
        }
        // Each writer names the keys in another order: a store that locked them in that order would
        // deadlock.
        entries.rotate_left(writer % COUNTER_KEYS.len());
        let request = append_with_entries(Chat::at_tip("main"), word, entries);
        match chat.append_request(request).await {
            Ok(done) => break assert!(!done.replayed),
            Err(Error::VersionConflict { .. } | Error::Busy { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
