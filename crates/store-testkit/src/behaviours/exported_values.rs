//! Values of owners and resources: exported, erased, and imported again.

use std::sync::Arc;

use contexture_ir::Owner;
use contexture_store::{
    EraseScope, ExpectedVersion, ExportValues, ImportError, ImportValues, ImportedValues, KeyScope,
    ListEntries, MemoryStore, PutEntry, Store, erase_all,
};

use crate::chat::{Chat, NOW};

type Tested = Arc<dyn Store>;

async fn put_value(store: &dyn Store, owner: &Owner, scope: KeyScope, key: &str, value: &[u8]) {
    let put = PutEntry {
        key: key.to_owned(),
        value: Some(Arc::from(value)),
        expect: ExpectedVersion::Any,
        at_ms: NOW + value.len() as i64,
    };
    store.put_entry(owner, &scope, put).await.unwrap();
}

fn resource_scope(name: &str) -> KeyScope {
    KeyScope::Resource(name.to_owned())
}

async fn export_text(store: &dyn Store, owner: &Owner, of: Option<&str>) -> String {
    let mut export = ExportValues::new(store, owner, of.map(str::to_owned));
    let mut text = String::new();
    while let Some(lines) = export.next_lines().await.unwrap() {
        text.push_str(&lines);
    }
    text
}

async fn import_text(
    store: &dyn Store,
    owner: &Owner,
    text: &str,
) -> Result<ImportedValues, ImportError> {
    let mut import = ImportValues::new(store, owner);
    for line in text.lines() {
        import.import_line(line).await?;
    }
    import.finish_import().await
}

/// Returns all values of an owner, without versions.
async fn stored_values(store: &dyn Store, owner: &Owner) -> Vec<(KeyScope, String, Vec<u8>, i64)> {
    let list = ListEntries {
        limit: Some(2000),
        ..ListEntries::default()
    };
    let page = store.list_entries(owner, list).await.unwrap();
    let one = |(scope, entry): (KeyScope, contexture_store::KeyValueEntry)| {
        (scope, entry.key, entry.value.to_vec(), entry.at_ms)
    };
    page.entries.into_iter().map(one).collect()
}

/// Writes values in all scopes, more than a page in one of them, and values of another owner.
async fn fill_values(store: Tested) -> Chat {
    let chat = Chat::start(store).await;
    let store = &*chat.store;
    put_value(store, &chat.owner, KeyScope::Owner, "name", b"Ada").await;
    put_value(store, &chat.owner, KeyScope::Owner, "bytes", b"\xff\x00").await;
    put_value(store, &chat.owner, KeyScope::Owner, "gone", b"x").await;
    let gone = PutEntry {
        key: "gone".to_owned(),
        value: None,
        expect: ExpectedVersion::Any,
        at_ms: NOW,
    };
    store
        .put_entry(&chat.owner, &KeyScope::Owner, gone)
        .await
        .unwrap();
    for n in 0..300 {
        let value = vec![b'v'; n % 7];
        put_value(
            store,
            &chat.owner,
            resource_scope("r"),
            &format!("key {n:03}"),
            &value,
        )
        .await;
    }
    put_value(
        store,
        &chat.owner,
        resource_scope("\u{e4}/\"r\""),
        "k",
        b"\n",
    )
    .await;
    let own = KeyScope::Conversation(chat.id.clone());
    put_value(store, &chat.owner, own, "draft", b"stays with it").await;
    let bob = Owner::new("bob").unwrap();
    put_value(store, &bob, resource_scope("r"), "secret", b"of bob").await;
    chat
}

pub(super) async fn values_come_back_after_they_were_erased(store: Tested) {
    let chat = fill_values(store).await;
    let (store, owner) = (&*chat.store, &chat.owner);
    let all = export_text(store, owner, None).await;
    let of_r = export_text(store, owner, Some("r")).await;
    assert_eq!((all.lines().count(), of_r.lines().count()), (305, 302));
    assert!(!all.contains("bob") && !all.contains("stays with it") && !all.contains("gone"));
    assert!(!of_r.contains("Ada"));
    let before = stored_values(store, owner).await;

    // Import into another store.
    let other = MemoryStore::default();
    let imported = import_text(&other, owner, &all).await.unwrap();
    assert_eq!((imported.values, imported.new), (303, 303));
    let without_chats: Vec<_> = before
        .iter()
        .filter(|(scope, ..)| !matches!(scope, KeyScope::Conversation(_)))
        .cloned()
        .collect();
    assert_eq!(stored_values(&other, owner).await, without_chats);
    assert_eq!(export_text(&other, owner, None).await, all);

    // A resource is erased and imported again, in the same store.
    let scope = EraseScope::Resource("r".to_owned());
    let erased = erase_all(store, owner, &scope).await.unwrap();
    assert_eq!(erased.entries, 300);
    assert_eq!(export_text(store, owner, Some("r")).await, "");
    import_text(store, owner, &of_r).await.unwrap();
    assert_eq!(stored_values(store, owner).await, before);

    // An equal value that exists is not written again.
    let again = import_text(store, owner, &all).await.unwrap();
    assert_eq!((again.values, again.new), (303, 0));

    // The whole owner is erased, and nobody else.
    erase_all(store, owner, &EraseScope::Owner).await.unwrap();
    assert_eq!(export_text(store, owner, None).await, "");
    let bob = Owner::new("bob").unwrap();
    assert_eq!(stored_values(store, &bob).await.len(), 1);
    import_text(store, owner, &all).await.unwrap();
    assert_eq!(stored_values(store, owner).await, without_chats);
}

pub(super) async fn a_changed_text_of_values_leaves_nothing(store: Tested) {
    let owner = Owner::new("ada").unwrap();
    let from = MemoryStore::default();
    put_value(&from, &owner, KeyScope::Owner, "one", b"first").await;
    put_value(&from, &owner, resource_scope("r"), "two", b"second").await;
    let text = export_text(&from, &owner, None).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    put_value(&*store, &owner, KeyScope::Owner, "mine", b"stays").await;
    let mine = stored_values(&*store, &owner).await;
    for at in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(at);
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        let half = &lines[at][..lines[at].len() / 2];
        let cut = [&lines[..at], &[half]].concat();
        let changed = text.replacen(["ada", "first", "second", "\"lines\":3"][at], "x", 1);
        for bad in [
            without.join("\n"),
            twice.join("\n"),
            cut.join("\n"),
            changed,
        ] {
            let error = import_text(&*store, &owner, &bad).await.unwrap_err();
            assert!((1..=5).contains(&error.line), "{error:?}");
            assert_eq!(stored_values(&*store, &owner).await, mine, "{bad}");
        }
    }
    // An import cannot decide which of two values is right.
    put_value(&*store, &owner, resource_scope("r"), "two", b"another").await;
    let there = stored_values(&*store, &owner).await;
    let error = import_text(&*store, &owner, &text).await.unwrap_err();
    assert_eq!(error.line, 3);
    assert!(
        error.source.to_string().contains("\"two\""),
        "{}",
        error.source
    );
    assert_eq!(stored_values(&*store, &owner).await, there);
    // An export of values is not one of a conversation, and the other way round.
    let mut conversation = contexture_store::Import::new(&*store, &owner);
    assert_eq!(
        conversation.import_line(lines[0]).await.unwrap_err().line,
        1
    );
}
