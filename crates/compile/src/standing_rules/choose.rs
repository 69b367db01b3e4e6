//! Which rules are shown, and how.
//!
//! A choice is made anew while it changes what is in view: its text takes room, and can push out the message of another rule.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_ir::{Item, Message, Role};

use crate::blocks::{Lowerer, Memo};
use crate::input::{Band, Budget, CompileInput, Content, Contribution, LatchedRules, Stability};
use crate::standing_rules::statements::{FoundRules, NamedRule, RulesOnPath, dropped_hash};
use contexture_report::{RuleReport, StandingReport};

/// Most tokens that rules take.
const MAX_RULE_TOKENS: u64 = 1_500;
/// Which part of the window they take at most.
const WINDOW_SHARE: u64 = 8;
/// How often a choice is made anew in one compile. Each time more rules are out of view, and few are.
const MAX_CHOICES: usize = 8;
/// The source of the segment.
const SOURCE: &str = "standing rules";
/// The element in which rules stand. What stands in it counts as no person's words when it comes back in a request.
const ELEMENT: &str = "standing_rules";
/// What is said before the rules.
const LEAD: &str = "Said by the user earlier in this conversation and still in force. \
    Quoted newest first; where two disagree, the newer one holds.";

/// The rules that a request shows.
#[derive(Clone, Debug)]
pub(crate) struct RuleChoice {
    shown: Arc<[NamedRule]>,
    left_out: Vec<NamedRule>,
    /// Most tokens of their text.
    max_tokens: u64,
    /// Which choice of this compile it is; 0 is that of the plan.
    pub(crate) round: usize,
    pub(crate) contribution: Option<Contribution>,
}

impl RuleChoice {
    /// The rules of the plan.
    pub(crate) fn latched(input: &CompileInput<'_>, rules: &RulesOnPath) -> Self {
        let max_tokens = MAX_RULE_TOKENS.min(input.request.window / WINDOW_SHARE);
        Self {
            contribution: rules.latched.contribution.clone(),
            shown: Arc::clone(&rules.latched.rules),
            left_out: Vec::new(),
            max_tokens,
            round: 0,
        }
    }

    /// The choice that takes this one's place, if another has to. `opened` says whether the request opens an epoch anyway, `is_placed`
    /// whether there was room for this choice, `in_view` which items of the path are shown.
    pub(crate) fn next_choice(
        &self,
        input: &CompileInput<'_>,
        (rules, found): (&RulesOnPath, &FoundRules),
        (opened, is_placed): (bool, bool),
        in_view: &dyn Fn(usize) -> bool,
        (lowerer, memo): (&Lowerer<'_>, &mut Memo),
    ) -> Option<Self> {
        let may_change = opened
            || self.round > 0
            || rules.is_outdated
            || !is_placed
            // A plan that shows none may be of a version that knew none.
            || input.plan.rules.shown.is_empty();
        if !may_change
            || self.round == MAX_CHOICES
            || (self.shown.is_empty() && rules.is_none_standing())
        {
            return None;
        }
        let candidates = rules.out_of_view(&input.path, found, in_view);
        let max_tokens = match is_placed {
            true => self.max_tokens,
            false => self.max_tokens / 2,
        };
        let (shown, left_out) = fit_rules(candidates, max_tokens, lowerer, memo);
        if is_placed && *shown == *self.shown && left_out == self.left_out {
            return None;
        }
        Some(Self {
            contribution: show_rules(&shown),
            shown: shown.into(),
            left_out,
            max_tokens,
            round: self.round + 1,
        })
    }

    /// How many rules it shows.
    pub(crate) fn shown_count(&self) -> usize {
        self.shown.len()
    }

    /// What the plan keeps.
    pub(crate) fn to_latched(&self, input: &CompileInput<'_>) -> LatchedRules {
        LatchedRules {
            shown: self.shown.iter().map(|shown| shown.id.clone()).collect(),
            dropped: dropped_hash(input.dropped_rules),
        }
    }

    /// What the report says of them, if there is anything to say.
    pub(crate) fn report(&self, tokens: u64) -> Option<StandingReport> {
        let row = |shown: &NamedRule| RuleReport {
            id: shown.id.to_string(),
            turn: shown.turn,
        };
        let report = StandingReport {
            tokens,
            shown: self.shown.iter().map(row).collect(),
            left_out: self.left_out.iter().map(row).collect(),
        };
        (!report.shown.is_empty() || !report.left_out.is_empty()).then_some(report)
    }
}

/// The rules that fit, and those that do not: the most express first, and of those the newest. Both are in the order in which they are shown.
fn fit_rules(
    mut candidates: Vec<NamedRule>,
    max_tokens: u64,
    lowerer: &Lowerer<'_>,
    memo: &mut Memo,
) -> (Vec<NamedRule>, Vec<NamedRule>) {
    // Newest first; a stable sort keeps that among the equally express.
    candidates.reverse();
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|at| candidates.get(*at).map(|one| Reverse(one.strength)));
    let mut left = max_tokens.saturating_sub(lowerer.count_text(&text_of(&[]), memo).high);
    let mut fitting = BTreeSet::new();
    for at in order {
        let Some(candidate) = candidates.get(at) else {
            continue;
        };
        let tokens = lowerer.count_text(&line_of(candidate), memo).high;
        if tokens <= left {
            left -= tokens;
            fitting.insert(at);
        }
    }
    let marked = candidates.into_iter().enumerate();
    let (shown, left_out): (Vec<_>, Vec<_>) = marked.partition(|(at, _)| fitting.contains(at));
    let rules =
        |marked: Vec<(usize, NamedRule)>| marked.into_iter().map(|(_, rule)| rule).collect();
    (rules(shown), rules(left_out))
}

/// One line: a sentence has none but its own.
fn line_of(shown: &NamedRule) -> String {
    format!("- turn {}: {}\n", shown.turn, shown.text)
}

fn text_of(shown: &[NamedRule]) -> String {
    let lines: String = shown.iter().map(line_of).collect();
    format!("<{ELEMENT}>\n{LEAD}\n{lines}</{ELEMENT}>")
}

/// The message that shows rules.
pub(crate) fn show_rules(shown: &[NamedRule]) -> Option<Contribution> {
    if shown.is_empty() {
        return None;
    }
    let message = Item::from(Message::text(Role::User, text_of(shown)));
    let mut contribution = Contribution::new(SOURCE, Band::Anchor, Content::Items(vec![message]));
    contribution.stability = Stability::Epoch;
    // Next to the history, behind what the host put before it.
    contribution.order = i32::MAX;
    // Before the shares of others, and never a reason to refuse the request.
    contribution.budget = Budget {
        min: u64::MAX,
        ..Budget::default()
    };
    Some(contribution)
}
