//! Queries: what any store answers in several calls, written once for all backends.
//!
//! Everything here uses only the [`Store`] trait, holds no state between calls and may be dropped
//! at any point. Concurrent writes may or may not be part of an answer; each function documents
//! what it guarantees.
//!
//! * `divergence` finds the last node that two paths share.
//! * `branch_diff` compares two paths from there.
//! * `graph` loads the whole tree, each node once.
//! * `list_all` lists every conversation of an owner while others write, and every value outside the tree.
//! * `path_pages` reads a part of a path in as many pages as it takes.
//! * `redaction_closure` finds what repeats the content of the nodes to be redacted.
//! * `retention` finds the conversations that a retention rule gives up.
//! * `calls` does the maintenance of the record of calls, and checks it.
//! * [`erase_all`] repeats a bounded erasure until nothing is left.

use contexture_ir::Owner;

use crate::contract::{EraseScope, Erased, Error, Store};

mod branch_diff;
mod calls;
mod divergence;
mod graph;
mod list_all;
mod path_pages;
mod redaction_closure;
mod retention;

pub use branch_diff::{BranchDiff, diff_branches};
pub use calls::{CallRetention, CallsFinding, VerifiedCalls, sweep_calls, verify_calls};
pub use divergence::{Divergence, find_divergence};
pub use graph::{Graph, GraphNode, load_graph};
pub use list_all::{list_all, list_all_entries};
pub use path_pages::{PathPages, find_last_response, read_all_pages};
pub use redaction_closure::compute_redaction_closure;
pub use retention::{
    ExpiredConversation, ExpiryReason, RetentionPlan, RetentionRule, delete_expired, plan_retention,
};

/// Calls [`Store::erase_step`] until nothing is left; returns the totals. May be dropped and called
/// again, since each step commits on its own.
pub async fn erase_all(
    store: &dyn Store,
    owner: &Owner,
    scope: &EraseScope,
) -> Result<Erased, Error> {
    let mut total = Erased::default();
    loop {
        // Each step commits on its own, so an interrupted erasure can simply be started again.
        let step = store.erase_step(owner, scope).await?;
        total.conversations += step.conversations;
        total.entries += step.entries;
        if !step.more {
            return Ok(total);
        }
    }
}
