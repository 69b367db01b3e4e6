//! Where a request goes and under which policy: its upstream by path, whether it calls a model, and the policy that holds.
//!
//! Decisions follow from the path, the headers and the configuration. The body is read only where a route names a model.

pub(super) mod mistaken_path;
pub(super) mod model_call;
pub(super) mod policy;
pub(super) mod target;
