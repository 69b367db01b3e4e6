//! The cost check: whether a rewritten request is worth sending.
//!
//! Not here: what a request costs and what a conversation has saved (`state::cost_accounts`), what is changed (`plan`).

use contexture::CompiledCall;
use contexture::compile::{CacheUsage, OmitReason, Outline, Report, RequestPart};

use crate::state::cost_accounts::{
    CostAccount, CostAccounts, PriceTerms, RewriteDebt, RewriteOffer,
};

/// What candidates for a request are compared by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostCheck<'a> {
    pub(crate) accounts: &'a CostAccounts,
    pub(crate) account: &'a CostAccount,
    pub(crate) terms: &'a PriceTerms,
    /// What the client sent.
    pub(crate) original: &'a Outline,
    pub(crate) at_ms: u64,
    /// Whether a change is made whatever it costs: by policy, or because the client's request does not fit.
    pub(crate) ignores_cost: bool,
    /// Whether cache markers of ours are set.
    pub(crate) sets_marks: bool,
    /// Whether the model binds its thinking to what it was sent, and that was a rewritten request: behind the client's own
    /// the thinking that it holds would be refused.
    pub(crate) is_bound: bool,
}

impl CostCheck<'_> {
    /// Predicts what of a request is read from the cache.
    pub(crate) fn predict_usage(&self, outline: &Outline) -> CacheUsage {
        self.accounts
            .predict_usage(self.account, self.terms, outline, self.at_ms)
    }

    /// Whether a request costs more now than the client's own. Never, where cost is ignored.
    pub(crate) fn costs_more(&self, outline: &Outline) -> bool {
        !self.ignores_cost
            && self.accounts.costs_more(
                self.account,
                self.terms,
                outline,
                self.original,
                self.at_ms,
            )
    }

    /// Whether a call, of this outline, differs from the client's request and should be sent in its place.
    pub(crate) fn should_replace_original(&self, then: &Outline, call: &CompiledCall) -> bool {
        self.differs(self.original, then, call)
            && (self.is_bound || self.is_worthwhile(self.original, then, call))
    }

    /// Whether `then`, the outline of a call, differs from `now` and should be sent in its place.
    pub(crate) fn should_replace(
        &self,
        now: &Outline,
        then: &Outline,
        call: &CompiledCall,
    ) -> bool {
        self.differs(now, then, call) && self.is_worthwhile(now, then, call)
    }

    fn differs(&self, now: &Outline, then: &Outline, call: &CompiledCall) -> bool {
        let is_whole = is_history_complete(&call.report);
        !is_same_request(now, then, is_whole, self.sets_marks)
    }

    /// Whether a call costs little enough to be sent in the place of `now`.
    fn is_worthwhile(&self, now: &Outline, then: &Outline, call: &CompiledCall) -> bool {
        let offer = RewriteOffer {
            original: self.original,
            current: now,
            proposed: then,
            // A marker on a complete history costs the write surcharge now and saves with the next call.
            debt: match self.sets_marks && is_history_complete(&call.report) {
                true => RewriteDebt::OneWrite,
                false => RewriteDebt::None,
            },
        };
        self.ignores_cost
            || self
                .accounts
                .is_worthwhile(self.account, self.terms, &offer, self.at_ms)
    }
}

/// Whether all of the history is in the request, unchanged.
fn is_history_complete(report: &Report) -> bool {
    let gone = |why| {
        matches!(
            why,
            OmitReason::Trimmed
                | OmitReason::Covered
                | OmitReason::Cleared
                | OmitReason::BoundThinking
        )
    };
    report.rewritten.is_empty() && !report.omitted.iter().any(|one| gone(one.reason))
}

/// Whether a provider would see the same request.
fn is_same_request(now: &Outline, then: &Outline, is_whole: bool, sets_marks: bool) -> bool {
    let mut pairs = now.segments.iter().zip(&then.segments);
    now.segments.len() == then.segments.len()
        && pairs.all(|(now, then)| {
            // A complete history means the same however it is written; markers count only where the policy sets them.
            let is_unchanged = is_whole && now.part == RequestPart::Messages;
            (is_unchanged || now.hash == then.hash) && (!sets_marks || now.markers == then.markers)
        })
}
