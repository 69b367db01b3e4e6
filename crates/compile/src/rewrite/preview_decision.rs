//! Whether long outputs are previewed from now on: because the history does not fit and they free room, or because it pays.
//!
//! The model reads the rest with a tool. Where the host offers it only once it is needed, its appearance writes the
//! whole cache anew, and every call carries it; then all the old outputs change for nothing in the same step. So it
//! is decided once, for all outputs of the path, and the plan keeps it.
//!
//! Not here: what a preview shows ([`contexture_condense`]).

use std::ops::Range;

use contexture_condense::{PreviewPolicy, Previewer, Previewing};
use contexture_prompt_cache::RewriteValue;

use crate::blocks::{Lowerer, Memo, ViewEntry};
use crate::growing::{RangeSums, Totals};
use crate::history::{History, HistorySize, LostThinking, TrimPoint, output_previews};
use crate::rewrite::rewrite_cost::{HistoryChange, RewriteCost};

/// What previews would save of a history, while they have not begun: each round is looked at once, when it is no longer the
/// newest.
#[derive(Debug, Default)]
pub(crate) struct PendingPreviews {
    policy: Option<PreviewPolicy>,
    /// How many entries were looked at.
    scanned: usize,
    /// The entries that would be previewed, ascending.
    entries: Vec<usize>,
    /// The tokens that each of those saves.
    saved: RangeSums<SavedTokens>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SavedTokens(u64);

impl Totals for SavedTokens {
    fn add(&mut self, other: &Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl PendingPreviews {
    /// Looks at the rounds that have become settled since the last compile.
    fn scan_settled_rounds(
        &mut self,
        policy: &PreviewPolicy,
        history: &History,
        (lowerer, memo): (&Lowerer<'_>, &mut Memo),
    ) {
        if self.policy.as_ref() != Some(policy) {
            *self = Self {
                policy: Some(policy.clone()),
                ..Self::default()
            };
        }
        let newest = history.rounds.last().map_or(0, |round| round.entries.start);
        let new = preview_savings_in(self.scanned..newest, policy, history, (lowerer, memo));
        for (at, saved) in new {
            self.entries.push(at);
            self.saved.push(SavedTokens(saved));
        }
        self.scanned = newest;
    }
}

/// The entries of a range of whole rounds that would be previewed, each with what that saves.
fn preview_savings_in(
    range: Range<usize>,
    policy: &PreviewPolicy,
    history: &History,
    (lowerer, memo): (&Lowerer<'_>, &mut Memo),
) -> Vec<(usize, u64)> {
    let counter = lowerer.item_weigher().counter;
    let own = history.entries.get(range.clone()).unwrap_or_default();
    let previews = output_previews(own, &Previewer { policy, counter });
    let saving = |(at, preview): (usize, ViewEntry)| {
        let before = lowerer.count_item(own.get(at)?, memo).high;
        let after = lowerer.count_item(&preview, memo).high;
        Some((range.start + at, before.saturating_sub(after)))
    };
    previews.into_iter().filter_map(saving).collect()
}

/// What previews would change of the history that is sent; `None` if nothing.
pub(crate) fn preview_savings(
    policy: &PreviewPolicy,
    history: &History,
    latched: &TrimPoint,
    known: &mut PendingPreviews,
    (lowerer, memo): (&Lowerer<'_>, &mut Memo),
) -> Option<HistoryChange> {
    known.scan_settled_rounds(policy, history, (lowerer, memo));
    // Outputs before the cut are not sent, so previewing them saves nothing.
    let sent = history.rounds.get(latched.round)?.entries.start;
    let open = known.scanned..history.entries.len();
    let mut newest = preview_savings_in(open, policy, history, (lowerer, memo));
    newest.retain(|(at, _)| *at >= sent);
    let settled = known.entries.partition_point(|at| *at < sent);
    let first = known.entries.get(settled).copied();
    let first = first.or_else(|| newest.first().map(|(at, _)| *at))?;
    let saved = known.saved.sum(settled..known.saved.len()).0;
    let newest = newest.iter().map(|(_, saved)| *saved);
    Some(HistoryChange {
        first,
        saved: newest.fold(saved, u64::saturating_add),
        tools: None,
        thinking: LostThinking::default(),
    })
}

/// Where the history does not fit, previews free at least so many times the room that their tool takes in every call.
const WORTH_ITS_ROOM: u64 = 2;

/// Whether previews begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreviewDecision {
    pub(crate) begin: bool,
    /// The figures, if it was a matter of money.
    pub(crate) value: Option<RewriteValue>,
    /// For how many calls they have not paid back yet, if they begin because that pays.
    pub(crate) payback_calls: Option<u64>,
}

impl PreviewDecision {
    /// Decides for a history of this size that they would change so.
    pub(crate) fn decide(
        policy: &PreviewPolicy,
        size: HistorySize,
        stakes: &RewriteCost<'_>,
        change: HistoryChange,
    ) -> Self {
        let Previewing::Worthwhile { calls } = policy.when else {
            return Self::BEGIN;
        };
        let tools = change.tools.map_or(0, |tools| tools.high);
        // Too large: previews are the gentlest way to make room, if they free more than their tool
        // takes.
        if size.exceeds_budget() && change.saved >= tools.saturating_mul(WORTH_ITS_ROOM) {
            return Self::BEGIN;
        }
        let worth = stakes.value_of(change, calls);
        Self {
            begin: worth.rewrite,
            // Reported also where it does not pay: the report shows why nothing happened.
            value: Some(worth),
            payback_calls: worth.rewrite.then(|| worth.calls_to_break_even(calls)),
        }
    }

    const BEGIN: Self = Self {
        begin: true,
        value: None,
        payback_calls: None,
    };
}
