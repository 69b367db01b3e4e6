//! Isolation: what no owner learns about another.

use std::sync::Arc;

use contexture_ir::{BranchName, CheckpointName, MessageId, Owner, ResponseId};
use contexture_store::{
    Activation, AppendPoint, AppendRequest, BlobId, BranchLabel, CollectRequest,
    ConversationUpdate, EntityKind, EraseScope, Erased, Error, ExchangeChange, ExpectedVersion,
    KeyScope, ListConversations, ListEntries, MetadataChange, NewBranch, NodeKind, NodeQuery,
    OnMoved, PathEnd, PutEntry, ReadRequest, RedactRequest, RefChange, ResponseRecord,
    SearchRequest, SearchScope, StateRequest, Store, TitleChange, VerifyCursor, erase_all,
};

use super::presence::exchange_mark;
use super::streaming::Streaming;
use crate::chat::{Chat, NOW, branch, branch_end, claim_of, item, new_branch, node};
use crate::method::Method;

type Tested = Arc<dyn Store>;

fn put_request() -> PutEntry {
    PutEntry {
        key: "k".to_owned(),
        value: None,
        expect: ExpectedVersion::Any,
        at_ms: NOW,
    }
}

/// Returns whether a method names no conversation: see `nobody_learns_of_a_strangers_conversation`.
fn names_no_conversation(method: Method) -> bool {
    matches!(
        method,
        Method::CheckConnection
            | Method::CreateConversation
            | Method::ListConversations
            | Method::EraseStep
    )
}

/// Calls of one method, with ids and names that exist in a conversation made by [`fill_conversation`].
async fn call_method(method: Method, chat: &Chat) -> Vec<Option<Error>> {
    let (store, owner, id) = (&chat.store, &chat.owner, &chat.id);
    let mut errors = Vec::new();
    macro_rules! refused {
        ($call:expr) => {
            errors.push($call.await.err())
        };
    }
    let scope = KeyScope::Conversation(id.clone());
    match method {
        method if names_no_conversation(method) => {}
        Method::LoadConversation => refused!(store.load_conversation(owner, id)),
        Method::UpdateConversation => {
            let update = ConversationUpdate {
                title: TitleChange::Set(Some("mine".to_owned())),
                metadata: MetadataChange::Keep,
                expect_version: Some(1),
                at_ms: NOW,
            };
            refused!(store.update_conversation(owner, id, update));
        }
        Method::DeleteConversation => refused!(store.delete_conversation(owner, id)),
        Method::AppendItems => {
            for request in append_requests() {
                refused!(store.append_items(owner, id, request));
            }
        }
        Method::ReadPath => {
            for at in path_ends() {
                refused!(store.read_path(owner, id, ReadRequest::whole_path(at)));
            }
        }
        Method::ReadState => {
            for at in path_ends() {
                refused!(store.read_state(owner, id, StateRequest::all_entries(at)));
            }
        }
        Method::FindNodes => {
            for query in node_queries() {
                refused!(store.find_nodes(owner, id, query));
            }
        }
        Method::ListRefs => refused!(store.list_refs(owner, id)),
        Method::ChangeRef => {
            for change in ref_changes() {
                refused!(store.change_ref(owner, id, change, NOW));
            }
        }
        Method::PutBlob => refused!(store.put_blob(owner, id, Arc::from(*b"blob"))),
        Method::ReadBlob => refused!(store.read_blob(owner, id, BlobId::of(owner, b"blob"))),
        Method::LoadResponse => refused!(store.load_response(owner, id, response_id())),
        Method::RedactContent => {
            let request = RedactRequest {
                nodes: vec![node("a")],
                blobs: vec![BlobId::of(owner, b"blob")],
                ..RedactRequest::default()
            };
            refused!(store.redact_content(owner, id, request));
            refused!(store.redact_content(owner, id, RedactRequest::default()));
        }
        Method::ListEvents => refused!(store.list_events(owner, id, 0, 10)),
        Method::GetEntry => refused!(store.get_entry(owner, &scope, "k")),
        Method::ListEntries => {
            let list = ListEntries::in_scope(scope, "");
            refused!(store.list_entries(owner, list));
        }
        Method::PutEntry => refused!(store.put_entry(owner, &scope, put_request())),
        Method::SearchNodes => {
            if let Some(search) = store.search() {
                let conversation = id.clone();
                let mut scopes = vec![SearchScope::Conversation(conversation.clone())];
                scopes.extend(path_ends().map(|at| SearchScope::Path {
                    conversation: conversation.clone(),
                    at,
                }));
                for scope in scopes {
                    let request = SearchRequest::new("a", scope);
                    refused!(search.search_nodes(owner, request));
                }
            }
        }
        Method::OpenStream
        | Method::AppendChunks
        | Method::FinishStream
        | Method::CancelStream
        | Method::ReadChunks
        | Method::ListStreams
        | Method::DeleteStream => {
            if store.streams().is_some() {
                let chat = Streaming(chat.clone());
                errors.push(chat.call_method(method).await.err());
            }
        }
        method => errors.extend(call_without_conversation(method, chat).await),
    }
    errors
}

