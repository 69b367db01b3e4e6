//! Behaviours of the tree: nodes, branches and checkpoints, and what hangs off nodes.
//!
//! * `appending`: where an append lands, and what becomes of one whose place has moved.
//! * `replaying`: a repeated append is recognised, and told from a conflict.
//! * `fences`: a writer that was superseded is refused.
//! * `branching`: names, forks, rewinds, checkpoints.
//! * `reading`: pages of a path, nodes by id, prefix, message and kind, comparison of two paths.
//! * `bytes`: items come back byte for byte.
//! * `states`: layer state per node.
//! * `responses`: what an answer was computed from.
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
