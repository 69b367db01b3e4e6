//! Reading the ledger back: the calls of a conversation, and the days of an owner.

use contexture::ir::ConversationId;
use contexture::store::{EntryCursor, Error as StoreError, KeyScope, KeyValueEntry, ListEntries};
use contexture::{Engine, Owner};
use contexture_api::{LedgerDayDocument, LedgerDocument, LedgerSumDocument};

use crate::proxy::ledger::{DAY_PREFIX, ENTRY_PREFIX, SUM_KEY};

fn parse_or_default<T: serde::de::DeserializeOwned + Default>(entry: &KeyValueEntry) -> T {
    // A damaged sum must not hide the readable ones.
    serde_json::from_slice(&entry.value).unwrap_or_default()
}

/// Loads at most `limit` calls of a conversation behind the entry of this key, and the key of the last one if there are more.
///
/// # Errors
/// The store's.
pub(crate) async fn load_conversation_ledger(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    limit: usize,
    after: Option<String>,
) -> Result<(LedgerDocument, Option<String>), StoreError> {
    let scope = KeyScope::Conversation(conversation.clone());
    let store = engine.store();
    let sum = store.get_entry(owner, &scope, SUM_KEY).await?;
    let list = ListEntries {
        limit: Some(limit),
        after: after.map(|key| EntryCursor {
            scope: scope.clone(),
            key,
        }),
        ..ListEntries::in_scope(scope, ENTRY_PREFIX)
    };
    let page = store.list_entries(owner, list).await?;
    let entries = page.entries.iter();
    let document = LedgerDocument {
        conversation: Some(conversation.to_string()),
        total: sum.as_ref().map(parse_or_default).unwrap_or_default(),
        entries: entries
            .filter_map(|(_, entry)| serde_json::from_slice(&entry.value).ok())
            .collect(),
        ..LedgerDocument::default()
    };
    Ok((document, page.next.map(|next| next.key)))
}

/// Loads the days of an owner, with their total.
///
/// # Errors
/// The store's.
pub(crate) async fn load_owner_ledger(
    engine: &Engine,
    owner: &Owner,
) -> Result<LedgerDocument, StoreError> {
    let mut document = LedgerDocument::default();
    // All of them at once: there is one entry a day, and the total needs every day.
    let mut list = ListEntries::in_scope(KeyScope::Owner, DAY_PREFIX);
    loop {
        let page = engine.store().list_entries(owner, list.clone()).await?;
        for (_, entry) in &page.entries {
            let sum: LedgerSumDocument = parse_or_default(entry);
            let day = entry
                .key
                .strip_prefix(DAY_PREFIX)
                .unwrap_or_default()
                .to_owned();
            document.total = document.total.combined_with(&sum);
            document.days.push(LedgerDayDocument { day, sum });
        }
        match page.next {
            Some(next) => list.after = Some(next),
            None => return Ok(document),
        }
    }
}