/// Calls a method of an optional part of the contract.
async fn call_without_conversation(method: Method, chat: &Chat) -> Vec<Option<Error>> {
    match method {
        method if method.is_of_paths() => calls_of_paths(method, chat).await,
        method if method.is_of_processes() => calls_of_processes(method, chat).await,
        // They name no conversation that must be there; whose calls they give is in `calls`.
        method if method.is_of_calls() => Vec::new(),
        method => calls_of_maintenance(method, chat).await,
    }
}

/// Calls of one method of [`Processes`](contexture_store::Processes). Processes belong to no owner; the exchanges that are
/// found are their owner's (`presence`).
async fn calls_of_processes(method: Method, chat: &Chat) -> Vec<Option<Error>> {
    match chat.store.processes() {
        Some(processes) if method == Method::ChangeExchange => {
            let change = ExchangeChange::Begin(exchange_mark("question", "process", 1));
            let changed = processes.change_exchange(&chat.owner, &chat.id, change);
            vec![changed.await.err()]
        }
        _ => Vec::new(),
    }
}

/// Calls of one method of [`PathIndex`](contexture_store::PathIndex). The one that finds names no
/// conversation; what it finds is its owner's (`finding`).
async fn calls_of_paths(method: Method, chat: &Chat) -> Vec<Option<Error>> {
    match chat.store.path_index() {
        Some(paths) if method == Method::PutPaths => {
            let put = paths.put_paths(&chat.owner, &chat.id, 1, Vec::new());
            vec![put.await.err()]
        }
        _ => Vec::new(),
    }
}

/// Calls of one method of [`Maintenance`](contexture_store::Maintenance).
async fn calls_of_maintenance(method: Method, chat: &Chat) -> Vec<Option<Error>> {
    let (owner, id) = (&chat.owner, &chat.id);
    let Some(upkeep) = chat.store.maintenance() else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    match method {
        Method::VerifyPage => {
            errors.push(upkeep.verify_page(owner, id, None).await.err());
            for part in 0..8 {
                let after = Some(VerifyCursor { part, after: 0 });
                errors.push(upkeep.verify_page(owner, id, after).await.err());
            }
        }
        Method::ReadStatistics => errors.push(upkeep.read_statistics(owner, id).await.err()),
        Method::CollectBlobs => {
            let request = CollectRequest::new(NOW);
            errors.push(upkeep.collect_blobs(owner, id, request).await.err());
        }
        // These concern the whole database and return no owner's data.
        Method::VerifyMedium | Method::ListOwners | Method::CompactStorage | Method::BackUp => {}
        other => panic!("{} is not of maintenance", other.name()),
    }
    errors
}

