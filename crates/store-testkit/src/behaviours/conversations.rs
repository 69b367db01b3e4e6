//! Conversations: creating, listing, updating, deleting.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::{BranchName, ConversationId, Owner, Raw};
use contexture_store::{
    Activation, AppendRequest, ConversationUpdate, EntityKind, Error, ListConversations, Metadata,
    MetadataChange, NewConversation, Store, TitleChange,
};

use crate::chat::{Chat, NOW, branch_end, item};

type Tested = Arc<dyn Store>;

fn raw(json: &str) -> Raw {
    Raw::parse(json).unwrap()
}

pub(super) async fn a_new_one_has_an_empty_active_main(store: Tested) {
    let chat = Chat::start(store).await;
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(record.active, BranchName::main());
    assert_eq!((record.nodes, record.branches, record.messages), (0, 1, 0));
    assert_eq!((record.created_ms, record.updated_ms), (NOW, NOW));
    assert_eq!(record.version, 1);
    chat.expect_path("main", &[]).await;
    assert!(chat.branch_record("main").await.active);
    assert!(chat.state_values(branch_end("main")).await.is_empty());
}

pub(super) async fn an_id_is_taken_once(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let again = NewConversation::new(chat.id.clone(), NOW + 1);
    let error = chat.store.create_conversation(&chat.owner, again).await;
    assert!(matches!(
        error.unwrap_err(),
        Error::AlreadyExists {
            what: EntityKind::Conversation,
            ..
        }
    ));
    // A refused creation must not have reset what was there.
    chat.expect_path("main", &["a"]).await;
}

pub(super) async fn a_record_names_its_last_event(store: Tested) {
    let chat = Chat::start(store).await;
    let check = async || {
        let events = chat.event_kinds().await.len() as u64;
        let record = chat.store.load_conversation(&chat.owner, &chat.id).await;
        assert_eq!(record.unwrap().events, events);
        let list = ListConversations::default();
        let page = chat
            .store
            .list_conversations(&chat.owner, list)
            .await
            .unwrap();
        assert_eq!(page.conversations[0].events, events);
    };
    check().await;
    chat.append_messages("main", &["a", "b"]).await;
    check().await;
    chat.rewind("main", "a", Activation::Activate).await;
    check().await;
    let title = TitleChange::Set(Some("b".into()));
    let update = ConversationUpdate {
        title,
        ..ConversationUpdate::new(NOW)
    };
    let updated = chat
        .store
        .update_conversation(&chat.owner, &chat.id, update);
    // Created before the update is polled, which is lazy until then: the update itself adds one
    // event.
    let seen = chat.event_kinds().await.len() as u64 + 1;
    assert_eq!(updated.await.unwrap().events, seen);
    check().await;
}

pub(super) async fn ids_belong_to_owners(store: Tested) {
    let ada = Chat::start_as(Arc::clone(&store), "ada", "chat").await;
    let bob = Chat::start_as(store, "bob", "chat").await;
    ada.append_messages("main", &["a"]).await;
    bob.append_messages("main", &["a", "b"]).await;
    ada.expect_path("main", &["a"]).await;
    bob.expect_path("main", &["a", "b"]).await;
}

