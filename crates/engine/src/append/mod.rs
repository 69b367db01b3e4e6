//! The one way into the store: nodes are appended here and nowhere else.
//!
//! An *append* is one transaction of the store: new items as nodes, changes of state that hang off them, entries
//! outside the tree, and at most one record of an answer. All of it is stored or nothing.
//!
//! * `items`: an item as it is stored (secrets redacted, meaning hashed), and batches that fit the store's limits;
//! * `state`: changes of a conversation's state, carried by an item or by a node of their own;
//! * `pins`: pinned nodes, which are such a state;
//! * `rules`: dropped rules, which are another;
//! * `output_copies`: copies of long tool outputs outside the database.
//!
//! [`append`] is the only caller of `Store::append_items`. [`append_with_copies`] is what conversations use: it also
//! counts the items and copies long outputs. Imports and changes of state call `append` itself, because an imported
//! output is copied on demand only and a state node has no output.
//!
//! Not here: layers that observe an append (`hooks`), which messages are new (`draft`).

mod items;
mod output_copies;
mod pins;
mod rules;
mod state;

pub use items::RunStep;
pub(crate) use items::{new_item, split_by_limits};
pub(crate) use output_copies::{append_with_copies, reconcile_copies};
pub(crate) use pins::{load_pins, pin_node, unpin_node};
pub(crate) use rules::{drop_rule, list_rules, restore_rule};
pub use state::state_node;
pub(crate) use state::{append_state, append_states, is_state_node};

use contexture_ir::{ConversationId, Owner};
use contexture_store::{AppendRequest, Appended, Store};

use crate::error::EngineError;

/// Appends to the store. Every node that the engine stores passes through here.
pub(crate) async fn append(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    request: AppendRequest,
) -> Result<Appended, EngineError> {
    Ok(store.append_items(owner, id, request).await?)
}
