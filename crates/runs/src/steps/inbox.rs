//! The inbox of a branch: items that arrive while a run is busy.
//!
//! They wait as entries outside the tree and are appended between two steps, in order of arrival.

use contexture_engine::{Conversation, EngineError};
use contexture_ir::Item;
use contexture_store::{ExpectedVersion, KeyScope, ListEntries, PutEntry};

use crate::error::RunError;
use crate::execution::LiveRun;
use crate::record::{find_node, inbox_node_id, inbox_prefix};

/// Puts an item into the inbox of the conversation's branch. The run that works on the branch appends it before it asks
/// the model again; if there is none, the next run does.
///
/// # Errors
/// The store's.
pub async fn post_to_inbox(chat: &Conversation, item: &Item) -> Result<(), EngineError> {
    let now = chat.engine().now_ms();
    // Keys sort by time; the random part distinguishes two items of the same millisecond, in either order.
    let which = chat.engine().new_run_id();
    let put = PutEntry {
        key: format!("{}{now:020}-{which}", inbox_prefix(&chat.branch())),
        value: Some(item.to_json().into_bytes().into()),
        // `Absent`: if the key exists, the store refuses instead of overwriting another item.
        expect: ExpectedVersion::Absent,
        at_ms: now,
    };
    let store = chat.engine().store();
    store
        .put_entry(chat.owner(), &conversation_scope(chat), put)
        .await?;
    Ok(())
}

/// Appends the items that have arrived, after layers were asked about them. Returns whether anything was appended.
pub(crate) async fn drain_inbox(run: &mut LiveRun) -> Result<bool, RunError> {
    let store = run.chat.engine().store().clone();
    let (owner, scope) = (run.chat.owner().clone(), conversation_scope(&run.chat));
    let list = ListEntries::in_scope(scope.clone(), inbox_prefix(&run.chat.branch()));
    let page = store
        .list_entries(&owner, list)
        .await
        .map_err(EngineError::from)?;
    let mut any = false;
    for (_, entry) in page.entries {
        let text = String::from_utf8_lossy(&entry.value);
        let id = inbox_node_id(&entry.key);
        let item =
            Item::parse(&text).map_err(|source| EngineError::StoredItem { node: id, source })?;
        // An earlier process may have died between the append and the removal of the entry below. The node's id derives
        // from the key, so the item is recognised and not appended twice.
        let chat = &run.chat;
        let known = find_node(chat.engine(), &owner, chat.id(), id).await?;
        if known.is_none() {
            let place = |run: &LiveRun, items| run.batch_of_items(id, items);
            any |= !run
                .append_items(vec![item], Vec::new(), place)
                .await?
                .is_empty();
        }
        let put = PutEntry {
            key: entry.key,
            value: None,
            // Removed whatever its version: the item is on the branch now, and another process may have removed it too.
            expect: ExpectedVersion::Any,
            at_ms: run.chat.engine().now_ms(),
        };
        let gone = store.put_entry(&owner, &scope, put);
        gone.await.map_err(EngineError::from)?;
    }
    Ok(any)
}

/// The scope of the inbox: entries of the conversation.
fn conversation_scope(chat: &Conversation) -> KeyScope {
    KeyScope::Conversation(chat.id().clone())
}
