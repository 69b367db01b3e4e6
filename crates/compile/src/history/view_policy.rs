//! How the items of a path are shown, decided before anything is lowered: what compactions stand for,
//! what is cleared, what is previewed. A function of plan, policy and path; equal treatments of one path give equal views.
//!
//! Not here: where the history is cut, which depends on what the rest of the request leaves.

use std::collections::BTreeSet;

use contexture_condense::{PreviewPolicy, Previewer, Previewing};
use contexture_ir::{Cancel, ContentHash, Item};
use contexture_prompt_cache::{EditedThinking, Rates, ThinkingFrontier};

use crate::blocks::{Lowerer, Memo, ShownAs, ViewEntry, select_for_model};
use crate::error::Refusal;
use crate::history::clear::clear_entries;
use crate::history::covers::{ActiveCovers, apply_covers};
use crate::history::host_pass::run_host_passes;
use crate::history::preview::preview_outputs;
use crate::history::thinking::leave_out_thinking;
use crate::input::{
    ClearFrontier, ClearPolicy, CompileInput, Pass, PassPoint, PathItem, StandingRulesPolicy,
};
use crate::standing_rules::{ItemStatements, find_item_statements};
use contexture_report::OmitReason;

/// How a path is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ViewPolicy {
    active_covers: ActiveCovers,
    /// Whether our own compactions are left out, where nothing else makes the request fit.
    pub(crate) leaves_out_compactions: bool,
    clear: Option<ClearPolicy>,
    pub(crate) frontier: ClearFrontier,
    preview: Option<PreviewPolicy>,
    /// A policy for previews that is not in effect yet.
    pending_previews: Option<PreviewPolicy>,
    /// What thinking is left out, where the model binds thinking.
    pub(crate) thinking_from: Option<ThinkingFrontier>,
    /// What becomes of it; nothing where the provider drops it by itself.
    pub(crate) edited_thinking: Option<EditedThinking>,
    standing_rules: StandingRulesPolicy,
}

/// What the host has in it: passes of its own, and a way to call it off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ViewRequest<'a> {
    passes: &'a [&'a dyn Pass],
    cancel: Option<&'a Cancel>,
}

impl<'a> ViewRequest<'a> {
    pub(crate) const fn from_input(input: &CompileInput<'a>) -> Self {
        Self {
            passes: input.passes,
            cancel: input.cancel,
        }
    }
}

/// Entries, and what was left out of them with its reason.
pub(crate) type EntriesAndOmissions = (Vec<ViewEntry>, Vec<(usize, OmitReason)>);

/// A path as it is shown.
#[derive(Debug, Default)]
pub(crate) struct BuiltView {
    pub(crate) entries: Vec<ViewEntry>,
    /// What was left out, with its reason.
    pub(crate) hidden: Vec<(usize, OmitReason)>,
    /// What persons say about rules, in what is shown and in what is not.
    pub(crate) statements: Vec<ItemStatements>,
}

impl ViewPolicy {
    /// The plan's, if it is for this target and this path. Thinking behind an edit stays.
    pub(crate) fn from_plan(input: &CompileInput<'_>, target: &str) -> Self {
        let plan = input.plan;
        let same_target = plan
            .prefix
            .as_ref()
            .is_some_and(|prefix| prefix.target == target);
        let clear = input.request.history.clear.policy();
        let frontier = plan
            .clear
            .filter(|frontier| same_target && clear.is_some() && is_on_path(frontier, &input.path));
        // A cover may only name a compaction; anything else in its place means that the path is not
        // the one it was made for.
        let compacts = |at: usize| {
            let item = input.path.get(at).map(|item| &*item.item);
            matches!(item, Some(Item::Compaction(_)))
        };
        let previews = input.request.history.preview.clone();
        let cache = &input.request.cache;
        let priced = Rates::for_request(&cache.prices, cache.rules.kind, 0).is_some();
        // Without prices nothing can be weighed, so previews begin at once.
        let begun = |policy: &PreviewPolicy| {
            policy.when == Previewing::Always || same_target && plan.previews || !priced
        };
        let (preview, pending) = match previews {
            Some(policy) if begun(&policy) => (Some(policy), None),
            other => (None, other),
        };
        Self {
            active_covers: ActiveCovers::from_covers(input.covers, input.path.len(), compacts),
            leaves_out_compactions: false,
            clear: clear.cloned(),
            preview,
            pending_previews: pending,
            frontier: frontier.unwrap_or(ClearFrontier::NONE),
            thinking_from: plan.thinking_from.filter(|own| {
                let last = own.index.checked_sub(1).and_then(|at| input.path.get(at));
                input.request.bound_thinking && last.map(|item| item.hash) == Some(own.hash)
            }),
            edited_thinking: None,
            standing_rules: input.request.history.standing_rules,
        }
    }

