//! Which rules of a path still hold.
//!
//! A later sentence takes a rule back if its words take something back and are about the rule's matter. In doubt both stay.
//!
//! Not here: what the host decides (`contexture-compile`), and what is in view.

use super::statement::{RuleStrength, Statement};

/// Most rules of a path, newest first; older ones are passed over. Far more than can be shown.
const MAX_RULES: usize = 300;

/// The rules of a path that nothing has taken back, oldest first.
#[derive(Clone, Debug, Default)]
pub struct StandingRules<'s> {
    rules: Vec<RuleOnPath<'s>>,
}

/// A rule and where it was said.
#[derive(Clone, Copy, Debug)]
pub struct RuleOnPath<'s> {
    /// Index on the path of the message that says it.
    pub index: usize,
    /// The sentence as it was written.
    pub text: &'s str,
    /// How expressly it is stated.
    pub strength: RuleStrength,
    statement: &'s Statement,
}

impl<'s> StandingRules<'s> {
    /// Reads the statements of a path in order, each with the index of its item.
    #[must_use]
    pub fn from_statements(statements: impl IntoIterator<Item = (usize, &'s Statement)>) -> Self {
        let mut rules: Vec<RuleOnPath<'s>> = Vec::new();
        for (index, statement) in statements {
            if statement.takes_back() {
                rules.retain(|rule| !is_about(statement, rule.statement));
            }
            if let Some(strength) = statement.strength() {
                // Said again, it was said last.
                rules.retain(|rule| rule.text != statement.text);
                if rules.len() == MAX_RULES {
                    rules.remove(0);
                }
                rules.push(RuleOnPath {
                    index,
                    text: &statement.text,
                    strength,
                    statement,
                });
            }
        }
        Self { rules }
    }

    /// The rules, oldest first.
    #[must_use]
    pub fn rules(&self) -> &[RuleOnPath<'s>] {
        &self.rules
    }
}

/// Whether a sentence that takes something back is about a rule: it shares at least half of its words about the matter. If it
/// has only words about what to do, it shares all of them.
fn is_about(takes_back: &Statement, rule: &Statement) -> bool {
    let own = &takes_back.matter;
    if own.is_empty() {
        return !takes_back.verbs.is_empty() && takes_back.verbs.is_subset(&rule.verbs);
    }
    // A list entry without words of a rule has all its words in neither set.
    let shared = own
        .iter()
        .filter(|word| rule.matter.contains(*word))
        .count();
    shared > 0 && shared * 2 >= own.len()
}
