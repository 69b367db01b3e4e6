//! Calls that fail before or after they took effect, and are repeated.
//!
//! The contract says how each write is repeated: appends by their ids, updates and values by the
//! version that they expect, names by finding them taken or gone.

use std::sync::Arc;

use contexture_ir::{CheckpointName, NodeId, Owner};
use contexture_store::{
    Activation, AppendPoint, AppendRequest, BranchLabel, CollectRequest, ConversationUpdate,
    EraseScope, EventKind, ExpectedVersion, KeyScope, ListEntries, NewConversation, OnMoved,
    PutEntry, RedactRequest, RefChange, StateKey, StatePatch, Store, TitleChange, erase_all,
};

use super::finding::path_mark;
use super::streaming::Streaming;
use crate::chat::{Chat, NOW, branch, branch_end, item, new_branch, node};
use crate::faulty::until_done;
use crate::faulty::{Chances, Faulty, InjectedFault};
use crate::method::Method;
use crate::test_seed;

type Tested = Arc<dyn Store>;

async fn put_until_done(chat: &Chat, key: &str, value: Option<&str>, expect: ExpectedVersion) {
    let put = PutEntry {
        key: key.to_owned(),
        value: value.map(|value| Arc::from(value.as_bytes())),
        expect,
        at_ms: NOW,
    };
    let scope = KeyScope::Conversation(chat.id.clone());
    until_done(&["version_conflict"], || {
        chat.store.put_entry(&chat.owner, &scope, put.clone())
    })
    .await;
}

/// A value that is written with an append.
fn entry_with_append() -> PutEntry {
    PutEntry {
        key: "along".to_owned(),
        value: Some(Arc::from(*b"value")),
        expect: ExpectedVersion::Absent,
        at_ms: NOW,
    }
}

/// Makes every kind of write to one conversation.
async fn write_everything(chat: &Chat) {
    let (store, owner, id) = (&chat.store, &chat.owner, &chat.id);
    until_done(&["already_exists"], || {
        store.create_conversation(owner, NewConversation::new(id.clone(), NOW))
    })
    .await;
    let title = ConversationUpdate {
        title: TitleChange::Set(Some("title".to_owned())),
        expect_version: Some(1),
        ..ConversationUpdate::new(NOW)
    };
    until_done(&["version_conflict"], || {
        store.update_conversation(owner, id, title.clone())
    })
    .await;
    append_everywhere(chat).await;
    until_done(&[], || store.put_blob(owner, id, Arc::from(*b"more"))).await;
    if let Some(paths) = store.path_index() {
        let marks = || vec![path_mark(1, "later", "a")];
        until_done(&[], || paths.put_paths(owner, id, 1, marks())).await;
    }
    super::presence::write_everything(chat).await;
    super::calls::write_everything(chat).await;
    change_every_ref(chat).await;
    put_until_done(chat, "k", Some("one"), ExpectedVersion::Absent).await;
    put_until_done(chat, "k", Some("two"), ExpectedVersion::Version(1)).await;
    put_until_done(chat, "l", Some("one"), ExpectedVersion::Absent).await;
    put_until_done(chat, "l", None, ExpectedVersion::Version(1)).await;
    redact_and_collect(chat).await;
    if store.streams().is_some() {
        super::streaming::write_everything(&Streaming(chat.clone())).await;
    }
}

/// Appends at a tip, at a head, beside a moved head and on a new branch.
async fn append_everywhere(chat: &Chat) {
    let secret = StateKey::new("secret").unwrap();
    let scope = KeyScope::Conversation(chat.id.clone());
    let appends = [
        AppendRequest {
            patch: StatePatch::put_entry(secret, 1, *b"value"),
            blobs: vec![Arc::from(*b"blob")],
            entries: vec![(scope, entry_with_append())],
            ..AppendRequest::new(Chat::at_tip("main"), vec![item("a"), item("b")], NOW)
        },
        AppendRequest::new(Chat::at_head("main", Some("b")), vec![item("c")], NOW),
        AppendRequest {
            on_moved: OnMoved::Sibling,
            ..AppendRequest::new(Chat::at_head("main", Some("b")), vec![item("d")], NOW)
        },
        AppendRequest::new(
            AppendPoint::New(new_branch(
                Some("a"),
                BranchLabel::After(branch("main")),
                Activation::Activate,
            )),
            vec![item("e")],
            NOW,
        ),
    ];
    for request in appends {
        until_done(&[], || chat.append_request(request.clone())).await;
    }
}

