//! Erasing all data of an owner or a resource, after listing it.

use std::sync::Arc;
use std::task::{Context, Waker};

use contexture_ir::{ConversationId, Owner};
use contexture_store::{
    EntryCursor, EraseScope, Erased, ExpectedVersion, KeyScope, ListConversations, ListEntries,
    NewConversation, PutEntry, Store, erase_all,
};

use crate::chat::{Chat, NOW};

type Tested = Arc<dyn Store>;

async fn start_chat(store: &Tested, owner: &str, id: &str, resource: Option<&str>) -> Chat {
    let chat = Chat {
        store: Arc::clone(store),
        owner: Owner::new(owner).unwrap(),
        id: ConversationId::new(id).unwrap(),
    };
    let new = NewConversation {
        resource: resource.map(str::to_owned),
        ..NewConversation::new(chat.id.clone(), NOW)
    };
    store.create_conversation(&chat.owner, new).await.unwrap();
    chat.append_messages("main", &["a", "b"]).await;
    put_value(&chat, KeyScope::Conversation(chat.id.clone()), "k").await;
    chat
}

async fn put_value(chat: &Chat, scope: KeyScope, key: &str) {
    let put = PutEntry {
        key: key.to_owned(),
        value: Some(Arc::from(*b"v")),
        expect: ExpectedVersion::Any,
        at_ms: NOW,
    };
    let written = chat.store.put_entry(&chat.owner, &scope, put).await;
    written.unwrap();
}

/// Returns the ids of an owner's conversations and the keys of its values.
async fn remaining_data(store: &Tested, owner: &Owner) -> (Vec<String>, Vec<String>) {
    let list = store.list_conversations(owner, ListConversations::default());
    let mut ids: Vec<String> = list
        .await
        .unwrap()
        .conversations
        .iter()
        .map(|one| one.id.to_string())
        .collect();
    ids.sort_unstable();
    let entries = store
        .list_entries(owner, ListEntries::default())
        .await
        .unwrap();
    let keys = entries.entries.iter();
    let keys = keys.map(|(scope, entry)| match scope {
        KeyScope::Owner => format!("/{}", entry.key),
        KeyScope::Resource(name) => format!("{name}/{}", entry.key),
        KeyScope::Conversation(id) => format!("#{id}/{}", entry.key),
    });
    (ids, keys.collect())
}

async fn fill_owners(store: &Tested) -> Chat {
    let chat = start_chat(store, "ada", "one", Some("r")).await;
    start_chat(store, "ada", "two", Some("r")).await;
    start_chat(store, "ada", "three", Some("s")).await;
    start_chat(store, "ada", "four", None).await;
    start_chat(store, "bob", "one", Some("r")).await;
    for (scope, key) in [
        (KeyScope::Owner, "o"),
        (KeyScope::Resource("r".to_owned()), "p"),
        (KeyScope::Resource("s".to_owned()), "q"),
        (KeyScope::Resource("one".to_owned()), "x"),
    ] {
        put_value(&chat, scope, key).await;
    }
    chat
}

pub(super) async fn a_resource_goes_and_the_rest_stays(store: Tested) {
    let chat = fill_owners(&store).await;
    let scope = EraseScope::Resource("r".to_owned());
    let erased = erase_all(&*store, &chat.owner, &scope).await.unwrap();
    assert_eq!((erased.conversations, erased.entries), (2, 3));
    let (ids, keys) = remaining_data(&store, &chat.owner).await;
    assert_eq!(ids, ["four", "three"]);
    assert_eq!(keys, ["/o", "one/x", "s/q", "#four/k", "#three/k"]);
    super::owners::everything_is_not_found(&chat).await;
    let (ids, keys) = remaining_data(&store, &Owner::new("bob").unwrap()).await;
    assert_eq!((ids, keys), (vec!["one".to_owned()], vec!["#one/k".into()]));
    let again = erase_all(&*store, &chat.owner, &scope).await.unwrap();
    assert_eq!(again, Erased::default());
    // Erasing a value erases its version too.
    put_value(&chat, KeyScope::Resource("r".to_owned()), "p").await;
    let scope = KeyScope::Resource("r".to_owned());
    let entry = store.get_entry(&chat.owner, &scope, "p").await.unwrap();
    assert_eq!(entry.unwrap().version, 1);
}

pub(super) async fn an_owner_is_erased_completely(store: Tested) {
    let chat = fill_owners(&store).await;
    let erased = erase_all(&*store, &chat.owner, &EraseScope::Owner).await;
    let erased = erased.unwrap();
    assert_eq!((erased.conversations, erased.entries), (4, 8));
    assert_eq!(remaining_data(&store, &chat.owner).await, (vec![], vec![]));
    let bob = Owner::new("bob").unwrap();
    assert_eq!(remaining_data(&store, &bob).await.0, ["one"]);
    // The owner may start again.
    let chat = start_chat(&store, "ada", "one", None).await;
    chat.expect_path("main", &["a", "b"]).await;
}

pub(super) async fn it_goes_on_where_it_was_dropped(store: Tested) {
    let chat = fill_owners(&store).await;
    let scope = EraseScope::Owner;
    for _ in 0..6 {
        {
            let step = std::pin::pin!(erase_all(&*store, &chat.owner, &scope));
            let _ = step.poll(&mut Context::from_waker(Waker::noop()));
        }
        tokio::task::yield_now().await;
    }
    erase_all(&*store, &chat.owner, &scope).await.unwrap();
    assert_eq!(remaining_data(&store, &chat.owner).await, (vec![], vec![]));
}

pub(super) async fn values_are_listed_across_scopes_in_pages(store: Tested) {
    let chat = fill_owners(&store).await;
    let (_, all) = remaining_data(&store, &chat.owner).await;
    let expected = [
        "/o", "one/x", "r/p", "s/q", "#four/k", "#one/k", "#three/k", "#two/k",
    ];
    assert_eq!(all, expected);
    for limit in 1..=9 {
        let keys = listed_keys(&chat, limit).await;
        let all = ["o", "x", "p", "q", "k", "k", "k", "k"];
        assert_eq!(keys, all, "{limit} a page");
    }
    let of_prefix = ListEntries {
        prefix: "k".to_owned(),
        ..ListEntries::default()
    };
    let page = store.list_entries(&chat.owner, of_prefix).await.unwrap();
    assert_eq!(page.entries.len(), 4);
    // A cursor stays valid when the entry that it names is gone.
    let gone = EntryCursor {
        scope: KeyScope::Conversation(ConversationId::new("never").unwrap()),
        key: "k".to_owned(),
    };
    let after = ListEntries {
        after: Some(gone),
        ..ListEntries::default()
    };
    let page = store.list_entries(&chat.owner, after).await.unwrap();
    assert_eq!(page.entries.len(), 3, "one, three, two");
}

/// Reads the keys of all values of an owner, page by page.
async fn listed_keys(chat: &Chat, limit: usize) -> Vec<String> {
    let mut keys = Vec::new();
    let mut list = ListEntries {
        limit: Some(limit),
        ..ListEntries::default()
    };
    loop {
        let page = chat.store.list_entries(&chat.owner, list.clone()).await;
        let page = page.unwrap();
        assert!(page.entries.len() <= limit);
        keys.extend(page.entries.into_iter().map(|(_, entry)| entry.key));
        list.after = page.next;
        if list.after.is_none() {
            return keys;
        }
    }
}
