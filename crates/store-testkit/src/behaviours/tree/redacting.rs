//! Redaction: content that must be removed.

use std::sync::Arc;

use contexture_ir::{Compaction, ContentHash, Item, Role, tombstone_json};
use contexture_store::{
    Activation, AppendRequest, BlobId, DERIVED_KEYS, EntityKind, Error, EventKind, ExpectedVersion,
    IdConflict, KeyScope, ListEntries, NewItem, NodeQuery, PutEntry, RedactRequest, Redacted,
    RefChange, Span, StateKey, StatePatch, StateRequest, Store, compute_redaction_closure,
};
use contexture_store::{PathEnd, ReadRequest};

use crate::chat::{Chat, NOW, branch, branch_end, item, message_item, node, raw_item};

type Tested = Arc<dyn Store>;

fn redact_request(words: &[&str]) -> RedactRequest {
    RedactRequest {
        nodes: words.iter().map(|word| node(word)).collect(),
        at_ms: NOW + 5,
        ..RedactRequest::default()
    }
}

async fn redact_content(chat: &Chat, request: RedactRequest) -> Result<Redacted, Error> {
    chat.store
        .redact_content(&chat.owner, &chat.id, request)
        .await
}

pub(in crate::behaviours) async fn a_tombstone_keeps_shape_and_position(store: Tested) {
    let chat = Chat::start(store).await;
    // What cannot be parsed must still be removable, or a broken item could never be redacted.
    let unreadable = raw_item("c", "a secret that is no JSON");
    let items = vec![
        item("a"),
        message_item(Role::Assistant, "a secret"),
        unreadable,
    ];
    chat.append_to_tip("main", items).await.unwrap();
    chat.append_messages("main", &["d"]).await;
    let before = chat.path_nodes(branch_end("main")).await;
    let done = redact_content(&chat, redact_request(&["a secret", "c"]))
        .await
        .unwrap();
    assert_eq!(done.nodes, 2);
    let after = chat.path_nodes(branch_end("main")).await;
    for (before, after) in before.iter().zip(&after) {
        let mut expected = contexture_store::Node::clone(before);
        if [node("a secret"), node("c")].contains(&before.id) {
            expected.json = tombstone_json(&before.json).into();
            expected.content_hash = ContentHash::of(expected.json.as_bytes());
            expected.meaning_hash = None;
            expected.redacted_ms = Some(NOW + 5);
            assert!(!after.json.contains("secret"));
            assert!(Item::parse(&after.json).unwrap().is_tombstone());
        }
        assert_eq!(**after, expected);
        // By id as well: the two ways of reading must agree.
        let alone = NodeQuery::Id(before.id);
        let alone = chat.store.find_nodes(&chat.owner, &chat.id, alone).await;
        assert_eq!(*alone.unwrap()[0], expected);
    }
    let told: Vec<_> = chat.event_kinds().await.split_off(3);
    let told_of = |word| EventKind::NodeRedacted { node: node(word) };
    assert_eq!(told, [told_of("a secret"), told_of("c")]);
}

pub(in crate::behaviours) async fn twice_is_once(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    redact_content(&chat, redact_request(&["a"])).await.unwrap();
    let (seen, events) = (chat.snapshot_text().await, chat.event_kinds().await);
    let again = RedactRequest {
        // A later time, so that a store that redacts again would show it.
        at_ms: NOW + 9,
        ..redact_request(&["a"])
    };
    assert_eq!(
        redact_content(&chat, again).await.unwrap(),
        Redacted::default()
    );
    assert_eq!(
        (chat.snapshot_text().await, chat.event_kinds().await),
        (seen, events)
    );
    let both = redact_content(&chat, redact_request(&["a", "b", "b"]))
        .await
        .unwrap();
    assert_eq!(both.nodes, 1);
}

pub(in crate::behaviours) async fn an_unknown_node_changes_nothing(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let seen = chat.snapshot_text().await;
    let error = redact_content(&chat, redact_request(&["a", "never"]))
        .await
        .unwrap_err();
    assert!(matches!(
        error,
        Error::NotFound {
            what: EntityKind::Node,
            ..
        }
    ));
    assert_eq!(chat.snapshot_text().await, seen);
    let most = chat.store.limits().redact_items;
    let too_many = RedactRequest {
        nodes: vec![node("a"); most + 1],
        ..RedactRequest::default()
    };
    let error = redact_content(&chat, too_many).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Limit {
                limit: "redact_items",
                ..
            }
        ),
        "{error}"
    );
}

