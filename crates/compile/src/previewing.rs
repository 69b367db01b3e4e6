//! Whether long outputs are previewed from now on: because the history does not fit and they free room, or because it pays.
//!
//! The model reads the rest with a tool. Where the host offers it only once it is needed, its appearance writes the
//! whole cache anew, and every call carries it; then all the old outputs change for nothing in the same step. So it
//! is decided once, for all outputs of the path, and the plan keeps it.
//!
//! Not here: what a preview shows ([`crate::preview`]).

use crate::cache::worth::Worth;
use crate::cut::Cut;
use crate::entry::Entry;
use crate::history::History;
use crate::memo::Memo;
use crate::passes::clear::Size;
use crate::passes::lower::Press;
use crate::passes::preview::previews;
use crate::preview::{PreviewPolicy, Previewer, Previewing};
use crate::stakes::{Change, Stakes};

/// What previews would change of the history that is sent; `None` if nothing.
pub(crate) fn change(
    policy: &PreviewPolicy,
    history: &History,
    latched: &Cut,
    press: &Press<'_>,
    memo: &mut Memo,
) -> Option<Change> {
    let counter = press.scale().counter;
    let sent = history.rounds.get(latched.round)?.entries.start;
    let all = previews(&history.entries, &Previewer { policy, counter });
    let all: Vec<&(usize, Entry)> = all.iter().filter(|(at, _)| *at >= sent).collect();
    let first = all.iter().map(|(at, _)| *at).min()?;
    let saved = all.iter().filter_map(|(at, preview)| {
        let before = press.item(history.entries.get(*at)?, memo).high;
        Some(before.saturating_sub(press.item(preview, memo).high))
    });
    Some(Change {
        first,
        saved: saved.sum(),
        tools: None,
    })
}

/// Where the history does not fit, previews free at least so many times the room that their tool takes in every call.
const WORTH_ITS_ROOM: u64 = 2;

/// Whether previews begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Previews {
    pub(crate) begin: bool,
    /// The figures, if it was a matter of money.
    pub(crate) worth: Option<Worth>,
    /// For how many calls they have not paid back yet, if they begin because that pays.
    pub(crate) owes: Option<u64>,
}

impl Previews {
    /// Decides for a history of this size that they would change so.
    pub(crate) fn decide(
        policy: &PreviewPolicy,
        size: Size,
        stakes: &Stakes<'_>,
        change: Change,
    ) -> Self {
        let Previewing::Worthwhile { calls } = policy.when else {
            return Self::BEGIN;
        };
        let tools = change.tools.map_or(0, |tools| tools.high);
        if size.is_over() && change.saved >= tools.saturating_mul(WORTH_ITS_ROOM) {
            return Self::BEGIN;
        }
        let worth = stakes.worth(change, calls);
        Self {
            begin: worth.rewrite,
            worth: Some(worth),
            owes: worth.rewrite.then(|| worth.paid_back_after(calls)),
        }
    }

    const BEGIN: Self = Self {
        begin: true,
        worth: None,
        owes: None,
    };
}
