//! What layers are told, so that it can be told again.
//!
//! Not here: telling it (`layer_again`).

use contexture_layers::{ChildEnd, LayerId, RunEnd, StoredState, ToolRequest};

/// The states of another run, as its hooks have left them.
pub(crate) type StoredStates = Vec<(LayerId, StoredState)>;

/// What layers were told.
#[derive(Clone, Debug)]
pub(crate) enum LoggedHook {
    /// That they begin in a child run; its parent's states.
    Spawn(StoredStates),
    /// What their parent's states are now.
    ParentUpdate(StoredStates),
    /// How a child ended; its states.
    Return(StoredStates, ChildEnd),
    /// That a tool is called. What they said to it stays said.
    Tool(ToolRequest),
    /// How the run ended.
    Complete(RunEnd),
}
