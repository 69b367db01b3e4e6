//! The inbox of a branch: items that arrive while a run is busy.
//!
//! They wait as entries outside the tree and are appended between two steps, in order of arrival.

use contexture_engine::{Conversation, EngineError};
use contexture_ir::Item;
use contexture_store::{ExpectedVersion, ListEntries, list_all_entries};

use crate::error::RunError;
use crate::execution::LiveRun;
use crate::record::{conversation_scope, find_node, inbox_node_id, inbox_prefix, put_value};

/// Puts an item into the inbox of the conversation's branch. The run that works on the branch appends it before it asks
/// the model again; if there is none, the next run does.
///
/// # Errors
/// The store's.
pub async fn post_to_inbox(chat: &Conversation, item: &Item) -> Result<(), EngineError> {
    let now = chat.engine().now_ms();
    // Keys sort by time; the random part distinguishes two items of the same millisecond, in either order.
    let which = chat.engine().new_run_id();
    let key = format!("{}{now:020}-{which}", inbox_prefix(&chat.branch()));
    let value = item.to_json().into_bytes();
    // `Absent`: if the key exists, the store refuses instead of overwriting another item.
    put_value(chat, key, Some(value), ExpectedVersion::Absent).await
}

/// Appends the items that have arrived, after layers were asked about them. Returns whether anything was appended.
pub(crate) async fn drain_inbox(run: &mut LiveRun) -> Result<bool, RunError> {
    let store = run.chat.engine().store().clone();
    let owner = run.chat.owner().clone();
    let prefix = inbox_prefix(&run.chat.branch());
    let list = ListEntries::in_scope(conversation_scope(&run.chat), prefix);
    let entries = list_all_entries(&*store, &owner, list).await;
    let mut any = false;
    for (_, entry) in entries.map_err(EngineError::from)? {
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
        // Removed whatever its version: the item is on the branch now, and another process may have removed it too.
        put_value(&run.chat, entry.key, None, ExpectedVersion::Any).await?;
    }
    Ok(any)
}
