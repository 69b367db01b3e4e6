//! Data outside the tree: blobs, entries, events.

use std::sync::Arc;

use contexture_ir::{CheckpointName, ConversationId, Owner};
use contexture_store::{
    Activation, AppendRequest, BlobId, ConversationUpdate, EntityKind, Error, EventKind,
    ExpectedVersion, Fence, KeyScope, KeyValueEntry, ListEntries, PutEntry, RefChange, Store,
    list_all_entries,
};

use crate::chat::{Chat, NOW, branch, claim_of, item, node};

type Tested = Arc<dyn Store>;

pub(super) async fn blobs_are_kept_once(store: Tested) {
    let one = Chat::start_as(Arc::clone(&store), "ada", "one").await;
    let two = Chat::start_as(store, "ada", "two").await;
    let bytes: Arc<[u8]> = Arc::from(*b"\0\xff bytes");
    let put = async |chat: &Chat| {
        let put = chat
            .store
            .put_blob(&chat.owner, &chat.id, Arc::clone(&bytes));
        put.await.unwrap()
    };
    let id = put(&one).await;
    assert_eq!(id, put(&one).await);
    assert_eq!(id, BlobId::of(&one.owner, &bytes));
    assert_eq!(
        one.store.read_blob(&one.owner, &one.id, id).await.unwrap(),
        bytes
    );
    // Another conversation does not have it until it stores it itself.
    let other = two.store.read_blob(&two.owner, &two.id, id).await;
    assert!(matches!(
        other.unwrap_err(),
        Error::NotFound {
            what: EntityKind::Blob,
            ..
        }
    ));
    assert_eq!(id, put(&two).await);
    one.store
        .delete_conversation(&one.owner, &one.id)
        .await
        .unwrap();
    assert_eq!(
        two.store.read_blob(&two.owner, &two.id, id).await.unwrap(),
        bytes
    );
}

pub(super) async fn blobs_come_with_appends(store: Tested) {
    let chat = Chat::start(store).await;
    let blobs: Vec<Arc<[u8]>> = vec![Arc::from(*b"1"), Arc::from(*b"2"), Arc::from(*b"1")];
    let request = AppendRequest {
        blobs: blobs.clone(),
        ..AppendRequest::new(Chat::at_tip("main"), vec![item("a")], NOW)
    };
    let ids = chat.append_request(request).await.unwrap().blobs;
    assert_eq!(ids.len(), 3);
    for (id, bytes) in ids.iter().zip(&blobs) {
        let read = chat
            .store
            .read_blob(&chat.owner, &chat.id, *id)
            .await
            .unwrap();
        assert_eq!(read, *bytes);
    }
    // A refused append stores no blob either.
    let refused = AppendRequest {
        blobs: vec![Arc::from(*b"3")],
        ..AppendRequest::new(Chat::at_head("main", None), vec![item("b")], NOW)
    };
    chat.append_request(refused).await.unwrap_err();
    let id = BlobId::of(&chat.owner, b"3");
    assert!(
        chat.store
            .read_blob(&chat.owner, &chat.id, id)
            .await
            .is_err()
    );
}

fn put_request(key: &str, value: Option<&str>, expect: ExpectedVersion) -> PutEntry {
    PutEntry {
        key: key.to_owned(),
        value: value.map(|value| Arc::from(value.as_bytes())),
        expect,
        at_ms: NOW,
    }
}

/// Returns the expected and the actual version of a conflict.
fn conflict_versions(result: Result<u64, Error>) -> (u64, u64) {
    match result.unwrap_err() {
        Error::VersionConflict {
            expected, actual, ..
        } => (expected, actual),
        other => panic!("{other}"),
    }
}

