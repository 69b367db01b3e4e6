//! What arrives while a run is busy: kept beside the tree, taken in between two steps, in the order of arrival.

use contexture_engine::{Conversation, EngineError};
use contexture_ir::{Item, NodeId};
use contexture_store::{Expected, KeyScope, ListEntries, PutEntry};

use super::keys::node_id;
use super::run::Run;
use crate::error::RunError;

/// What its keys begin with; the branch follows.
const INBOX: &str = "inbox/";

/// Puts something into the inbox of the conversation's branch. The run that works on it takes it in before it asks the
/// model again; where none does, the next one.
///
/// # Errors
/// The store's.
pub async fn post(chat: &Conversation, item: &Item) -> Result<(), EngineError> {
    let now = chat.engine().now_ms();
    // Ordered by time, then by chance.
    let which = chat.engine().fresh_run();
    let put = PutEntry {
        key: format!("{}{now:020}-{which}", prefix(chat)),
        value: Some(item.to_json().into_bytes().into()),
        expect: Expected::Absent,
        at_ms: now,
    };
    let store = chat.engine().store();
    store.put_entry(chat.owner(), &scope(chat), put).await?;
    Ok(())
}

impl Run {
    /// Takes in what has arrived, and says whether there was anything.
    pub(crate) async fn take_in(&mut self) -> Result<bool, RunError> {
        let store = self.chat.engine().store().clone();
        let (owner, scope) = (self.chat.owner().clone(), scope(&self.chat));
        let list = ListEntries::of(scope.clone(), prefix(&self.chat));
        let page = store
            .entries(&owner, list)
            .await
            .map_err(EngineError::from)?;
        let any = !page.entries.is_empty();
        for (_, entry) in page.entries {
            let text = String::from_utf8_lossy(&entry.value);
            let id: NodeId = node_id(self.id, "inbox", entry.key.as_bytes());
            let item = Item::parse(&text)
                .map_err(|source| EngineError::StoredItem { node: id, source })?;
            let new = self.chat.new_item(id, &item, Some(self.run_step()));
            self.append(vec![(new, item)], Vec::new()).await?;
            // Taken in twice it would be the same node.
            let put = PutEntry {
                key: entry.key,
                value: None,
                expect: Expected::Any,
                at_ms: self.chat.engine().now_ms(),
            };
            let gone = store.put_entry(&owner, &scope, put);
            gone.await.map_err(EngineError::from)?;
        }
        Ok(any)
    }
}

fn prefix(chat: &Conversation) -> String {
    format!("{INBOX}{}/", chat.branch())
}

fn scope(chat: &Conversation) -> KeyScope {
    KeyScope::Conversation(chat.id().clone())
}