    /// The entries of a path from its item `first` on: of a whole path, or of what is behind all that
    /// the treatment changes.
    pub(crate) fn build_view(
        &self,
        path: &[PathItem],
        first: usize,
        asked: ViewRequest<'_>,
        lowerer: &Lowerer<'_>,
        memo: &mut Memo,
    ) -> Result<BuiltView, Refusal> {
        let (entries, mut hidden) = select_for_model(path, first);
        // Before covers: a pass that removes an item must not find it hidden already, and what it adds
        // is treated like the rest.
        let (entries, left_out) = run_host_passes(entries, asked.passes, PassPoint::BeforeView);
        hidden.extend(left_out);
        Cancel::check_optional(asked.cancel)?;
        let statements = match self.standing_rules {
            StandingRulesPolicy::Keep => find_item_statements(&entries, memo),
            StandingRulesPolicy::Off => Vec::new(),
        };
        let said = entries_to_transform(&entries, &statements, asked.passes);
        let (mut entries, covered) =
            // Covers before clearing: what a compaction stands for needs no placeholder.
            apply_covers(entries, &self.active_covers, lowerer.dialect().format);
        hidden.extend(covered);
        if self.leaves_out_compactions {
            let own = entries
                .extract_if(.., |entry| entry.shown_as == ShownAs::Compaction)
                .filter_map(|entry| entry.source);
            hidden.extend(own.map(|index| (index, OmitReason::Trimmed)));
        }
        if let Some(policy) = &self.clear
            && self.frontier != ClearFrontier::NONE
        {
            let (kept, cleared) = clear_entries(entries, &self.frontier, policy, |entry| {
                lowerer.count_item(entry, memo).high
            });
            hidden.extend(cleared);
            entries = kept;
        }
        let edited = self.thinking_from.zip(self.edited_thinking);
        let (mut entries, bound) = leave_out_thinking(entries, edited, lowerer.dialect().format);
        hidden.extend(bound);
        Cancel::check_optional(asked.cancel)?;
        // Previews last, on what neither was left out nor cleared.
        if let Some(policy) = &self.preview {
            let counter = lowerer.item_weigher().counter;
            preview_outputs(&mut entries, &Previewer { policy, counter });
        }
        Cancel::check_optional(asked.cancel)?;
        let (entries, left_out) = run_host_passes(entries, asked.passes, PassPoint::AfterView);
        hidden.extend(left_out);
        // What a pass takes away or rewrites must not be quoted as it was.
        let statements = match said.is_empty() {
            true => statements,
            false => find_item_statements(&transform_said(said, &entries, asked.passes), memo),
        };
        Ok(BuiltView {
            entries,
            hidden,
            statements,
        })
    }

    /// Whether items at or behind an index are shown as they would be without it.
    pub(crate) fn affects_nothing_after(&self, index: usize) -> bool {
        let thinking = self.thinking_from.as_ref();
        self.active_covers.affects_nothing_after(index)
            && self.frontier.repeats <= index
            && thinking.is_none_or(|frontier| frontier.index <= index)
    }