/// Every method that names a conversation must report an unknown conversation, with the same error
/// text.
pub(super) async fn everything_is_not_found(chat: &Chat) {
    for method in Method::ALL {
        let name = method.name();
        let errors = call_method(method, chat).await;
        let exempt = match method {
            method if names_no_conversation(method) => true,
            Method::VerifyMedium | Method::ListOwners | Method::CompactStorage | Method::BackUp => {
                true
            }
            Method::SearchNodes => chat.store.search().is_none(),
            Method::FindPathHashes => true,
            Method::PutPaths => chat.store.path_index().is_none(),
            Method::ChangeExchange => chat.store.processes().is_none(),
            method if method.is_of_processes() || method.is_of_calls() => true,
            method if method.is_of_streams() => chat.store.streams().is_none(),
            method if method.is_of_maintenance() => chat.store.maintenance().is_none(),
            _ => false,
        };
        assert!(exempt || !errors.is_empty(), "{name} is not tried");
        for error in errors {
            let error = error.unwrap_or_else(|| panic!("{name} answered"));
            assert!(
                matches!(
                    error,
                    Error::NotFound {
                        what: EntityKind::Conversation,
                        ..
                    }
                ),
                "{name}: {error}"
            );
            assert_eq!(
                error.to_string(),
                format!("conversation {:?} not found", chat.id.as_str())
            );
        }
    }
}

/// One query of each kind.
fn node_queries() -> [NodeQuery; 5] {
    [
        NodeQuery::Id(node("a")),
        NodeQuery::Prefix(node("a").to_string()),
        NodeQuery::Message(MessageId::new(node("a").to_string()).unwrap()),
        NodeQuery::CopiesOf(node("a")),
        NodeQuery::Kind(NodeKind::User),
    ]
}

/// Ends of paths, existing and unknown.
fn path_ends() -> [PathEnd; 4] {
    [
        branch_end("main"),
        branch_end("never"),
        PathEnd::Node(node("a")),
        PathEnd::Checkpoint(CheckpointName::new("here").unwrap()),
    ]
}

/// Appends at every kind of point, of a new item and of one that the owner has.
fn append_requests() -> Vec<AppendRequest> {
    let places = [
        (Chat::at_tip("main"), OnMoved::Refuse),
        (Chat::at_tip("never"), OnMoved::Refuse),
        (Chat::at_head("main", Some("b")), OnMoved::Refuse),
        (Chat::at_head("main", Some("a")), OnMoved::Sibling),
        (AppendPoint::New(a_branch()), OnMoved::Refuse),
    ];
    let requests = places.into_iter().flat_map(|(at, on_moved)| {
        ["intruder", "b"].map(|word| AppendRequest {
            on_moved,
            entries: vec![(KeyScope::Owner, intruding_entry())],
            ..AppendRequest::new(at.clone(), vec![item(word)], NOW)
        })
    });
    requests.collect()
}

/// What would be written with it.
fn intruding_entry() -> PutEntry {
    PutEntry {
        key: "intruding".to_owned(),
        value: Some(Arc::from(*b"x")),
        expect: ExpectedVersion::Any,
        at_ms: NOW,
    }
}

fn response_id() -> ResponseId {
    ResponseId::derive("testkit", &[b"answer"])
}

fn a_branch() -> NewBranch {
    new_branch(
        Some("a"),
        BranchLabel::After(branch("main")),
        Activation::Activate,
    )
}

/// One change of each kind.
fn ref_changes() -> [RefChange; 7] {
    let checkpoint = CheckpointName::new("here").unwrap();
    [
        RefChange::CreateBranch(a_branch()),
        RefChange::Activate(BranchName::main()),
        RefChange::RenameBranch {
            from: BranchName::main(),
            to: branch("mine"),
        },
        RefChange::DeleteBranch(BranchName::main()),
        claim_of("main"),
        RefChange::SetCheckpoint {
            name: checkpoint.clone(),
            node: node("a"),
        },
        RefChange::DeleteCheckpoint(checkpoint),
    ]
}

