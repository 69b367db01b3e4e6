//! Values beside the tree: what must be read or written where no run appends, such as the entry of a run that nobody drives.
//!
//! They are in the scope of the conversation. Not here: their keys (`state_keys`), and what they say.

use std::sync::Arc;

use contexture_engine::{Conversation, EngineError};
use contexture_store::{ExpectedVersion, KeyScope, PutEntry};

/// The scope of the values of a conversation.
pub(crate) fn conversation_scope(chat: &Conversation) -> KeyScope {
    KeyScope::Conversation(chat.id().clone())
}

/// Loads the value of a key; `None` if it has none.
///
/// # Errors
/// The store's.
pub(crate) async fn load_value(
    chat: &Conversation,
    key: &str,
) -> Result<Option<Arc<[u8]>>, EngineError> {
    let (store, scope) = (chat.engine().store(), conversation_scope(chat));
    let entry = store.get_entry(chat.owner(), &scope, key);
    Ok(entry.await?.map(|entry| entry.value))
}

/// Stores the value of a key, or removes it.
///
/// # Errors
/// The store's; a version conflict if the key is not as `expect` says.
pub(crate) async fn put_value(
    chat: &Conversation,
    key: String,
    value: Option<Vec<u8>>,
    expect: ExpectedVersion,
) -> Result<(), EngineError> {
    let put = PutEntry {
        key,
        value: value.map(Into::into),
        expect,
        at_ms: chat.engine().now_ms(),
    };
    let store = chat.engine().store();
    store
        .put_entry(chat.owner(), &conversation_scope(chat), put)
        .await?;
    Ok(())
}