pub(in crate::behaviours) async fn a_repeated_redacted_append_conflicts(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    redact_content(&chat, redact_request(&["a"])).await.unwrap();
    // The original bytes too: taking them for a repetition would confirm what the removed text was.
    for bytes in [item("a"), raw_item("a", "{}")] {
        let error = chat.append_to_tip("main", vec![bytes]).await.unwrap_err();
        assert!(
            matches!(
                error,
                Error::IdConflict {
                    why: IdConflict::Redacted,
                    ..
                }
            ),
            "{error}"
        );
    }
    chat.append_messages("main", &["b"]).await;
    chat.expect_path("main", &["a", "b"]).await;
}

/// What was made of items repeats what they say: nothing tells of which, so all of it goes, and nothing else.
pub(in crate::behaviours) async fn derived_values_go_with_it(store: Tested) {
    let chat = Chat::start(store).await;
    let other = Chat::start_as(Arc::clone(&chat.store), "ada", "other").await;
    chat.append_messages("main", &["a", "b"]).await;
    let scope = |of: &Chat| KeyScope::Conversation(of.id.clone());
    let put = |key: &str| PutEntry {
        key: key.to_owned(),
        value: Some(Arc::from(*b"a says")),
        expect: ExpectedVersion::Any,
        at_ms: NOW,
    };
    let keys = [format!("{DERIVED_KEYS}summary"), "derived".to_owned()];
    for of in [&chat, &other] {
        for key in &keys {
            let put = of.store.put_entry(&of.owner, &scope(of), put(key)).await;
            put.unwrap();
        }
    }
    redact_content(&chat, redact_request(&["a"])).await.unwrap();
    for (of, expected) in [(&chat, vec![&keys[1]]), (&other, vec![&keys[1], &keys[0]])] {
        let list = ListEntries::in_scope(scope(of), "");
        let page = of.store.list_entries(&of.owner, list).await.unwrap();
        let left: Vec<&String> = page.entries.iter().map(|(_, entry)| &entry.key).collect();
        assert_eq!(left, expected);
    }
    // The key is free, and counts its versions on.
    let again = PutEntry {
        expect: ExpectedVersion::Absent,
        ..put(&keys[0])
    };
    let version = chat
        .store
        .put_entry(&chat.owner, &scope(&chat), again)
        .await;
    assert_eq!(version.unwrap(), 3);
}

pub(in crate::behaviours) async fn state_and_blobs_go_with_it(store: Tested) {
    let chat = Chat::start(store).await;
    // Stores may keep large values as blobs, so one of each size.
    let (small, large) = (b"a small secret".to_vec(), vec![b's'; 10_000]);
    let key = |name: &str| StateKey::new(name).unwrap();
    for (word, name, value) in [("a", "small", &small), ("b", "large", &large)] {
        let mut request = AppendRequest::new(Chat::at_tip("main"), vec![item(word)], NOW);
        request.patch = StatePatch::put_entry(key(name), 1, value.clone());
        chat.append_request(request).await.unwrap();
    }
    let blob = put_blob(&chat, b"a blob").await;
    let request = RedactRequest {
        values: vec![
            ContentHash::of(&small),
            ContentHash::of(&large),
            // An unknown value is skipped and not counted.
            ContentHash::of(b"x"),
        ],
        blobs: vec![blob, BlobId::of(&chat.owner, b"never")],
        ..redact_request(&[])
    };
    let done = redact_content(&chat, request.clone()).await.unwrap();
    assert_eq!((done.nodes, done.values, done.blobs), (0, 2, 1));
    assert_eq!(
        redact_content(&chat, request).await.unwrap(),
        Redacted::default()
    );
    let state = StateRequest::all_entries(branch_end("main"));
    let state = chat.store.read_state(&chat.owner, &chat.id, state).await;
    let state = state.unwrap();
    assert_eq!(state.root.len(), 2, "the entries stay");
    assert!(state.values.is_empty(), "{:?}", state.values);
    for id in [blob, BlobId::of(&chat.owner, &large)] {
        let gone = chat.store.read_blob(&chat.owner, &chat.id, id).await;
        assert_eq!(gone.unwrap_err().kind(), "not_found");
    }
    write_again(&chat, small).await;
}