pub(super) async fn entries_are_versioned(store: Tested) {
    let (owner, scope) = (Owner::local(), KeyScope::Owner);
    let write = async |value, expect| {
        store
            .put_entry(&owner, &scope, put_request("k", value, expect))
            .await
    };
    assert_eq!(store.get_entry(&owner, &scope, "k").await.unwrap(), None);
    assert_eq!(
        conflict_versions(write(Some("x"), ExpectedVersion::Version(1)).await),
        (1, 0)
    );
    assert_eq!(write(Some("1"), ExpectedVersion::Absent).await.unwrap(), 1);
    assert_eq!(
        conflict_versions(write(Some("x"), ExpectedVersion::Absent).await),
        (0, 1)
    );
    assert_eq!(
        write(Some("2"), ExpectedVersion::Version(1)).await.unwrap(),
        2
    );
    assert_eq!(
        conflict_versions(write(None, ExpectedVersion::Version(1)).await),
        (1, 2)
    );
    let entry = store.get_entry(&owner, &scope, "k").await.unwrap().unwrap();
    assert_eq!(
        (entry.version, &*entry.value, entry.at_ms),
        (2, &b"2"[..], NOW)
    );
    assert_eq!(write(None, ExpectedVersion::Version(2)).await.unwrap(), 3);
    assert_eq!(store.get_entry(&owner, &scope, "k").await.unwrap(), None);
    let list = ListEntries::in_scope(scope.clone(), "");
    let page = store.list_entries(&owner, list).await.unwrap();
    assert!(page.entries.is_empty());
    // A version is never reused, so an old one never matches again.
    assert_eq!(write(Some("3"), ExpectedVersion::Absent).await.unwrap(), 4);
    assert_eq!(write(Some(""), ExpectedVersion::Any).await.unwrap(), 5);
    let entry = store.get_entry(&owner, &scope, "k").await.unwrap().unwrap();
    assert!(entry.value.is_empty());
}

pub(super) async fn entries_keep_to_their_scope(store: Tested) {
    let chat = Chat::start(store).await;
    let (ada, bob) = (chat.owner.clone(), Owner::new("bob").unwrap());
    let scopes = [
        KeyScope::Owner,
        KeyScope::Resource("r".to_owned()),
        KeyScope::Resource(String::new()),
        KeyScope::Resource("chat".to_owned()),
        KeyScope::Conversation(chat.id.clone()),
    ];
    for (n, scope) in scopes.iter().enumerate() {
        for key in ["b", "a", "ab", "ü"] {
            let value = format!("{n}{key}");
            let entry = put_request(key, Some(&value), ExpectedVersion::Absent);
            chat.store.put_entry(&ada, scope, entry).await.unwrap();
        }
    }
    for (n, scope) in scopes.iter().enumerate() {
        for (prefix, keys) in [
            ("", vec!["a", "ab", "b", "ü"]),
            ("a", vec!["a", "ab"]),
            ("z", vec![]),
        ] {
            let list = ListEntries::in_scope(scope.clone(), prefix);
            let found = chat.store.list_entries(&ada, list).await.unwrap().entries;
            let got: Vec<_> = found.iter().map(|(_, entry)| entry.key.as_str()).collect();
            assert_eq!(got, keys);
            for (_, entry) in found {
                assert_eq!(*entry.value, *format!("{n}{}", entry.key).as_bytes());
            }
        }
    }
    let list = ListEntries::in_scope(KeyScope::Owner, "");
    let page = chat.store.list_entries(&bob, list).await.unwrap();
    assert!(page.entries.is_empty());
}

pub(super) async fn a_conversations_entries_go_with_it(store: Tested) {
    let chat = Chat::start(store).await;
    let scope = KeyScope::Conversation(chat.id.clone());
    let write = async |value| {
        let entry = put_request("k", Some(value), ExpectedVersion::Absent);
        chat.store.put_entry(&chat.owner, &scope, entry).await
    };
    write("1").await.unwrap();
    chat.store
        .delete_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert!(matches!(
        write("2").await.unwrap_err(),
        Error::NotFound {
            what: EntityKind::Conversation,
            ..
        }
    ));
    let chat = Chat::start(chat.store).await;
    let entry = chat
        .store
        .get_entry(&chat.owner, &scope, "k")
        .await
        .unwrap();
    assert_eq!(entry, None);
    let never = KeyScope::Conversation(ConversationId::new("never").unwrap());
    assert!(
        chat.store
            .list_entries(&chat.owner, ListEntries::in_scope(never.clone(), ""))
            .await
            .is_err()
    );
}