/// Makes every kind of change of a branch or checkpoint.
async fn change_every_ref(chat: &Chat) {
    let checkpoint = |name: &str| CheckpointName::new(name).unwrap();
    let label = BranchLabel::Named(branch("named"));
    let changes = [
        RefChange::CreateBranch(new_branch(Some("b"), label, Activation::Keep)),
        RefChange::RenameBranch {
            from: branch("named"),
            to: branch("renamed"),
        },
        RefChange::Activate(branch("renamed")),
        RefChange::DeleteBranch(branch("main-v2")),
        RefChange::SetCheckpoint {
            name: checkpoint("kept"),
            node: node("c"),
        },
        RefChange::SetCheckpoint {
            name: checkpoint("gone"),
            node: node("c"),
        },
        RefChange::DeleteCheckpoint(checkpoint("gone")),
    ];
    for change in changes {
        until_done(&["already_exists", "not_found"], || {
            chat.change_ref(change.clone())
        })
        .await;
    }
}

async fn redact_and_collect(chat: &Chat) {
    let (store, owner, id) = (&chat.store, &chat.owner, &chat.id);
    let redact = RedactRequest {
        nodes: vec![node("b")],
        values: vec![contexture_ir::ContentHash::of(b"value")],
        blobs: vec![contexture_store::BlobId::of(owner, b"blob")],
        at_ms: NOW,
    };
    until_done(&[], || store.redact_content(owner, id, redact.clone())).await;
    if let Some(maintenance) = store.maintenance() {
        let collect = CollectRequest {
            grace_ms: 0,
            ..CollectRequest::new(NOW)
        };
        // The first call marks blobs as unnamed, the second removes them.
        for _ in 0..2 {
            until_done(&[], || maintenance.collect_blobs(owner, id, collect)).await;
        }
    }
}

/// Returns the events, without those that a repetition adds although it changes nothing.
async fn distinct_events(chat: &Chat) -> Vec<EventKind> {
    let mut events = chat.event_kinds().await;
    events.dedup();
    events
}

/// The first call fails, then the second, and so on until nothing fails any more: the outcome is
/// always that of a run without faults.
pub(super) async fn repeating_any_failed_write_converges(store: Tested) {
    let counting = Arc::new(Faulty::never(Arc::clone(&store)));
    let clean = adas_chat(&(Arc::clone(&counting) as Tested));
    write_everything(&clean).await;
    let wanted = outcome(&clean).await;
    remove_all(&clean).await;
    expect_every_write(&*store, &counting);
    for fault in [
        InjectedFault::Before,
        InjectedFault::After,
        InjectedFault::Delay,
    ] {
        fail_each_write(&store, fault, &wanted).await;
        fail_each_removal(&store, fault).await;
    }
}

fn adas_chat(store: &Tested) -> Chat {
    Chat {
        store: Arc::clone(store),
        owner: Owner::new("ada").unwrap(),
        id: "chat".parse().unwrap(),
    }
}

/// Returns all that can be read of a conversation.
async fn outcome(chat: &Chat) -> (String, Vec<EventKind>) {
    (chat.snapshot_text().await, distinct_events(chat).await)
}

/// Checks the test itself: every method that writes was called, unless the store lacks it.
fn expect_every_write(store: &dyn Store, counting: &Faulty) {
    let tried = counting.call_counts();
    for method in Method::ALL {
        assert!(
            !method.is_write()
                || tried.contains_key(&method)
                || (method.is_of_paths() && store.path_index().is_none())
                || (method.is_of_processes() && store.processes().is_none())
                || (method.is_of_calls() && store.calls().is_none())
                || (method.is_of_streams() && store.streams().is_none())
                || (method.is_of_maintenance() && store.maintenance().is_none()),
            "{} is not tried",
            method.name()
        );
    }
}

