//! How the items of a path are shown, decided before anything is lowered: what compactions stand for,
//! what is cleared, what is previewed. A function of plan, policy and path; equal treatments of one path give equal views.
//!
//! Not here: where the history is cut, which depends on what the rest of the request leaves.

use contexture_ir::{ContentHash, Item};

use crate::cache::bill::Rates;
use crate::cancel::Cancel;
use crate::entry::Entry;
use crate::memo::Memo;
use crate::passes::clear::clear;
use crate::passes::cover::{Covering, cover};
use crate::passes::host::{Pass, PassPoint, host};
use crate::passes::lower::Press;
use crate::passes::preview::preview;
use crate::passes::select::select;
use crate::plan::ClearFrontier;
use crate::policy::ClearPolicy;
use crate::preview::{PreviewPolicy, Previewer, Previewing};
use crate::refusal::Refusal;
use crate::report::document::OmitReason;
use crate::request::{CompileInput, PathItem};

/// How a path is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Treatment {
    covering: Covering,
    clear: Option<ClearPolicy>,
    pub(crate) frontier: ClearFrontier,
    preview: Option<PreviewPolicy>,
    /// A policy for previews that is not in effect yet.
    pending: Option<PreviewPolicy>,
}

/// What the host has in it: passes of its own, and a way to call it off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    passes: &'a [&'a dyn Pass],
    cancel: Option<&'a Cancel>,
}

impl<'a> Asked<'a> {
    pub(crate) const fn of(input: &CompileInput<'a>) -> Self {
        Self {
            passes: input.passes,
            cancel: input.cancel,
        }
    }
}

/// Entries and what was left out of them, with its reason.
pub(crate) type Treated = (Vec<Entry>, Vec<(usize, OmitReason)>);

impl Treatment {
    /// The plan's, if it is for this target and this path.
    pub(crate) fn latched(input: &CompileInput<'_>, target: &str) -> Self {
        let plan = input.plan;
        let same_target = plan
            .prefix
            .as_ref()
            .is_some_and(|prefix| prefix.target == target);
        let clear = input.request.history.clear.policy();
        let frontier = plan
            .clear
            .filter(|frontier| same_target && clear.is_some() && fits(frontier, input.path));
        let compacts = |at: usize| {
            let item = input.path.get(at).map(|item| &*item.item);
            matches!(item, Some(Item::Compaction(_)))
        };
        let previews = input.request.history.preview.clone();
        let cache = &input.request.cache;
        let priced = Rates::of(&cache.prices, cache.rules.kind, 0).is_some();
        let begun = |policy: &PreviewPolicy| match policy.when {
            Previewing::Always => true,
            Previewing::Worthwhile { .. } => same_target && plan.previews || !priced,
        };
        let (preview, pending) = match previews {
            Some(policy) if begun(&policy) => (Some(policy), None),
            other => (None, other),
        };
        Self {
            covering: Covering::of(input.covers, input.path.len(), compacts),
            clear: clear.cloned(),
            preview,
            pending,
            frontier: frontier.unwrap_or(ClearFrontier::NONE),
        }
    }

    /// The entries of a path from its item `first` on: of a whole path, or of what is behind all that
    /// the treatment changes.
    pub(crate) fn apply(
        &self,
        path: &[PathItem],
        first: usize,
        asked: Asked<'_>,
        press: &Press<'_>,
        memo: &mut Memo,
    ) -> Result<Treated, Refusal> {
        let (entries, mut hidden) = select(path, first);
        let (entries, left_out) = host(entries, asked.passes, PassPoint::BeforeView);
        hidden.extend(left_out);
        Cancel::check(asked.cancel)?;
        let (mut entries, covered) = cover(entries, &self.covering, press.dialect().format);
        hidden.extend(covered);
        if let Some(policy) = &self.clear
            && self.frontier != ClearFrontier::NONE
        {
            let (kept, cleared) = clear(entries, &self.frontier, policy, |entry| {
                press.item(entry, memo).high
            });
            hidden.extend(cleared);
            entries = kept;
        }
        Cancel::check(asked.cancel)?;
        if let Some(policy) = &self.preview {
            let counter = press.scale().counter;
            preview(&mut entries, &Previewer { policy, counter });
        }
        Cancel::check(asked.cancel)?;
        let (entries, left_out) = host(entries, asked.passes, PassPoint::AfterView);
        hidden.extend(left_out);
        Ok((entries, hidden))
    }

    /// Whether items at or behind an index are shown as they would be without it.
    pub(crate) fn ends_before(&self, index: usize) -> bool {
        self.covering.ends_before(index) && self.frontier.settled <= index
    }

    /// The policy for previews that is not in effect yet.
    pub(crate) const fn pending(&self) -> Option<&PreviewPolicy> {
        self.pending.as_ref()
    }

    /// Outputs are previewed from now on.
    pub(crate) fn begin_previews(&mut self) {
        self.preview = self.pending.take();
    }

    /// Whether outputs are previewed.
    pub(crate) const fn previews(&self) -> bool {
        self.preview.is_some()
    }

    /// The covers in effect.
    pub(crate) const fn covering(&self) -> &Covering {
        &self.covering
    }

    /// The frontier as the plan keeps it.
    pub(crate) fn latched_frontier(&self) -> Option<ClearFrontier> {
        (self.frontier != ClearFrontier::NONE).then_some(self.frontier)
    }

    /// The identity of the covers in effect.
    pub(crate) fn covers_hash(&self) -> Option<ContentHash> {
        let covers = self.covering.covers();
        let words = covers
            .iter()
            .flat_map(|cover| [cover.compaction, cover.first, cover.last]);
        let bytes: Vec<u8> = words.flat_map(|word| (word as u64).to_le_bytes()).collect();
        (!bytes.is_empty()).then(|| ContentHash::of(&bytes))
    }
}

/// Whether a frontier is of this path.
fn fits(frontier: &ClearFrontier, path: &[PathItem]) -> bool {
    let there = path.get(frontier.settled).map(|item| item.hash);
    there == Some(frontier.hash) && frontier.outputs.max(frontier.reasoning) <= frontier.settled
}
