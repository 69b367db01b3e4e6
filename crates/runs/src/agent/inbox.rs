//! What arrives while a run is busy: kept beside the tree, taken in between two steps, in the order of arrival.

use contexture_engine::{Conversation, EngineError};
use contexture_ir::Item;
use contexture_store::{Expected, KeyScope, ListEntries, PutEntry};

use super::keys::{inbox_node, inbox_prefix};
use super::run::Run;
use super::stored::stored;
use crate::error::RunError;

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
        key: format!("{}{now:020}-{which}", inbox_prefix(&chat.branch())),
        value: Some(item.to_json().into_bytes().into()),
        expect: Expected::Absent,
        at_ms: now,
    };
    let store = chat.engine().store();
    store.put_entry(chat.owner(), &scope(chat), put).await?;
    Ok(())
}

impl Run {
    /// Takes in what has arrived, as layers let it in, and says whether there was anything.
    pub(crate) async fn take_in(&mut self) -> Result<bool, RunError> {
        let store = self.chat.engine().store().clone();
        let (owner, scope) = (self.chat.owner().clone(), scope(&self.chat));
        let list = ListEntries::of(scope.clone(), inbox_prefix(&self.chat.branch()));
        let page = store
            .entries(&owner, list)
            .await
            .map_err(EngineError::from)?;
        let mut any = false;
        for (_, entry) in page.entries {
            let text = String::from_utf8_lossy(&entry.value);
            let id = inbox_node(&entry.key);
            let item = Item::parse(&text)
                .map_err(|source| EngineError::StoredItem { node: id, source })?;
            // Taken in before, by this run or another whose process died, it is there.
            let chat = &self.chat;
            let known = stored(chat.engine(), &owner, chat.id(), id).await?;
            if known.is_none() {
                let place = |run: &Self, items| run.items(id, items);
                any |= !self.say(vec![item], Vec::new(), place).await?.is_empty();
            }
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

fn scope(chat: &Conversation) -> KeyScope {
    KeyScope::Conversation(chat.id().clone())
}
