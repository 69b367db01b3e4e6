//! Whether a change of a request pays.
//!
//! Not here: what a request costs and what a conversation has saved (`accounts`), what is changed (`rewrite`).

use contexture::CompiledCall;
use contexture::compile::{CacheUsage, OmitReason, Outline, Report, RequestPart};

use crate::state::cost_accounts::{
    CostAccount, CostAccounts, PriceTerms, RewriteDebt, RewriteOffer,
};

/// What the requests that may be sent are weighed by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostCheck<'a> {
    pub(crate) accounts: &'a CostAccounts,
    pub(crate) account: &'a CostAccount,
    pub(crate) terms: &'a PriceTerms,
    /// What the client sent.
    pub(crate) original: &'a Outline,
    pub(crate) at_ms: u64,
    /// Whether a change may cost what it will.
    pub(crate) ignores_cost: bool,
    /// Whether marks of ours are set.
    pub(crate) sets_marks: bool,
}

impl CostCheck<'_> {
    /// What of a request is expected to be read from the cache.
    pub(crate) fn predict_usage(&self, outline: &Outline) -> CacheUsage {
        self.accounts
            .predict_usage(self.account, self.terms, outline, self.at_ms)
    }

    /// Whether a request costs more now than what came. Where it may cost what it will, it does not.
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

    /// Whether `then`, the outline of a call, is another request than `now`, and may be sent in its place.
    pub(crate) fn should_replace(
        &self,
        now: &Outline,
        then: &Outline,
        call: &CompiledCall,
    ) -> bool {
        let is_whole = is_history_complete(&call.report);
        if is_same_request(now, then, is_whole, self.sets_marks) {
            return false;
        }
        let offer = RewriteOffer {
            original: self.original,
            current: now,
            proposed: then,
            debt: match is_whole && self.sets_marks {
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

/// Whether all of the history is shown as it was said.
fn is_history_complete(report: &Report) -> bool {
    let gone = |why| {
        matches!(
            why,
            OmitReason::Trimmed | OmitReason::Covered | OmitReason::Cleared
        )
    };
    report.rewritten.is_empty() && !report.omitted.iter().any(|one| gone(one.why))
}

/// Whether a provider would see the same request. A message that is shown as it was said is the same however it was
/// written, and marks count where they are the policy's business.
fn is_same_request(now: &Outline, then: &Outline, is_whole: bool, sets_marks: bool) -> bool {
    let mut pairs = now.segments.iter().zip(&then.segments);
    now.segments.len() == then.segments.len()
        && pairs.all(|(now, then)| {
            let is_said = is_whole && now.part == RequestPart::Messages;
            (is_said || now.hash == then.hash) && (!sets_marks || now.marks == then.marks)
        })
}
