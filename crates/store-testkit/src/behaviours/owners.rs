//! What no owner learns of another.

use std::sync::Arc;

use contexture_ir::{BranchName, CheckpointName, MessageId, Owner};
use contexture_store::{
    Activation, At, BlobId, BranchLabel, ConversationUpdate, Error, Expected, KeyScope,
    ListConversations, ListEntries, MetadataChange, NewBranch, NodeQuery, OnMoved, PutEntry,
    ReadRequest, RefChange, StateRequest, Store, Thing, TitleChange,
};
use contexture_store::{AppendAt, AppendRequest};

use crate::chat::{Chat, NOW, branch, item, new_branch, node, on};

type Tested = Arc<dyn Store>;

/// Every method, with ids and names that exist in a conversation made by [`fill`], must say that
/// there is no such conversation. A new method of the trait belongs here.
pub(super) async fn everything_is_not_found(chat: &Chat) {
    let mut errors: Vec<(&str, Option<Error>)> = Vec::new();
    let (store, owner, id) = (&chat.store, &chat.owner, &chat.id);
    macro_rules! refused {
        ($name:literal, $call:expr) => {
            errors.push(($name, $call.await.err()))
        };
    }
    refused!("conversation", store.conversation(owner, id));
    let update = ConversationUpdate {
        title: TitleChange::Set(Some("mine".to_owned())),
        metadata: MetadataChange::Keep,
        expect_version: Some(1),
        at_ms: NOW,
    };
    refused!("update", store.update_conversation(owner, id, update));
    refused!("delete", store.delete_conversation(owner, id));
    let new = new_branch(
        Some("a"),
        BranchLabel::After(branch("main")),
        Activation::Activate,
    );
    for (at, on_moved) in [
        (Chat::at_tip("main"), OnMoved::Refuse),
        (Chat::at_tip("never"), OnMoved::Refuse),
        (Chat::at_head("main", Some("b")), OnMoved::Refuse),
        (Chat::at_head("main", Some("a")), OnMoved::Sibling),
        (AppendAt::New(new.clone()), OnMoved::Refuse),
    ] {
        // A new item, and one that the owner has.
        for word in ["intruder", "b"] {
            let request = AppendRequest {
                on_moved,
                ..AppendRequest::new(at.clone(), vec![item(word)], NOW)
            };
            refused!("append", store.append(owner, id, request));
        }
    }
    let checkpoint = CheckpointName::new("here").unwrap();
    for at in [
        on("main"),
        on("never"),
        At::Node(node("a")),
        At::Checkpoint(checkpoint.clone()),
    ] {
        refused!(
            "read",
            store.read(owner, id, ReadRequest::whole(at.clone()))
        );
        refused!("state", store.state(owner, id, StateRequest::all(at)));
    }
    for query in [
        NodeQuery::Id(node("a")),
        NodeQuery::Prefix(node("a").to_string()),
        NodeQuery::Message(MessageId::new(node("a").to_string()).unwrap()),
    ] {
        refused!("nodes", store.nodes(owner, id, query));
    }
    refused!("refs", store.refs(owner, id));
    for change in changes(new, checkpoint) {
        refused!("change_ref", store.change_ref(owner, id, change, NOW));
    }
    refused!("put_blob", store.put_blob(owner, id, Arc::from(*b"blob")));
    let blob = BlobId::of(owner, b"blob");
    refused!("blob", store.blob(owner, id, blob));
    refused!("events", store.events(owner, id, 0, 10));
    let scope = KeyScope::Conversation(id.clone());
    refused!("entry", store.entry(owner, &scope, "k"));
    refused!(
        "entries",
        store.entries(owner, ListEntries::of(scope.clone(), ""))
    );
    let put = PutEntry {
        key: "k".to_owned(),
        value: None,
        expect: Expected::Any,
        at_ms: NOW,
    };
    refused!("put_entry", store.put_entry(owner, &scope, put));
    for (name, error) in errors {
        let error = error.unwrap_or_else(|| panic!("{name} answered"));
        assert!(
            matches!(
                error,
                Error::NotFound {
                    what: Thing::Conversation,
                    ..
                }
            ),
            "{name}: {error}"
        );
        assert_eq!(
            error.to_string(),
            format!("conversation {:?} not found", id.as_str())
        );
    }
}

/// One change of each kind.
fn changes(new: NewBranch, checkpoint: CheckpointName) -> [RefChange; 6] {
    [
        RefChange::CreateBranch(new),
        RefChange::Activate(BranchName::main()),
        RefChange::DeleteBranch(BranchName::main()),
        RefChange::Claim(BranchName::main()),
        RefChange::SetCheckpoint {
            name: checkpoint.clone(),
            node: node("a"),
        },
        RefChange::DeleteCheckpoint(checkpoint),
    ]
}

/// A conversation in which everything that [`everything_is_not_found`] asks for exists.
async fn fill(chat: &Chat) {
    chat.say("main", &["a", "b"]).await;
    let name = CheckpointName::new("here").unwrap();
    let set = RefChange::SetCheckpoint {
        name,
        node: node("a"),
    };
    chat.change(set).await.unwrap();
    let blob = chat
        .store
        .put_blob(&chat.owner, &chat.id, Arc::from(*b"blob"));
    blob.await.unwrap();
    let put = PutEntry {
        key: "k".to_owned(),
        value: Some(Arc::from(*b"v")),
        expect: Expected::Absent,
        at_ms: NOW,
    };
    let scope = KeyScope::Conversation(chat.id.clone());
    chat.store
        .put_entry(&chat.owner, &scope, put)
        .await
        .unwrap();
}

pub(super) async fn nobody_learns_of_a_strangers_conversation(store: Tested) {
    let ada = Chat::start_as(store, "acme/ada", "chat").await;
    fill(&ada).await;
    // Names that a careless comparison would take for the owner's.
    for name in [
        "bob",
        "acme",
        "acme/",
        "acme/ad",
        "acme/ada2",
        "ACME/ADA",
        "acme/ada/x",
    ] {
        let stranger = Chat {
            owner: Owner::new(name).unwrap(),
            ..ada.clone()
        };
        everything_is_not_found(&stranger).await;
        let list = ListConversations::default();
        let list = stranger
            .store
            .conversations(&stranger.owner, list)
            .await
            .unwrap();
        assert!(list.conversations.is_empty(), "{name}");
    }
    let absent = Chat {
        id: contexture_ir::ConversationId::new("never").unwrap(),
        ..ada.clone()
    };
    everything_is_not_found(&absent).await;
    ada.expect("main", &["a", "b"]).await;
    assert_eq!(ada.branches().await, ["main"]);
    let record = ada.store.conversation(&ada.owner, &ada.id).await.unwrap();
    assert_eq!((record.title, record.version), (None, 1));
}

pub(super) async fn equal_bytes_of_two_owners_have_other_ids(store: Tested) {
    let ada = Chat::start_as(Arc::clone(&store), "ada", "chat").await;
    let bob = Chat::start_as(store, "bob", "chat").await;
    fill(&ada).await;
    let stolen = BlobId::of(&ada.owner, b"blob");
    let put = bob.store.put_blob(&bob.owner, &bob.id, Arc::from(*b"blob"));
    assert_ne!(put.await.unwrap(), stolen);
    let read = bob.store.blob(&bob.owner, &bob.id, stolen).await;
    assert!(matches!(
        read.unwrap_err(),
        Error::NotFound {
            what: Thing::Blob,
            ..
        }
    ));
}
