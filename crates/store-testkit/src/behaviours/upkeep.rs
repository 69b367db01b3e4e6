//! Maintenance of a conversation, which a store may lack: then these behaviours pass.
//!
//! Not here: damage, which each backend tests with its own tables.

use std::sync::Arc;

use contexture_ir::CheckpointName;
use contexture_store::{
    Activation, AppendRequest, BlobId, CollectRequest, Error, ExpectedVersion, KeyScope,
    Maintenance, NodeKind, OwnerSize, PutEntry, RedactRequest, RefChange, StateKey, StatePatch,
    Store, verify_conversation,
};

use crate::chat::{Chat, NOW, item, node, raw_item};

type Tested = Arc<dyn Store>;

const HOUR: i64 = 3_600_000;

fn maintenance(chat: &Chat) -> &dyn Maintenance {
    chat.store.maintenance().unwrap()
}

/// More nodes than a page, forks, state, a checkpoint, a blob and something redacted.
async fn fill_conversation(store: Tested) -> Chat {
    let chat = Chat::start(store).await;
    let many = (0..600).map(|n| item(&format!("number {n}")));
    chat.append_to_tip("main", many.collect()).await.unwrap();
    for (n, size) in [(0, 10), (1, 1000), (2, 9000)] {
        let base = format!("number {n}");
        let name = chat.rewind("main", &base, Activation::Keep).await;
        let key = StateKey::new(format!("path/{n}")).unwrap();
        let value = format!("{n}").repeat(size);
        let request = AppendRequest {
            patch: StatePatch::put_entry(key, 1, value.into_bytes()),
            ..AppendRequest::new(
                Chat::at_tip(&name),
                vec![item(&format!("fork {n}")), item(&format!("leaf {n}"))],
                NOW,
            )
        };
        chat.append_request(request).await.unwrap();
    }
    let set = RefChange::SetCheckpoint {
        name: CheckpointName::new("there").unwrap(),
        node: node("number 7"),
    };
    chat.change_ref(set).await.unwrap();
    put_blob(&chat, "named by nothing").await;
    let redact = RedactRequest {
        nodes: vec![node("number 500")],
        at_ms: NOW,
        ..RedactRequest::default()
    };
    let redacted = chat
        .store
        .redact_content(&chat.owner, &chat.id, redact)
        .await;
    assert_eq!(redacted.unwrap().nodes, 1);
    chat
}

async fn put_blob(chat: &Chat, bytes: &str) -> BlobId {
    let bytes = Arc::from(bytes.as_bytes());
    let put = chat.store.put_blob(&chat.owner, &chat.id, bytes);
    put.await.unwrap()
}

pub(super) async fn what_is_sound_has_no_findings(store: Tested) {
    if store.maintenance().is_none() {
        return;
    }
    let empty = Chat::start_as(Arc::clone(&store), "ada", "empty").await;
    let chat = fill_conversation(store).await;
    for chat in [&chat, &empty] {
        let found = verify_conversation(maintenance(chat), &chat.owner, &chat.id)
            .await
            .unwrap();
        assert!(found.findings.is_empty(), "{:?}", found.findings);
        assert_eq!(found.next, None);
    }
    let found = verify_conversation(maintenance(&chat), &chat.owner, &chat.id)
        .await
        .unwrap();
    assert!(found.checked > 606, "{found:?}");
}

pub(super) async fn statistics_count_a_conversation(store: Tested) {
    if store.maintenance().is_none() {
        return;
    }
    let chat = fill_conversation(store).await;
    let counted = maintenance(&chat).read_statistics(&chat.owner, &chat.id);
    let counted = counted.await.unwrap();
    let users = counted.nodes[&NodeKind::User];
    assert_eq!((users.count, counted.nodes.len()), (606, 1));
    assert!(users.bytes > 606 * 40, "{users:?}");
    assert_eq!((counted.roots.count, counted.names), (3, 5));
    // A large value may be kept as a blob.
    let kept = counted.values.count.max(2) + counted.blobs.count;
    assert!((4..=5).contains(&kept), "{counted:?}");
    assert!(counted.events > 6 && counted.segments >= 4, "{counted:?}");
}

pub(super) async fn owners_are_listed_with_what_they_have(store: Tested) {
    if store.maintenance().is_none() {
        return;
    }
    let mut chats = Vec::new();
    for (name, messages) in [("zoe", 2), ("ada", 3), ("bob", 1)] {
        let chat = Chat::start_as(Arc::clone(&store), name, "of-its-owner").await;
        for n in 0..messages {
            chat.append_to_tip("main", vec![item(&format!("{name} says {n}"))])
                .await
                .unwrap();
        }
        chats.push(chat);
    }
    let upkeep = maintenance(&chats[0]);
    let listed = upkeep.list_owners(None, 10).await.unwrap();
    let counts = |sizes: &[OwnerSize]| -> Vec<(String, u64, u64)> {
        let row = |size: &OwnerSize| (size.owner.to_string(), size.conversations, size.nodes);
        sizes.iter().map(row).collect()
    };
    let wanted = [("ada", 1, 3), ("bob", 1, 1), ("zoe", 1, 2)];
    let wanted = wanted.map(|(name, conversations, nodes)| (name.to_owned(), conversations, nodes));
    assert_eq!(counts(&listed), wanted);
    assert!(listed.iter().all(|size| size.bytes > 20), "{listed:?}");
    assert!(listed[0].bytes > listed[1].bytes, "{listed:?}");
    // Page by page, each owner once.
    let first = upkeep.list_owners(None, 2).await.unwrap();
    let rest = upkeep.list_owners(Some(&first[1].owner), 2).await.unwrap();
    assert_eq!([first, rest].concat(), listed);
    chats[1]
        .store
        .delete_conversation(&chats[1].owner, &chats[1].id)
        .await
        .unwrap();
    let left = upkeep.list_owners(None, 10).await.unwrap();
    assert_eq!(left.len(), 2, "{left:?}");
}

