//! Hooks of layers around an append: reading states, running hooks, storing what they changed.
//!
//! A *layer session* holds the states of a conversation's layers at one head: as they were read, and as hooks left them.
//! Nothing is stored while hooks run. What they changed goes out with the append they were about, by compare-and-set, so
//! no concurrent change is lost: the loser reads the states again and repeats its hooks.
//!
//! A conversation without layers pays nothing: its appends open no session.
//! A run keeps one session for all of its steps. Programs and single appends open one, use it and drop it.
//! * `open_session`: states read from the path, the resource or the owner;
//! * `session`: hooks whose answers count;
//! * `replay`: hooks without an answer, logged so that they can be repeated;
//! * `append_step`: an append with its hooks in the same transaction;
//! * `shared_state`: states outside the tree;
//! * `layer_handle`: typed access for programs;
//! * `host`: what layers may ask of the engine.
//!
//! A layer that fails is reported in the outcomes and the append goes on, unless the layer is one that must not fail.
//!
//! Not here: what a layer does with a hook (`contexture-layers`), contributions to a call (`call`).

mod append_step;
mod host;
mod layer_handle;
mod open_session;
mod replay;
mod session;
mod shared_state;

pub use append_step::StepAppend;
pub(crate) use append_step::{
    append_items, append_step, append_with_hooks, append_with_retries, open_session_for_append,
};
pub use layer_handle::LayerHandle;
pub(crate) use layer_handle::{call_layer_function, layer_handle};
pub use open_session::RunScope;
pub(crate) use open_session::{
    STALE_STATE_TRIES, SessionPosition, load_session, open_child_session, open_session,
    open_session_at, track_side_usage,
};
pub(crate) use replay::refresh_session;
pub use session::{LayerSession, run_prefix};