async fn fail_each_write(store: &Tested, fault: InjectedFault, wanted: &(String, Vec<EventKind>)) {
    for call in 1.. {
        let faulty = Arc::new(Faulty::failing_call(Arc::clone(store), call, fault));
        write_everything(&adas_chat(&(Arc::clone(&faulty) as Tested))).await;
        let sound = adas_chat(store);
        if faulty.fault_count() == 0 {
            assert!(call > 15, "only {call} calls");
            remove_all(&sound).await;
            break;
        }
        assert_eq!(outcome(&sound).await, *wanted, "{fault:?} at call {call}");
        // Through the store that does not fail, so that the next round starts empty.
        remove_all(&sound).await;
    }
}

async fn fail_each_removal(store: &Tested, fault: InjectedFault) {
    for call in 1.. {
        let sound = Chat::start_as(Arc::clone(store), "ada", "chat").await;
        sound.append_messages("main", &["a"]).await;
        put_until_done(&sound, "k", Some("v"), ExpectedVersion::Absent).await;
        let faulty = Arc::new(Faulty::failing_call(Arc::clone(store), call, fault));
        remove_all(&adas_chat(&(Arc::clone(&faulty) as Tested))).await;
        super::owners::everything_is_not_found(&sound).await;
        if faulty.fault_count() == 0 {
            assert!(call > 2, "only {call} calls");
            break;
        }
    }
}

/// Deletes the conversation, then all data of the owner.
async fn remove_all(chat: &Chat) {
    let (store, owner) = (&chat.store, &chat.owner);
    until_done(&["not_found"], || {
        store.delete_conversation(owner, &chat.id)
    })
    .await;
    let all = EraseScope::Owner;
    until_done(&[], || erase_all(&**store, owner, &all)).await;
    until_done(&[], || async {
        let left = store.list_entries(owner, ListEntries::default()).await?;
        assert!(left.entries.is_empty());
        Ok(())
    })
    .await;
}

/// Clients retry on a store that fails at random: what was acknowledged is stored once, at the
/// depth that was acknowledged.
pub(super) async fn what_is_acknowledged_is_there_once(store: Tested) {
    let first = test_seed();
    for n in 0..6 {
        let (name, seed) = (format!("chat-{n}"), first.wrapping_add(n));
        let sound = Chat::start_as(Arc::clone(&store), "ada", &name).await;
        let chances = Chances {
            before: 150,
            after: 150,
            delay: 200,
        };
        let faulty: Tested = Arc::new(Faulty::with_seed(Arc::clone(&store), seed, chances));
        let client = |number: usize| {
            let chat = Chat {
                store: Arc::clone(&faulty),
                ..sound.clone()
            };
            async move {
                let mut acknowledged = Vec::new();
                for n in 0..30 {
                    acknowledged.push(append_until_done(&chat, &format!("{number} {n}")).await);
                }
                acknowledged
            }
        };
        let clients: Vec<_> = (0..5).map(|number| tokio::spawn(client(number))).collect();
        let mut acknowledged: Vec<(u64, NodeId)> = Vec::new();
        for client in clients {
            let of_one = client.await.unwrap();
            assert!(
                of_one.is_sorted(),
                "a client's own appends keep their order"
            );
            acknowledged.extend(of_one);
        }
        acknowledged.sort_unstable();
        let path = sound.path_nodes(branch_end("main")).await;
        let stored: Vec<_> = path.iter().map(|node| (node.depth, node.id)).collect();
        assert_eq!(stored, acknowledged, "seed {seed}");
    }
}

async fn append_until_done(chat: &Chat, word: &str) -> (u64, NodeId) {
    for _ in 0..100 {
        match chat.append_to_tip("main", vec![item(word)]).await {
            Ok(done) => return (done.depth, node(word)),
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
    panic!("{word} is never stored");
}