pub(super) async fn lists_show_the_latest_first_in_pages(store: Tested) {
    let owner = Owner::local();
    // Two have the same time, and the id decides: a page may end between them.
    for (id, at) in [("c", 30), ("a", 20), ("b", 20), ("d", 10), ("e", 40)] {
        let new = NewConversation::new(ConversationId::new(id).unwrap(), at);
        store.create_conversation(&owner, new).await.unwrap();
    }
    let stranger = NewConversation::new(ConversationId::new("x").unwrap(), 99);
    let other = Owner::new("other").unwrap();
    store.create_conversation(&other, stranger).await.unwrap();
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let list = ListConversations {
            limit: Some(2),
            after,
            ..ListConversations::default()
        };
        let page = store.list_conversations(&owner, list).await.unwrap();
        // A page may be shorter than its limit. Only the missing cursor marks the last page.
        assert!(page.conversations.len() <= 2);
        seen.extend(page.conversations.iter().map(|one| one.id.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["e", "c", "a", "b", "d"]);
    let all = store.list_conversations(&owner, ListConversations::default());
    assert_eq!(all.await.unwrap().conversations.len(), 5);
}

pub(super) async fn lists_can_be_of_one_resource(store: Tested) {
    let owner = Owner::local();
    for (id, resource) in [
        ("a", Some("u1")),
        ("b", None),
        ("c", Some("u2")),
        ("d", Some("u1")),
    ] {
        let new = NewConversation {
            resource: resource.map(str::to_owned),
            ..NewConversation::new(ConversationId::new(id).unwrap(), NOW)
        };
        store.create_conversation(&owner, new).await.unwrap();
    }
    // The empty name is a resource that does not exist; it must not mean "no resource".
    for (resource, expected) in [("u1", vec!["a", "d"]), ("u2", vec!["c"]), ("", vec![])] {
        let list = ListConversations {
            resource: Some(resource.to_owned()),
            ..ListConversations::default()
        };
        let page = store.list_conversations(&owner, list).await.unwrap();
        let ids = page.conversations.iter().map(|one| one.id.as_str());
        assert_eq!(ids.collect::<Vec<_>>(), expected, "{resource:?}");
    }
}

pub(super) async fn metadata_is_replaced_merged_and_removed(store: Tested) {
    let chat = Chat::start(store).await;
    let update = async |metadata| {
        let update = ConversationUpdate {
            metadata,
            ..ConversationUpdate::new(NOW)
        };
        let updated = chat
            .store
            .update_conversation(&chat.owner, &chat.id, update);
        updated.await.unwrap().metadata
    };
    let first = Metadata::from([("a".into(), raw("1")), ("b".into(), raw("2"))]);
    assert_eq!(update(MetadataChange::Replace(first.clone())).await, first);
    assert_eq!(update(MetadataChange::Keep).await, first);
    // One of each kind: removed, replaced, added, and a removal of what is not there, which is no
    // error.
    let merge = BTreeMap::from([
        ("a".into(), None),
        ("b".into(), Some(raw("3"))),
        ("c".into(), Some(raw("[]"))),
        ("never".into(), None),
    ]);
    let merged = Metadata::from([("b".into(), raw("3")), ("c".into(), raw("[]"))]);
    assert_eq!(update(MetadataChange::Merge(merge)).await, merged);
    let none = MetadataChange::Replace(Metadata::new());
    assert!(update(none).await.is_empty());
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert!(record.metadata.is_empty());
    assert_eq!(record.version, 5);
}

pub(super) async fn metadata_values_are_kept_as_written(store: Tested) {
    // Values that a JSON library or a database column might round, reorder, merge or refuse.
    let values = [
        "12345678901234567890123",
        "1e400",
        r#"{"b":1,"a":2,"b":3}"#,
        r#""\u0000\ud83d\ude00""#,
        "[ 1 , 2 ]",
        "null",
    ];
    let names = ["n", "e", "twice", "nul", "spaces", ""];
    let metadata: Metadata = names
        .iter()
        .zip(values)
        .map(|(key, json)| ((*key).to_owned(), raw(json)))
        .collect();
    let id = ConversationId::new("chat").unwrap();
    let new = NewConversation {
        metadata: metadata.clone(),
        ..NewConversation::new(id.clone(), NOW)
    };
    let made = store.create_conversation(&Owner::local(), new).await;
    assert_eq!(made.unwrap().metadata, metadata);
    let read = store.load_conversation(&Owner::local(), &id).await.unwrap();
    assert_eq!(read.metadata, metadata);
}

pub(super) async fn titles_come_and_go(store: Tested) {
    let chat = Chat::start(store).await;
    for title in [
        // PostgreSQL refuses NUL in a text column, so a store must encode it differently.
        Some("Ünïcode \u{0} \u{202e} title".to_owned()),
        Some(String::new()),
        None,
    ] {
        let update = ConversationUpdate {
            title: TitleChange::Set(title.clone()),
            ..ConversationUpdate::new(NOW)
        };
        let updated = chat
            .store
            .update_conversation(&chat.owner, &chat.id, update);
        assert_eq!(updated.await.unwrap().title, title);
        let record = chat.store.load_conversation(&chat.owner, &chat.id).await;
        assert_eq!(record.unwrap().title, title);
    }
}

pub(super) async fn an_update_may_insist_on_a_version(store: Tested) {
    let chat = Chat::start(store).await;
    let update = async |expect_version| {
        let update = ConversationUpdate {
            expect_version: Some(expect_version),
            title: TitleChange::Set(Some(format!("for {expect_version}"))),
            ..ConversationUpdate::new(NOW)
        };
        let updated = chat
            .store
            .update_conversation(&chat.owner, &chat.id, update);
        updated.await
    };
    assert_eq!(update(1).await.unwrap().version, 2);
    assert!(matches!(
        update(1).await.unwrap_err(),
        Error::VersionConflict {
            expected: 1,
            actual: 2,
            ..
        }
    ));
    // The refused update must not have changed the title.
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(record.title.as_deref(), Some("for 1"));
}

pub(super) async fn an_append_makes_it_recent(store: Tested) {
    let old = Chat::start_as(Arc::clone(&store), "ada", "old").await;
    let new = Chat::start_as(store, "ada", "new").await;
    // Later than both creations, so that only the append can move it to the front.
    let request = AppendRequest::new(Chat::at_tip("main"), vec![item("a")], NOW + 5);
    old.append_request(request).await.unwrap();
    let list = ListConversations::default();
    let page = new
        .store
        .list_conversations(&new.owner, list)
        .await
        .unwrap();
    let first = &page.conversations[0];
    assert_eq!((first.id.as_str(), first.updated_ms), ("old", NOW + 5));
    assert_eq!((first.nodes, first.messages), (1, 1));
}

pub(super) async fn deletion_takes_everything(store: Tested) {
    let gone = Chat::start_as(Arc::clone(&store), "ada", "gone").await;
    let kept = Chat::start_as(store, "ada", "kept").await;
    gone.append_messages("main", &["a", "b"]).await;
    // The same node id as in the other conversation: a deletion by node id alone would remove this
    // one too.
    kept.append_messages("main", &["a"]).await;
    gone.store
        .delete_conversation(&gone.owner, &gone.id)
        .await
        .unwrap();
    super::owners::everything_is_not_found(&gone).await;
    let again = gone.store.delete_conversation(&gone.owner, &gone.id).await;
    assert!(matches!(again.unwrap_err(), Error::NotFound { .. }));
    kept.expect_path("main", &["a"]).await;
    let list = kept
        .store
        .list_conversations(&kept.owner, ListConversations::default());
    assert_eq!(list.await.unwrap().conversations.len(), 1);
}

pub(super) async fn a_deleted_id_starts_afresh(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    chat.store
        .delete_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    let chat = Chat::start(chat.store).await;
    chat.expect_path("main", &[]).await;
    // A node id of the deleted conversation: if it were still known, this would count as a
    // repetition.
    chat.append_messages("main", &["b"]).await;
    chat.expect_path("main", &["b"]).await;
    let events = chat
        .store
        .list_events(&chat.owner, &chat.id, 0, 100)
        .await
        .unwrap();
    assert_eq!(
        events.iter().map(|event| event.seq).collect::<Vec<_>>(),
        [1, 2]
    );
}
