//! Exported conversations and values, as a stranger may have changed them.

use std::sync::Arc;

use contexture_ir::{ConversationId, Owner};
use contexture_store::{
    Activation, ExpectedVersion, Export, ExportValues, Import, ImportValues, KeyScope, MemoryStore,
    PutEntry, Store,
};
use contexture_store_testkit::Chat;
use contexture_store_testkit::chat::{NOW, item, raw_item};

use crate::input::assert_bounded;

/// Lines of an export, as they are and with a last line that fits them, since hardly any mutation of a correct export
/// has a correct checksum.
pub(crate) fn check_import(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    check_lines(text);
    check_lines(&with_end_line(text));
}

fn check_lines(text: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        check_conversation(text).await;
        check_values(text).await;
    });
}

/// What was imported is exported and imported again as the same; what was refused leaves nothing.
async fn check_conversation(text: &str) {
    let owner = Owner::local();
    let store = MemoryStore::new();
    let Some(id) = import_conversation(&store, &owner, text).await else {
        let left = store.list_conversations(&owner, Default::default()).await;
        assert!(left.unwrap().conversations.is_empty());
        return;
    };
    let written = export_conversation(&store, &owner, &id).await;
    assert_bounded("an export", text.len(), written.len());
    let other = MemoryStore::new();
    let again = import_conversation(&other, &owner, &written).await;
    assert_eq!(again.as_ref(), Some(&id), "{written}");
    assert_eq!(export_conversation(&other, &owner, &id).await, written);
}

async fn import_conversation(
    store: &MemoryStore,
    owner: &Owner,
    text: &str,
) -> Option<ConversationId> {
    let mut import = Import::new(store, owner);
    for line in text.lines() {
        import.import_line(line).await.ok()?;
    }
    Some(import.finish_import().await.ok()?.id)
}

async fn export_conversation(store: &MemoryStore, owner: &Owner, id: &ConversationId) -> String {
    let mut export = Export::new(store, owner, id).await.unwrap();
    let mut text = String::new();
    while let Some(lines) = export.next_lines().await.unwrap() {
        text.push_str(&lines);
    }
    text
}

async fn check_values(text: &str) {
    let owner = Owner::local();
    let store = MemoryStore::new();
    if import_values(&store, &owner, text).await.is_none() {
        assert_eq!(export_values(&store, &owner).await, "");
        return;
    }
    let written = export_values(&store, &owner).await;
    let other = MemoryStore::new();
    if !written.is_empty() {
        assert!(
            import_values(&other, &owner, &written).await.is_some(),
            "{written}"
        );
    }
    assert_eq!(export_values(&other, &owner).await, written);
}

async fn import_values(store: &MemoryStore, owner: &Owner, text: &str) -> Option<u64> {
    let mut import = ImportValues::new(store, owner);
    for line in text.lines() {
        import.import_line(line).await.ok()?;
    }
    Some(import.finish_import().await.ok()?.values)
}

async fn export_values(store: &MemoryStore, owner: &Owner) -> String {
    let mut export = ExportValues::new(store, owner, None);
    let mut text = String::new();
    while let Some(lines) = export.next_lines().await.unwrap() {
        text.push_str(&lines);
    }
    text
}

/// Replaces the last line by one that counts the lines before it.
fn with_end_line(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    // Whatever it says, it would not fit.
    lines.pop();
    let count = |kind: &str| {
        let begins = format!("{{\"{kind}\":");
        lines
            .iter()
            .filter(|line| line.starts_with(&begins))
            .count()
    };
    let body: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
    let end = serde_json::json!({ "end": {
        "lines": lines.len(),
        "branches": count("branch"),
        "checkpoints": count("checkpoint"),
        "blobs": count("blob"),
        "nodes": count("node"),
        "responses": count("response"),
        "entries": count("entry"),
        "blake3": blake3::hash(body.as_bytes()).to_hex().to_string(),
    } });
    format!("{body}{end}\n")
}

/// Exports of two conversations and of an owner's values.
pub(crate) fn exports() -> Vec<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Arc::new(MemoryStore::new());
        let owner = Owner::local();
        let small = Chat::start_as(store.clone(), owner.as_str(), "small").await;
        small.append_messages("main", &["a", "b"]).await;
        let large = Chat::start_as(store.clone(), owner.as_str(), "large").await;
        large.append_messages("main", &["a", "b", "c"]).await;
        large.rewind("main", "b", Activation::Activate).await;
        let odd = vec![
            raw_item("none", "no JSON at all \u{0} \u{2028}"),
            raw_item("exact", r#"{"a":1,"a":2,"n":1e400,"s":"\ud800"}"#),
            item("d"),
        ];
        large.append_to_tip("main", odd).await.unwrap();
        for (scope, key, value) in [
            (KeyScope::Owner, "note", &b"milk"[..]),
            (KeyScope::Resource("r".to_owned()), "bytes", b"\xff\x00"),
            (KeyScope::Conversation(large.id.clone()), "k", b"{}"),
        ] {
            put_value(&*store, &owner, scope, key, value).await;
        }
        let mut texts = vec![export_values(&store, &owner).await];
        for chat in [&small, &large] {
            texts.push(export_conversation(&store, &owner, &chat.id).await);
        }
        texts.into_iter().map(String::into_bytes).collect()
    })
}

async fn put_value(store: &dyn Store, owner: &Owner, scope: KeyScope, key: &str, value: &[u8]) {
    let entry = PutEntry {
        key: key.to_owned(),
        value: Some(Arc::from(value)),
        expect: ExpectedVersion::Any,
        at_ms: NOW,
    };
    store.put_entry(owner, &scope, entry).await.unwrap();
}
