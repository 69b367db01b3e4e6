//! Runs the hooks of a list of layers.
//!
//! [`Layers`] is the list, checked and sorted. [`LayerStates`] holds one state per layer at one instant: read from
//! bytes, changed by hooks, returned as bytes. The *hook runner* calls one hook of every layer, each with its own
//! timeout, and turns a failure, a panic or a timeout into a [`HookStatus`](crate::HookStatus); *recall* asks all
//! layers for their contributions to one call and combines them ([`CombinedRecall`]).
//!
//! Always holds: a hook works on a copy of its layer's state, and the copy counts only if the hook succeeds. Not here:
//! what hooks mean (`crate::contract`), and where states are stored (`contexture-engine`).

mod dyn_layer;
mod hook_runner;
mod layer_states;
mod layers;
mod recall_all;

pub use layer_states::{ChangedState, LayerStates, STATE_BYTES, StoredState};
pub use layers::Layers;
pub use recall_all::CombinedRecall;
