//! The calls of one branch: those whose answers are on its path.

use std::collections::BTreeSet;

use contexture::ir::{CallId, ResponseId};
use contexture::store::{CallFilter, CallRecord, Calls, ListCalls, PathEnd};
use contexture::{Conversation, EngineError};

/// Calls that are read from the record at a time.
const BLOCK: usize = 500;

/// A page of the calls of a branch.
#[derive(Clone, Debug, Default)]
pub struct BranchCalls {
    /// Calls of the page, newest first.
    pub calls: Vec<CallRecord>,
    /// The last of them, behind which the next page begins; `None` on the last page.
    pub next: Option<CallId>,
    /// Number of calls on all pages.
    pub total: u64,
}

/// Lists the calls whose answers are on the path of the handle's branch, newest first, at most `limit` behind `after`. A call that
/// got no answer is on no branch.
///
/// Takes the whole path and all calls of the conversation, since the record does not know branches.
///
/// # Errors
/// The store's.
pub async fn list_branch_calls(
    chat: &Conversation,
    record: &dyn Calls,
    filter: CallFilter,
    after: Option<CallId>,
    limit: usize,
) -> Result<BranchCalls, EngineError> {
    let answers = chat.response_ids(PathEnd::Branch(chat.branch())).await?;
    let answers: BTreeSet<ResponseId> = answers.into_iter().collect();
    let is_here = |call: &CallRecord| call.response.is_some_and(|one| answers.contains(&one));
    let filter = CallFilter {
        conversation: Some(chat.id().clone()),
        ..filter
    };
    let mut found = BranchCalls::default();
    let mut block_after = None;
    loop {
        let list = ListCalls {
            filter: filter.clone(),
            after: block_after,
            limit: Some(BLOCK),
            ..ListCalls::default()
        };
        let block = record.list_calls(chat.owner(), list).await?;
        for call in block.calls.into_iter().filter(is_here) {
            found.total += 1;
            // Ids begin with their time, so the newer ones of a list are the greater ones.
            if after.is_some_and(|after| call.id >= after) {
                continue;
            }
            if found.calls.len() < limit {
                found.calls.push(call);
            } else {
                found.next = found.calls.last().map(|last| last.id);
            }
        }
        block_after = block.next;
        if block_after.is_none() {
            return Ok(found);
        }
    }
}
