//! The rules of a path, by what was found in its items.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_condense::{RuleStrength, StandingRules, Statement, find_statements};
use contexture_ir::{ContentHash, Item, Origin, Role};

use crate::blocks::{Memo, ViewEntry};
use crate::input::{CompileInput, PathItem, RuleId, StandingRulesPolicy};

/// What a person says about rules in one item.
#[derive(Clone, Debug)]
pub(crate) struct ItemStatements {
    /// Index on the path.
    pub(crate) index: usize,
    pub(crate) statements: Arc<[Statement]>,
}

/// Finds what persons say about rules in the items of a view. What a pass of the host's took away is not there any more.
pub(crate) fn find_item_statements(entries: &[ViewEntry], memo: &mut Memo) -> Vec<ItemStatements> {
    let written = entries.iter().filter(|entry| is_written_by_person(entry));
    let found = written.filter_map(|entry| {
        let key = statements_key(entry);
        let make = || find_statements(entry.origin, &entry.item).into();
        Some(ItemStatements {
            index: entry.source?,
            statements: memo.get_or_find_statements(key, make),
        })
    });
    found.filter(|one| !one.statements.is_empty()).collect()
}

/// The item's hash: what is found in a message that may be a person's depends on its content alone.
const fn statements_key(entry: &ViewEntry) -> ContentHash {
    entry.hash
}

/// Whether an item may hold a person's own words: nothing else is looked at, or remembered.
fn is_written_by_person(entry: &ViewEntry) -> bool {
    let role = |role| matches!(role, Role::User | Role::Developer);
    matches!(entry.origin, Origin::User | Origin::Import)
        && matches!(&*entry.item, Item::Message(message) if role(message.role))
}

/// A rule with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRule {
    pub(crate) id: RuleId,
    /// Index on the path of its message.
    pub(crate) index: usize,
    pub(crate) text: String,
    pub(crate) strength: RuleStrength,
}

/// The rules of a path.
#[derive(Debug, Default)]
pub(crate) struct RulesOnPath {
    /// Those that still hold, oldest first.
    pub(crate) standing: Vec<NamedRule>,
    /// Those that the last call showed and that are still said on the path, in its order.
    pub(crate) latched: Vec<NamedRule>,
    /// Whether the last call showed others: one was dropped by the host, or restored, or its message is gone.
    pub(crate) is_outdated: bool,
}

impl RulesOnPath {
    /// Whether there are no rules, neither now nor in the last call.
    pub(crate) const fn has_none(&self) -> bool {
        self.standing.is_empty() && self.latched.is_empty() && !self.is_outdated
    }

    pub(crate) fn read(input: &CompileInput<'_>, found: &[ItemStatements]) -> Self {
        if input.request.history.standing_rules == StandingRulesPolicy::Off {
            return Self::default();
        }
        let plan = input.plan;
        let dropped: BTreeSet<&RuleId> = input.dropped_rules.iter().collect();
        let all = found.iter().flat_map(|one| {
            let own = one.statements.iter();
            own.map(move |statement| (one.index, statement))
        });
        let standing = StandingRules::from_statements(all);
        let standing = standing.rules().iter().filter_map(|rule| {
            Some(NamedRule {
                id: RuleId::of_sentence(input.path.get(rule.index)?, rule.text),
                index: rule.index,
                text: rule.text.to_owned(),
                strength: rule.strength,
            })
        });
        let latched = plan.rules.shown.iter();
        let latched: Vec<NamedRule> = latched
            .filter(|id| !dropped.contains(id))
            .filter_map(|id| find_rule(id, input.path, found))
            .collect();
        Self {
            standing: standing
                .filter(|rule| !dropped.contains(&rule.id))
                .collect(),
            is_outdated: latched.len() != plan.rules.shown.len()
                || plan.rules.dropped != dropped_hash(input.dropped_rules),
            latched,
        }
    }
}

/// The rule of a name, taken back or not.
fn find_rule(id: &RuleId, path: &[PathItem], found: &[ItemStatements]) -> Option<NamedRule> {
    let of_item = |one: &&ItemStatements| path.get(one.index).is_some_and(|item| id.is_of(item));
    let own = found.iter().find(of_item)?;
    let item = path.get(own.index)?;
    own.statements.iter().find_map(|statement| {
        let strength = statement.strength()?;
        (RuleId::of_sentence(item, &statement.text) == *id).then(|| NamedRule {
            id: id.clone(),
            index: own.index,
            text: statement.text.clone(),
            strength,
        })
    })
}

/// The identity of what the host dropped; nothing if it dropped nothing.
pub(crate) fn dropped_hash(dropped: &[RuleId]) -> Option<ContentHash> {
    let mut names: Vec<&str> = dropped.iter().map(RuleId::as_str).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| ContentHash::of(names.join("\n").as_bytes()))
}
