//! The history as it is shown: covered, cleared, previewed, repaired, cut into rounds, weighed, trimmed.
//!
//! The order is fixed: `view_policy` builds the view (host passes, `covers`, `clear`, `preview`, host passes), `prepared`
//! repairs and lowers it into `rounds`, `trim` says with which round it begins. All of it follows from the path and the plan,
//! so a call that only adds items sends what was sent before unchanged.
//!
//! Not here: whether a larger part of it is cleared or previewed from now on (`rewrite`).

pub(crate) mod clear;
pub(crate) mod covers;
pub(crate) mod host_pass;
pub(crate) mod prepared;
pub(crate) mod preview;
pub(crate) mod rounds;
pub(crate) mod trim;
pub(crate) mod view_policy;
