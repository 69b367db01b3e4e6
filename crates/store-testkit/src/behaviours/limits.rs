//! Limits: a value at the limit is allowed, one more is an error that names the limit.

use std::sync::Arc;

use contexture_ir::{ConversationId, Raw};
use contexture_store::ExpectedVersion;
use contexture_store::{
    AppendRequest, ConversationUpdate, Error, KeyScope, Metadata, MetadataChange, NewConversation,
    PutEntry, StateChange, StateKey, StatePatch, Store, TitleChange,
};

use crate::chat::{Chat, NOW, item, raw_item};

type Tested = Arc<dyn Store>;

pub(super) fn expect_limit<T: std::fmt::Debug>(result: Result<T, Error>, name: &str) {
    match result.unwrap_err() {
        Error::Limit { limit, max, actual } => {
            assert_eq!(limit, name);
            assert!(actual > max, "{name}: {actual} of {max}");
        }
        other => panic!("{name}: {other}"),
    }
}

fn with_patch(word: &str, patch: StatePatch) -> AppendRequest {
    AppendRequest {
        patch,
        ..AppendRequest::new(Chat::at_tip("main"), vec![item(word)], NOW)
    }
}

fn numbered_key(n: usize) -> StateKey {
    StateKey::new(format!("k{n}")).unwrap()
}

pub(super) async fn every_limit_has_a_name(store: Tested) {
    let chat = Chat::start(store).await;
    let limits = chat.store.limits().clone();
    expect_item_limits(&chat).await;
    expect_state_limits(&chat).await;
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(record.nodes, 3 + limits.append_items as u64);
    expect_record_limits(&chat).await;
    let blob = vec![0; limits.blob_bytes + 1].into();
    expect_limit(
        chat.store.put_blob(&chat.owner, &chat.id, blob).await,
        "blob_bytes",
    );
    expect_entry_limits(&chat).await;
}

/// Limits of a conversation's title and metadata.
async fn expect_record_limits(chat: &Chat) {
    let limits = chat.store.limits().clone();
    let text = "x".repeat(limits.title_bytes + 1);
    let title = |text: &str| ConversationUpdate {
        title: TitleChange::Set(Some(text.to_owned())),
        ..ConversationUpdate::new(NOW)
    };
    let update = async |update| {
        chat.store
            .update_conversation(&chat.owner, &chat.id, update)
            .await
    };
    update(title(&text[1..])).await.unwrap();
    expect_limit(update(title(&text)).await, "title_bytes");
    let keys =
        |count: usize| -> Metadata { (0..count).map(|n| (n.to_string(), Raw::null())).collect() };
    let metadata = |metadata| ConversationUpdate {
        metadata: MetadataChange::Replace(metadata),
        ..ConversationUpdate::new(NOW)
    };
    update(metadata(keys(limits.metadata_keys))).await.unwrap();
    expect_limit(
        update(metadata(keys(limits.metadata_keys + 1))).await,
        "metadata_keys",
    );
    let long = Metadata::from([(
        "k".to_owned(),
        Raw::string(&"x".repeat(limits.metadata_bytes)),
    )]);
    expect_limit(update(metadata(long.clone())).await, "metadata_bytes");
    let new = NewConversation {
        metadata: long,
        ..NewConversation::new(ConversationId::new("new").unwrap(), NOW)
    };
    let made = chat.store.create_conversation(&chat.owner, new).await;
    expect_limit(made, "metadata_bytes");
}

/// Limits of values outside the tree.
async fn expect_entry_limits(chat: &Chat) {
    let limits = chat.store.limits().clone();
    let entry = PutEntry {
        key: "k".to_owned(),
        value: Some(vec![0; limits.entry_bytes + 1].into()),
        expect: ExpectedVersion::Any,
        at_ms: NOW,
    };
    let put = chat
        .store
        .put_entry(&chat.owner, &KeyScope::Owner, entry)
        .await;
    expect_limit(put, "entry_bytes");
    for bad in [String::new(), "k".repeat(256)] {
        let entry = PutEntry {
            key: bad,
            value: None,
            expect: ExpectedVersion::Any,
            at_ms: NOW,
        };
        let put = chat
            .store
            .put_entry(&chat.owner, &KeyScope::Owner, entry)
            .await;
        assert!(matches!(
            put.unwrap_err(),
            Error::Invalid { what: "key", .. }
        ));
    }
}

/// Limits of the items of an append.
async fn expect_item_limits(chat: &Chat) {
    let limits = chat.store.limits().clone();
    let text = "x".repeat(limits.item_bytes + 1);
    chat.append_to_tip("main", vec![raw_item("just", &text[1..])])
        .await
        .unwrap();
    expect_limit(
        chat.append_to_tip("main", vec![raw_item("over", &text)])
            .await,
        "item_bytes",
    );
    let many = |count: usize| (0..count).map(|n| item(&n.to_string())).collect::<Vec<_>>();
    expect_limit(
        chat.append_to_tip("main", many(limits.append_items + 1))
            .await,
        "append_items",
    );
    chat.append_to_tip("main", many(limits.append_items))
        .await
        .unwrap();
    let heavy = (0..=limits.append_bytes / limits.item_bytes)
        .map(|n| raw_item(&format!("heavy {n}"), &text[1..]))
        .collect();
    expect_limit(chat.append_to_tip("main", heavy).await, "append_bytes");
}

/// Limits of the state that an append may change.
async fn expect_state_limits(chat: &Chat) {
    let limits = chat.store.limits().clone();
    let value = vec![0_u8; limits.state_value_bytes + 1];
    let over = StatePatch::put_entry(numbered_key(0), 1, value.clone());
    expect_limit(
        chat.append_request(with_patch("x", over)).await,
        "state_value_bytes",
    );
    let just = StatePatch::put_entry(numbered_key(0), 1, &value[1..]);
    chat.append_request(with_patch("x", just)).await.unwrap();
    let changes = |count: usize| StatePatch {
        changes: (0..count)
            .map(|n| StateChange::put_entry(numbered_key(n), 1, *b"v"))
            .collect(),
        from: 0,
    };
    let over = changes(limits.state_keys + 1);
    expect_limit(
        chat.append_request(with_patch("y", over)).await,
        "state_keys",
    );
    chat.append_request(with_patch("y", changes(limits.state_keys)))
        .await
        .unwrap();
    let one_more = StatePatch::put_entry(StateKey::new("more").unwrap(), 1, *b"v");
    expect_limit(
        chat.append_request(with_patch("z", one_more)).await,
        "state_keys",
    );
}
