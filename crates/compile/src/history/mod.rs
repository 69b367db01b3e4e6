//! The history as it is shown: covered, cleared, previewed, repaired, cut into rounds, weighed, trimmed.
//!
//! The order is fixed: `view_policy` builds the view (host passes, `covers`, `clear`, `preview`, host passes), `prepared`
//! repairs and lowers it into `rounds`, `trim` says with which round it begins. All of it follows from the path and the plan,
//! so a call that only adds items sends what was sent before unchanged.
//!
//! Not here: whether a larger part of it is cleared or previewed from now on (`rewrite`).

mod clear;
mod covers;
mod host_pass;
mod prepared;
mod preview;
mod rounds;
mod trim;
mod view_policy;

pub(crate) use clear::{HistorySize, advance_frontier};
pub use covers::{ActiveCovers, COVERS};
pub(crate) use prepared::{ActiveCompaction, PreparedHistory};
pub(crate) use preview::output_previews;
pub(crate) use rounds::{History, RequiredMessage};
pub(crate) use trim::TrimPoint;
pub(crate) use view_policy::ViewPolicy;