    /// Leaves out all thinking on the path behind an edit, and what was left out before.
    pub(crate) fn leave_out_thinking(&mut self, edit: usize, path: &[PathItem]) {
        let before = self.thinking_from;
        self.thinking_from = path
            .last()
            .map(|last| ThinkingFrontier::behind_edit(edit, path.len(), last.hash, before));
    }

    /// The policy for previews that is not in effect yet.
    pub(crate) const fn pending_previews(&self) -> Option<&PreviewPolicy> {
        self.pending_previews.as_ref()
    }

    /// Outputs are previewed from now on.
    pub(crate) fn begin_previews(&mut self) {
        self.preview = self.pending_previews.take();
    }

    /// Whether outputs are previewed.
    pub(crate) const fn has_previews(&self) -> bool {
        self.preview.is_some()
    }

    /// The covers in effect.
    pub(crate) const fn active_covers(&self) -> &ActiveCovers {
        &self.active_covers
    }

    /// The frontier as the plan keeps it.
    pub(crate) fn clear_frontier(&self) -> Option<ClearFrontier> {
        (self.frontier != ClearFrontier::NONE).then_some(self.frontier)
    }

    /// The index behind the newest compaction in effect, if a provider has made it since the plan.
    pub(crate) fn new_provider_compaction(&self, input: &CompileInput<'_>) -> Option<usize> {
        let covers = self.active_covers.covers().iter();
        let newest = covers.map(|cover| cover.compaction).max()?;
        let is_new = self.covers_hash() != input.plan.covers;
        match &*input.path.get(newest)?.item {
            Item::Compaction(made) if is_new && made.format.is_some() => Some(newest + 1),
            _ => None,
        }
    }

    /// The identity of the covers in effect.
    pub(crate) fn covers_hash(&self) -> Option<ContentHash> {
        let covers = self.active_covers.covers();
        let words = covers
            .iter()
            .flat_map(|cover| [cover.compaction, cover.first, cover.last]);
        let bytes: Vec<u8> = words.flat_map(|word| (word as u64).to_le_bytes()).collect();
        // Without covers there is nothing to identify, and the plan holds no hash.
        (!bytes.is_empty()).then(|| ContentHash::of(&bytes))
    }
}

/// The entries in which persons say something about rules, if passes of the host's come after the view.
fn entries_to_transform(
    entries: &[ViewEntry],
    statements: &[ItemStatements],
    passes: &[&dyn Pass],
) -> Vec<ViewEntry> {
    if !passes
        .iter()
        .any(|pass| pass.point() == PassPoint::AfterView)
    {
        return Vec::new();
    }
    let said: BTreeSet<usize> = statements.iter().map(|one| one.index).collect();
    let is_said = |entry: &&ViewEntry| entry.source.is_some_and(|source| said.contains(&source));
    entries.iter().filter(is_said).cloned().collect()
}

/// What the passes of the host's leave of entries: of those in view what they made of them there; the others, which stand in no
/// view, are given to the passes by themselves.
fn transform_said(
    said: Vec<ViewEntry>,
    view: &[ViewEntry],
    passes: &[&dyn Pass],
) -> Vec<ViewEntry> {
    let sources: BTreeSet<Option<usize>> = said.iter().map(|entry| entry.source).collect();
    let shown = view.iter().filter(|entry| sources.contains(&entry.source));
    let mut left: Vec<ViewEntry> = shown.cloned().collect();
    let shown: BTreeSet<Option<usize>> = left.iter().map(|entry| entry.source).collect();
    let others = said
        .into_iter()
        .filter(|entry| !shown.contains(&entry.source));
    let (others, _) = run_host_passes(others.collect(), passes, PassPoint::AfterView);
    left.extend(others);
    left.sort_by_key(|entry| entry.source);
    left
}

/// Whether a frontier is of this path.
fn is_on_path(frontier: &ClearFrontier, path: &[PathItem]) -> bool {
    let there = path.get(frontier.repeats).map(|item| item.hash);
    there == Some(frontier.hash) && frontier.outputs.max(frontier.reasoning) <= frontier.repeats
}