pub(super) async fn blobs_that_nothing_names_go_after_a_while(store: Tested) {
    if store.maintenance().is_none() {
        return;
    }
    let chat = Chat::start(store).await;
    let collect = async |now_ms: i64, limit: usize| {
        let request = CollectRequest {
            limit,
            ..CollectRequest::new(now_ms)
        };
        let done = maintenance(&chat).collect_blobs(&chat.owner, &chat.id, request);
        let done = done.await.unwrap();
        assert_eq!(done.blobs.bytes > 0, done.blobs.count > 0);
        (done.blobs.count, done.waiting, done.more)
    };
    let there = async |id: BlobId| {
        chat.store
            .read_blob(&chat.owner, &chat.id, id)
            .await
            .is_ok()
    };
    assert_eq!(collect(NOW, 10).await, (0, 0, false));
    let by_item = put_blob(&chat, "named by an item").await;
    let by_state = put_blob(&chat, "named by a large value").await;
    let by_value = put_blob(&chat, "named outside the tree").await;
    let lost = put_blob(&chat, "lost").await;
    let again = put_blob(&chat, "again").await;
    let late = put_blob(&chat, "late").await;
    let names = format!("{{\"url\":\"context://vfs/{by_item}\"}}");
    chat.append_to_tip("main", vec![raw_item("a", &names)])
        .await
        .unwrap();
    let value = format!("{} {by_state}", "long ".repeat(2000));
    let request = AppendRequest {
        patch: StatePatch::put_entry(StateKey::new("plan").unwrap(), 1, value.into_bytes()),
        ..AppendRequest::new(Chat::at_tip("main"), vec![item("b")], NOW)
    };
    chat.append_request(request).await.unwrap();
    // Bytes that are no text may name one, too.
    let named = [b"\xff\0", by_value.to_string().as_bytes(), b"\xfe"].concat();
    let scope = KeyScope::Conversation(chat.id.clone());
    let put = PutEntry {
        key: "plan".to_owned(),
        value: Some(named.into()),
        expect: ExpectedVersion::Any,
        at_ms: NOW,
    };
    chat.store
        .put_entry(&chat.owner, &scope, put)
        .await
        .unwrap();
    assert_eq!(collect(NOW, 10).await, (0, 3, false));
    assert_eq!(collect(NOW + HOUR - 1, 10).await, (0, 3, false));
    put_blob(&chat, "again").await;
    let names = raw_item("c", &format!("\"{late}\""));
    chat.append_to_tip("main", vec![names]).await.unwrap();
    let spare = put_blob(&chat, "spare").await;
    assert_eq!(collect(NOW + HOUR, 10).await, (1, 2, false));
    for (id, kept) in [
        (by_item, true),
        (by_state, true),
        (by_value, true),
        (lost, false),
        (again, true),
        (late, true),
        (spare, true),
    ] {
        assert_eq!(there(id).await, kept);
    }
    // A clock that was set back restarts the grace period.
    assert_eq!(collect(NOW - HOUR, 10).await, (0, 2, false));
    assert_eq!(collect(NOW, 1).await, (1, 0, true));
    assert_eq!(collect(NOW, 1).await, (1, 0, false));
    assert!(there(by_item).await && there(by_state).await && there(late).await);
    assert!(there(by_value).await);
    let found = verify_conversation(maintenance(&chat), &chat.owner, &chat.id)
        .await
        .unwrap();
    assert!(found.findings.is_empty(), "{:?}", found.findings);
}

/// Blobs that are stored, and named later, are never missing, however often blobs are collected
/// meanwhile.
pub(super) async fn collecting_gives_way_to_writers(store: Tested) {
    const EACH: usize = 40;
    if store.maintenance().is_none() {
        return;
    }
    let chat = Chat::start(store).await;
    let writer = tokio::spawn({
        let chat = chat.clone();
        async move {
            for n in 0..EACH {
                let id = put_blob(&chat, &format!("blob {n}")).await;
                let names = raw_item(&n.to_string(), &format!("\"{id}\""));
                chat.append_to_tip("main", vec![names]).await.unwrap();
            }
        }
    });
    let mut now_ms = NOW;
    while !writer.is_finished() {
        // Less time passes between storing and naming than the grace period.
        now_ms += 1;
        let request = CollectRequest::new(now_ms);
        match maintenance(&chat)
            .collect_blobs(&chat.owner, &chat.id, request)
            .await
        {
            Ok(_) | Err(Error::Busy { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
    let last = CollectRequest::new(now_ms + 2 * HOUR);
    let done = maintenance(&chat).collect_blobs(&chat.owner, &chat.id, last);
    assert_eq!(done.await.unwrap().blobs.count, 0);
    for n in 0..EACH {
        let bytes = format!("blob {n}").into_bytes();
        let id = BlobId::of(&chat.owner, &bytes);
        let stored = chat.store.read_blob(&chat.owner, &chat.id, id).await;
        assert_eq!(*stored.unwrap(), *bytes);
    }
}
