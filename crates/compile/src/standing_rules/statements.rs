//! The rules of a path, by what was found in its items.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_condense::{RuleOnPath, RuleStrength, StandingRules, Statement, find_statements};
use contexture_ir::{ContentHash, Item, Origin, Role};
use indexmap::IndexMap;

use crate::blocks::{Memo, ViewEntry};
use crate::input::{CompileInput, Contribution, PathItem, RuleId, StandingRulesPolicy, node_name};

/// What a person says about rules in one item.
#[derive(Clone, Debug)]
pub(crate) struct ItemStatements {
    /// Index on the path.
    pub(crate) index: usize,
    pub(crate) statements: Arc<[Arc<Statement>]>,
}

/// Finds what persons say about rules in the items of a view. What a pass of the host's took away is not there any more.
pub(crate) fn find_item_statements(entries: &[ViewEntry], memo: &mut Memo) -> Vec<ItemStatements> {
    let written = entries.iter().filter(|entry| is_written_by_person(entry));
    let found = written.filter_map(|entry| {
        let key = statements_key(entry);
        let make = || {
            let found = find_statements(entry.origin, &entry.item).into_iter();
            found.map(Arc::new).collect()
        };
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

/// What persons said about rules on a path, read once: all but what the newest round says, which may still change.
#[derive(Debug, Default)]
pub(crate) struct FoundRules {
    /// In path order.
    found: Vec<ItemStatements>,
    /// How many of them are settled.
    settled: usize,
    /// The rules that those leave.
    rules: Arc<StandingRules<Arc<Statement>>>,
    /// By the name of an item's node: the first of those that is found in such an item.
    by_node: IndexMap<String, usize>,
    /// For each item of the path, how many messages of the user there are up to it.
    turns: Vec<u32>,
}

impl FoundRules {
    /// Takes out what was found from an index on, and adds what was found anew.
    pub(crate) fn replace_from(&mut self, index: usize, found: Vec<ItemStatements>) {
        let known = self.found.partition_point(|one| one.index < index);
        self.found.truncate(known.max(self.settled));
        self.found.extend(found);
    }

    /// Counts the turns of a path that has grown.
    pub(crate) fn count_turns(&mut self, path: &[PathItem]) {
        let mut turns = self.turns.last().copied().unwrap_or_default();
        for item in path.iter().skip(self.turns.len()) {
            turns = turns.saturating_add((item.item.role() == Some(Role::User)).into());
            self.turns.push(turns);
        }
    }

    /// From now on what was found before an index stays.
    pub(crate) fn settle_before(&mut self, index: usize, path: &[PathItem]) {
        let new = self.found.get(self.settled..).unwrap_or_default();
        for one in new.iter().take_while(|one| one.index < index) {
            for statement in one.statements.iter() {
                // Nobody else holds them between two compiles: nothing is copied.
                Arc::make_mut(&mut self.rules).add_statement(one.index, Arc::clone(statement));
            }
            if let Some(item) = path.get(one.index) {
                self.by_node.entry(node_name(item)).or_insert(self.settled);
            }
            self.settled += 1;
        }
    }

    /// The rules that nothing has taken back.
    fn standing_rules(&self) -> Arc<StandingRules<Arc<Statement>>> {
        let newest = self.found.get(self.settled..).unwrap_or_default();
        if newest.is_empty() {
            return Arc::clone(&self.rules);
        }
        let mut rules = StandingRules::clone(&self.rules);
        for one in newest {
            for statement in one.statements.iter() {
                rules.add_statement(one.index, Arc::clone(statement));
            }
        }
        Arc::new(rules)
    }

    /// Whether the message of a rule is settled.
    fn is_settled(&self, rule: &NamedRule) -> bool {
        let last = self
            .settled
            .checked_sub(1)
            .and_then(|at| self.found.get(at));
        last.is_some_and(|last| rule.index <= last.index)
    }

    /// The rule of a name, taken back or not.
    fn find_rule(&self, id: &RuleId, path: &[PathItem]) -> Option<NamedRule> {
        let settled = self.by_node.get(id.node_name()).copied();
        let is_own = |at: &usize| {
            let item = self.found.get(*at).and_then(|one| path.get(one.index));
            item.is_some_and(|item| node_name(item) == id.node_name())
        };
        let own = settled.or_else(|| (self.settled..self.found.len()).find(is_own))?;
        let own = self.found.get(own)?;
        let item = path.get(own.index)?;
        own.statements.iter().find_map(|statement| {
            let strength = statement.strength()?;
            (RuleId::of_sentence(item, &statement.text) == *id).then(|| NamedRule {
                id: id.clone(),
                index: own.index,
                turn: self.turn_of(own.index),
                text: statement.text.clone(),
                strength,
            })
        })
    }

    /// Which of the user's messages an item is, or stands behind, counted from 1.
    fn turn_of(&self, index: usize) -> usize {
        let turns = self.turns.get(index).copied().unwrap_or_default();
        turns.max(1) as usize
    }

    /// A rule with its name.
    fn name_rule(&self, rule: &RuleOnPath<Arc<Statement>>, path: &[PathItem]) -> Option<NamedRule> {
        Some(NamedRule {
            id: RuleId::of_sentence(path.get(rule.index)?, rule.text()),
            index: rule.index,
            turn: self.turn_of(rule.index),
            text: rule.text().to_owned(),
            strength: rule.strength,
        })
    }
}

/// A rule with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRule {
    pub(crate) id: RuleId,
    /// Index on the path of its message.
    pub(crate) index: usize,
    /// Which of the user's messages that is, counted from 1.
    pub(crate) turn: usize,
    pub(crate) text: String,
    pub(crate) strength: RuleStrength,
}

/// The rules that the last call showed, as the next one finds them again.
#[derive(Debug)]
pub(crate) struct KnownRules {
    /// What the plan and the host said.
    shown: Vec<RuleId>,
    dropped: Vec<RuleId>,
    latched: LatchedText,
}

/// Rules that are shown, and the text that shows them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LatchedText {
    pub(crate) rules: Arc<[NamedRule]>,
    pub(crate) contribution: Option<Contribution>,
}

/// The rules of a path.
#[derive(Debug, Default)]
pub(crate) struct RulesOnPath {
    /// Those that nothing has taken back, oldest first; the host may have dropped some. Most are in view, and need no name.
    standing: Arc<StandingRules<Arc<Statement>>>,
    dropped: BTreeSet<RuleId>,
    /// Those that the last call showed and that are still said on the path, in its order.
    pub(crate) latched: LatchedText,
    /// Whether the last call showed others: one was dropped by the host, or restored, or its message is gone.
    pub(crate) is_outdated: bool,
}

impl RulesOnPath {
    /// Whether there are no rules, neither now nor in the last call.
    pub(crate) fn has_none(&self) -> bool {
        self.is_none_standing() && self.latched.rules.is_empty() && !self.is_outdated
    }

    /// Whether none still holds.
    pub(crate) fn is_none_standing(&self) -> bool {
        self.standing.rules().is_empty()
    }

    /// Those that still hold and are not in view.
    pub(crate) fn out_of_view(
        &self,
        path: &[PathItem],
        found: &FoundRules,
        in_view: &dyn Fn(usize) -> bool,
    ) -> Vec<NamedRule> {
        let hidden = self.standing.rules().iter();
        let hidden = hidden.filter(|rule| !in_view(rule.index));
        let named = hidden.filter_map(|rule| found.name_rule(rule, path));
        named
            .filter(|rule| !self.dropped.contains(&rule.id))
            .collect()
    }

    /// Reads the rules that were found. `known` is what the last compile of the same path found of those it showed; `show`
    /// writes the text of rules.
    pub(crate) fn read(
        input: &CompileInput<'_>,
        found: &FoundRules,
        known: &mut Option<KnownRules>,
        show: impl Fn(&[NamedRule]) -> Option<Contribution>,
    ) -> Self {
        if input.request.history.standing_rules == StandingRulesPolicy::Off {
            return Self::default();
        }
        let shown = &input.plan.rules.shown;
        let dropped: BTreeSet<RuleId> = input.dropped_rules.iter().cloned().collect();
        let is_same =
            |known: &&KnownRules| known.shown == *shown && known.dropped == input.dropped_rules;
        if known.as_ref().is_some_and(|known| !is_same(&known)) {
            *known = None;
        }
        let latched = match &known {
            Some(known) => known.latched.clone(),
            None => {
                let ids = shown.iter().filter(|id| !dropped.contains(id));
                let rules = ids.filter_map(|id| found.find_rule(id, &input.path));
                let rules: Arc<[NamedRule]> = rules.collect();
                LatchedText {
                    contribution: show(&rules),
                    rules,
                }
            }
        };
        // A rule in the newest round may not be there the next time, and one that was not found may be.
        let is_final = known.is_none()
            && latched.rules.len() == shown.len()
            && latched.rules.iter().all(|rule| found.is_settled(rule));
        if is_final {
            *known = Some(KnownRules {
                shown: shown.clone(),
                dropped: input.dropped_rules.to_vec(),
                latched: latched.clone(),
            });
        }
        Self {
            standing: found.standing_rules(),
            is_outdated: latched.rules.len() != shown.len()
                || input.plan.rules.dropped != dropped_hash(input.dropped_rules),
            dropped,
            latched,
        }
    }
}

/// The identity of what the host dropped; nothing if it dropped nothing.
pub(crate) fn dropped_hash(dropped: &[RuleId]) -> Option<ContentHash> {
    let mut names: Vec<&str> = dropped.iter().map(RuleId::as_str).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| ContentHash::of(names.join("\n").as_bytes()))
}
