//! Moving about in the tree: rewind, aside, switch, checkpoint, restore, clear.
//!
//! Every one of them makes or moves a name. Nothing is deleted, and layer state comes back with the
//! node a name points to.

mod items;
mod output_copies;
mod pins;
mod state;

pub use items::RunStep;
pub(crate) use items::{new_item, split_by_limits};
pub(crate) use output_copies::{append_with_copies, reconcile_copies};
pub(crate) use pins::{load_pins, pin_node, unpin_node};
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
