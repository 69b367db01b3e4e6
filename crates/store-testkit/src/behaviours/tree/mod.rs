//! Behaviours of the tree: nodes, branches, checkpoints and state.
//!
//! * `appending`: where an append goes, and what happens if the head has moved.
//! * `replaying`: a repeated append is recognised, and distinguished from a conflict.
//! * `fences`: a writer that was superseded is refused.
//! * `branching`: names, forks, rewinds, checkpoints.
//! * `reading`: pages of a path, nodes by id, prefix, message and kind, comparison of two paths.
//! * `bytes`: items come back byte for byte.
//! * `states`: layer state per node.
//! * `responses`: the records of responses, with their inputs.
//! * `redacting`: tombstones.
//!
//! What is not here: many writers at once (`concurrency`), owners (`owners`), text search
//! (`searching`).

pub(super) mod appending;
pub(super) mod branching;
pub(super) mod bytes;
pub(super) mod fences;
pub(super) mod reading;
pub(super) mod redacting;
pub(super) mod replaying;
pub(super) mod responses;
pub(super) mod states;
