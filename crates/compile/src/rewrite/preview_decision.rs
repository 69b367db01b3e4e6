//! Whether long outputs are previewed from now on: because the history does not fit and they free room, or because it pays.
//!
//! The model reads the rest with a tool. Where the host offers it only once it is needed, its appearance writes the
//! whole cache anew, and every call carries it; then all the old outputs change for nothing in the same step. So it
//! is decided once, for all outputs of the path, and the plan keeps it.
//!
//! Not here: what a preview shows ([`contexture_condense`]).

use contexture_condense::{PreviewPolicy, Previewer, Previewing};
use contexture_prompt_cache::RewriteValue;

use crate::blocks::{Lowerer, Memo, ViewEntry};
use crate::history::{History, HistorySize, LostThinking, TrimPoint, output_previews};
use crate::rewrite::rewrite_cost::{HistoryChange, RewriteCost};

/// What previews would change of the history that is sent; `None` if nothing.
pub(crate) fn preview_savings(
    policy: &PreviewPolicy,
    history: &History,
    latched: &TrimPoint,
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> Option<HistoryChange> {
    let counter = lowerer.item_weigher().counter;
    let sent = history.rounds.get(latched.round)?.entries.start;
    let all = output_previews(&history.entries, &Previewer { policy, counter });
    // Outputs before the cut are not sent, so previewing them saves nothing.
    let all: Vec<&(usize, ViewEntry)> = all.iter().filter(|(at, _)| *at >= sent).collect();
    let first = all.iter().map(|(at, _)| *at).min()?;
    let saved = all.iter().filter_map(|(at, preview)| {
        let before = lowerer.count_item(history.entries.get(*at)?, memo).high;
        Some(before.saturating_sub(lowerer.count_item(preview, memo).high))
    });
    Some(HistoryChange {
        first,
        saved: saved.sum(),
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