/// A value that equals a redacted one and is written later is stored again.
async fn write_again(chat: &Chat, value: Vec<u8>) {
    let key = StateKey::new("other").unwrap();
    let mut request = AppendRequest::new(Chat::at_tip("main"), vec![item("c")], NOW);
    request.patch = StatePatch::put_entry(key.clone(), 1, value);
    chat.append_request(request).await.unwrap();
    let state = StateRequest::all_entries(branch_end("main"));
    let state = chat.store.read_state(&chat.owner, &chat.id, state).await;
    let state = state.unwrap();
    assert_eq!(state.loaded_value(&key).map(|value| value.len()), Some(14));
}

fn copied_item(word: &str, source: &str) -> NewItem {
    NewItem {
        copied_from: Some(node(source)),
        ..item(word)
    }
}

async fn redaction_closure(chat: &Chat, word: &str) -> RedactRequest {
    let nodes = [node(word)];
    let found = compute_redaction_closure(&*chat.store, &chat.owner, &chat.id, &nodes, NOW);
    found.await.unwrap()
}

/// Copies in both directions, on branches that have no name any more too, compactions after any of
/// them, and blobs that only these name.
pub(in crate::behaviours) async fn provenance_is_followed(store: Tested) {
    let chat = Chat::start(store).await;
    // One blob is named by the secret alone, the other also by a node that stays.
    let (own, shared) = (
        put_blob(&chat, b"own").await,
        put_blob(&chat, b"shared").await,
    );
    fill_with_copies(&chat, own, shared).await;
    for from in ["secret", "copy", "copy of copy"] {
        let found = redaction_closure(&chat, from).await;
        let mut nodes =
            redact_request(&["secret", "sum", "copy", "side sum", "copy of copy"]).nodes;
        nodes.sort_unstable();
        assert_eq!(found.nodes, nodes, "from {from}");
        // The shared blob stays: a node that is not redacted still shows it.
        assert_eq!(found.blobs, [own]);
    }
    let done = redact_content(&chat, redaction_closure(&chat, "copy").await)
        .await
        .unwrap();
    assert_eq!((done.nodes, done.blobs), (5, 1));
    let path = chat.path_nodes(branch_end("main")).await;
    let readable: Vec<bool> = path.iter().map(|node| node.redacted_ms.is_none()).collect();
    assert_eq!(readable, [true, false, true, false, true]);
    // The tombstone of a compaction still is a compaction.
    let since = ReadRequest {
        at: PathEnd::Branch(branch("main")),
        span: Span::SinceCompaction,
        limit: None,
    };
    assert_eq!(chat.read_path(since).await.unwrap().nodes.len(), 2);
}

async fn put_blob(chat: &Chat, bytes: &[u8]) -> BlobId {
    let put = chat.store.put_blob(&chat.owner, &chat.id, Arc::from(bytes));
    put.await.unwrap()
}

/// A path with a secret that names two blobs, and copies of it on branches that are deleted again.
async fn fill_with_copies(chat: &Chat, own: BlobId, shared: BlobId) {
    let names = |word: &str, blobs: &[BlobId]| {
        let blobs: Vec<String> = blobs.iter().map(BlobId::to_string).collect();
        raw_item(word, &format!(r#"{{"x":"{}"}}"#, blobs.join(" ")))
    };
    let compaction = Item::Compaction(Compaction::default());
    let compaction = |word| NewItem::new(node(word), &compaction, compaction.to_json(), NOW);
    let items = vec![item("start"), names("secret", &[own, shared]), item("next")];
    chat.append_to_tip("main", items).await.unwrap();
    chat.append_to_tip("main", vec![compaction("sum"), names("after", &[shared])])
        .await
        .unwrap();
    // A copy on a side branch, a copy of that elsewhere, a compaction over it; names deleted.
    let side = chat.rewind("main", "start", Activation::Keep).await;
    chat.append_to_tip(
        &side,
        vec![copied_item("copy", "secret"), compaction("side sum")],
    )
    .await
    .unwrap();
    let far = chat.rewind("main", "start", Activation::Keep).await;
    chat.append_to_tip(
        &far,
        vec![compaction("early sum"), copied_item("copy of copy", "copy")],
    )
    .await
    .unwrap();
    for name in [side, far] {
        let delete = RefChange::DeleteBranch(branch(&name));
        chat.change_ref(delete).await.unwrap();
    }
}