/// A conversation in which everything that [`call_method`] asks for exists.
async fn fill_conversation(chat: &Chat) {
    chat.append_messages("main", &["a"]).await;
    let request = AppendRequest {
        response: Some(ResponseRecord::new(response_id(), Some(node("a")), NOW)),
        ..AppendRequest::new(Chat::at_tip("main"), vec![item("b")], NOW)
    };
    chat.append_request(request).await.unwrap();
    if chat.store.streams().is_some() {
        let chat = Streaming(chat.clone());
        for method in [Method::OpenStream, Method::AppendChunks] {
            chat.call_method(method).await.unwrap();
        }
    }
    let name = CheckpointName::new("here").unwrap();
    let set = RefChange::SetCheckpoint {
        name,
        node: node("a"),
    };
    chat.change_ref(set).await.unwrap();
    let blob = chat
        .store
        .put_blob(&chat.owner, &chat.id, Arc::from(*b"blob"));
    blob.await.unwrap();
    let put = PutEntry {
        key: "k".to_owned(),
        value: Some(Arc::from(*b"v")),
        expect: ExpectedVersion::Absent,
        at_ms: NOW,
    };
    for scope in [
        KeyScope::Conversation(chat.id.clone()),
        KeyScope::Resource("r".to_owned()),
    ] {
        let put = put.clone();
        chat.store
            .put_entry(&chat.owner, &scope, put)
            .await
            .unwrap();
    }
}

pub(super) async fn nobody_learns_of_a_strangers_conversation(store: Tested) {
    let ada = Chat::start_as(store, "acme/ada", "chat").await;
    fill_conversation(&ada).await;
    // Names that a careless comparison would confuse with the owner's.
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
        expect_empty_lists(&stranger).await;
    }
    let absent = Chat {
        id: contexture_ir::ConversationId::new("never").unwrap(),
        ..ada.clone()
    };
    everything_is_not_found(&absent).await;
    expect_filled_conversation(&ada).await;
    // A conversation that another owner creates with the same id is a different one.
    let bob = Chat::start_as(Arc::clone(&ada.store), "bob", "chat").await;
    bob.append_messages("main", &["a"]).await;
    ada.expect_path("main", &["a", "b"]).await;
}

/// Another owner can list, erase and search nothing.
async fn expect_empty_lists(stranger: &Chat) {
    let name = &stranger.owner;
    let list = ListConversations::default();
    let list = stranger
        .store
        .list_conversations(&stranger.owner, list)
        .await
        .unwrap();
    assert!(list.conversations.is_empty(), "{name}");
    let entries = stranger
        .store
        .list_entries(&stranger.owner, ListEntries::default());
    assert!(entries.await.unwrap().entries.is_empty(), "{name}");
    for scope in [
        EraseScope::Owner,
        EraseScope::Resource("r".to_owned()),
        EraseScope::Resource(String::new()),
    ] {
        let erased = erase_all(&*stranger.store, &stranger.owner, &scope).await;
        assert_eq!(erased.unwrap(), Erased::default(), "{name}");
    }
    if let Some(search) = stranger.store.search() {
        for scope in [SearchScope::Owner, SearchScope::Resource("r".to_owned())] {
            let found = search.search_nodes(&stranger.owner, SearchRequest::new("a", scope));
            assert!(found.await.unwrap().hits.is_empty(), "{name}");
        }
    }
}

/// Checks that what [`fill_conversation`] wrote is there, and nothing else.
async fn expect_filled_conversation(chat: &Chat) {
    chat.expect_path("main", &["a", "b"]).await;
    assert_eq!(chat.branch_names().await, ["main"]);
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!((record.title, record.version), (None, 1));
    let entries = chat
        .store
        .list_entries(&chat.owner, ListEntries::default())
        .await;
    assert_eq!(entries.unwrap().entries.len(), 2);
}

pub(super) async fn equal_bytes_of_two_owners_have_other_ids(store: Tested) {
    let ada = Chat::start_as(Arc::clone(&store), "ada", "chat").await;
    let bob = Chat::start_as(store, "bob", "chat").await;
    fill_conversation(&ada).await;
    let stolen = BlobId::of(&ada.owner, b"blob");
    let put = bob.store.put_blob(&bob.owner, &bob.id, Arc::from(*b"blob"));
    assert_ne!(put.await.unwrap(), stolen);
    let read = bob.store.read_blob(&bob.owner, &bob.id, stolen).await;
    assert!(matches!(
        read.unwrap_err(),
        Error::NotFound {
            what: EntityKind::Blob,
            ..
        }
    ));
}
