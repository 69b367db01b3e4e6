//! TODO.

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