/// Writes of every kind; [`events_of_writes`] are their events.
async fn write_all_kinds(chat: &Chat) {
    chat.append_messages("main", &["a", "b"]).await;
    chat.rewind("main", "a", Activation::Activate).await;
    chat.change_ref(claim_of("main-v2")).await.unwrap();
    chat.change_ref(RefChange::Activate(branch("main")))
        .await
        .unwrap();
    chat.change_ref(RefChange::DeleteBranch(branch("main-v2")))
        .await
        .unwrap();
    let name = CheckpointName::new("ü").unwrap();
    let set = RefChange::SetCheckpoint {
        name: name.clone(),
        node: node("b"),
    };
    chat.change_ref(set).await.unwrap();
    chat.change_ref(RefChange::DeleteCheckpoint(name))
        .await
        .unwrap();
    let update = ConversationUpdate::new(NOW + 1);
    chat.store
        .update_conversation(&chat.owner, &chat.id, update)
        .await
        .unwrap();
}

fn events_of_writes() -> [EventKind; 10] {
    let (main, v2) = (branch("main"), branch("main-v2"));
    let name = CheckpointName::new("ü").unwrap();
    [
        EventKind::Created,
        EventKind::Appended {
            branch: main.clone(),
            head: node("b"),
            count: 2,
        },
        EventKind::BranchCreated {
            branch: v2.clone(),
            base: Some(node("a")),
        },
        EventKind::BranchActivated { branch: v2.clone() },
        EventKind::BranchClaimed {
            branch: v2.clone(),
            fence: Fence(1),
        },
        EventKind::BranchActivated { branch: main },
        EventKind::BranchDeleted { branch: v2 },
        EventKind::CheckpointSet {
            checkpoint: name.clone(),
            node: node("b"),
        },
        EventKind::CheckpointDeleted { checkpoint: name },
        EventKind::Updated,
    ]
}

pub(super) async fn events_tell_everything_in_order(store: Tested) {
    let chat = Chat::start(store).await;
    write_all_kinds(&chat).await;
    let since = async |after, limit| {
        chat.store
            .list_events(&chat.owner, &chat.id, after, limit)
            .await
            .unwrap()
    };
    let all = since(0, 100).await;
    let kinds: Vec<EventKind> = all.iter().map(|event| event.kind.clone()).collect();
    assert_eq!(kinds, events_of_writes());
    assert!(all.iter().zip(1..).all(|(event, seq)| event.seq == seq));
    assert_eq!((all[0].at_ms, all[9].at_ms), (NOW, NOW + 1));
    assert_eq!(since(3, 2).await, all[3..5]);
    assert!(since(10, 5).await.is_empty() && since(u64::MAX, 5).await.is_empty());
    assert!(since(0, 0).await.is_empty());
}

pub(super) async fn failures_leave_no_event(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let at = Chat::at_head("main", None);
    chat.append_request(AppendRequest::new(at, vec![item("b")], NOW))
        .await
        .unwrap_err();
    chat.change_ref(RefChange::Activate(branch("never")))
        .await
        .unwrap_err();
    assert!(chat.append_messages("main", &["a"]).await.replayed);
    let events = chat
        .store
        .list_events(&chat.owner, &chat.id, 0, 100)
        .await
        .unwrap();
    assert_eq!(events.len(), 2);
}

/// A page holds so many bytes of values, and a value that is larger stands alone.
pub(super) async fn pages_of_entries_end_by_their_bytes(store: Tested) {
    let owner = Owner::new("ada").unwrap();
    let limits = store.limits().clone();
    // As many as fit into a page with the largest size, and some more.
    let fit = limits.page_bytes / limits.entry_bytes;
    let keys: Vec<String> = (0..2 * fit + 1).map(|n| format!("k{n:03}")).collect();
    let value: Arc<[u8]> = vec![7; limits.entry_bytes].into();
    for key in &keys {
        let put = PutEntry {
            key: key.clone(),
            value: Some(Arc::clone(&value)),
            expect: ExpectedVersion::Absent,
            at_ms: NOW,
        };
        store
            .put_entry(&owner, &KeyScope::Owner, put)
            .await
            .unwrap();
    }
    let mut list = ListEntries::in_scope(KeyScope::Owner, "k");
    let of = |entries: &[(KeyScope, KeyValueEntry)]| -> Vec<String> {
        entries.iter().map(|(_, entry)| entry.key.clone()).collect()
    };
    for page in keys.chunks(fit) {
        let got = store.list_entries(&owner, list.clone()).await.unwrap();
        assert_eq!(of(&got.entries), page);
        list.after = got.next;
    }
    assert_eq!(list.after, None);
    let all = list_all_entries(&*store, &owner, list).await.unwrap();
    assert_eq!(of(&all), keys);
}
