//! The rules of a path, for people and programs.

use std::collections::BTreeSet;

use contexture_condense::{RuleStrength, StandingRules, find_statements};
use contexture_ir::{NodeId, Role};
use serde::Serialize;

use crate::input::{PathItem, RuleId};

/// A standing rule of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StandingRule {
    /// Its name, by which it can be dropped.
    pub id: RuleId,
    /// The node of the message that says it, if it is stored.
    #[serde(skip)]
    pub node: Option<NodeId>,
    /// Index on the path of that message.
    #[serde(skip)]
    pub index: usize,
    /// Which of the user's messages that is, counted from 1.
    pub turn: usize,
    /// The sentence as it was written.
    pub text: String,
    /// Whether it is stated expressly, as a rule or a fact, and not only as a wish.
    pub is_express: bool,
    /// Whether the host has dropped it.
    pub is_dropped: bool,
}

/// Lists the rules on a path that the person has not taken back, oldest first, at most 300.
///
/// ```
/// use contexture_compile::{PathItem, list_standing_rules};
/// use contexture_ir::{Item, Message, Role};
///
/// let said = ["Always answer in German.", "What is a node?"];
/// let path = PathItem::from_items(said.map(|text| Item::from(Message::text(Role::User, text))));
/// let rules = list_standing_rules(&path, &[]);
/// assert_eq!((rules[0].turn, rules[0].text.as_str()), (1, "Always answer in German."));
/// assert!(list_standing_rules(&path, &[rules[0].id.clone()])[0].is_dropped);
/// ```
#[must_use]
pub fn list_standing_rules(path: &[PathItem], dropped: &[RuleId]) -> Vec<StandingRule> {
    let dropped: BTreeSet<&RuleId> = dropped.iter().collect();
    let mut turns: Vec<usize> = Vec::with_capacity(path.len());
    let mut found = Vec::new();
    for (index, item) in path.iter().enumerate() {
        let before = turns.last().copied().unwrap_or_default();
        turns.push(before + usize::from(item.item.role() == Some(Role::User)));
        // What models may not see is not shown to them as a rule either.
        if item.audience.model {
            let own = find_statements(item.origin, &item.item);
            found.extend(own.into_iter().map(|statement| (index, statement)));
        }
    }
    let standing = StandingRules::from_statements(found.iter().map(|(at, one)| (*at, one)));
    let listed = standing.rules().iter().filter_map(|rule| {
        let item = path.get(rule.index)?;
        let id = RuleId::of_sentence(item, rule.text());
        Some(StandingRule {
            is_dropped: dropped.contains(&id),
            id,
            node: item.node,
            index: rule.index,
            turn: turns.get(rule.index).copied().unwrap_or_default().max(1),
            text: rule.text().to_owned(),
            is_express: rule.strength == RuleStrength::Express,
        })
    });
    listed.collect()
}
