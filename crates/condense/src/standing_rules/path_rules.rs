//! Which rules of a path still hold.
//!
//! A later sentence takes a rule back if its words take something back and are about the rule's matter. In doubt both stay.
//!
//! Not here: what the host decides (`contexture-compile`), and what is in view.

use std::ops::Deref;

use super::language::TakesBack;
use super::statement::{RuleStrength, Statement};

/// Most rules of a path. Of more the oldest wishes are passed over, then the oldest of the others. Far more than can be shown.
const MAX_RULES: usize = 300;

/// The rules of a path that nothing has taken back, oldest first. They grow with the path: each statement is added once.
#[derive(Clone, Debug)]
pub struct StandingRules<S> {
    rules: Vec<RuleOnPath<S>>,
}

/// A rule and where it was said.
#[derive(Clone, Copy, Debug)]
pub struct RuleOnPath<S> {
    /// Index on the path of the message that says it.
    pub index: usize,
    /// How expressly it is stated.
    pub strength: RuleStrength,
    statement: S,
}

impl<S: Deref<Target = Statement>> RuleOnPath<S> {
    /// The sentence as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.statement.text
    }
}

impl<S> Default for StandingRules<S> {
    fn default() -> Self {
        Self { rules: Vec::new() }
    }
}

impl<S: Deref<Target = Statement>> StandingRules<S> {
    /// Reads the statements of a path in order, each with the index of its item.
    #[must_use]
    pub fn from_statements(statements: impl IntoIterator<Item = (usize, S)>) -> Self {
        let mut rules = Self::default();
        for (index, statement) in statements {
            rules.add_statement(index, statement);
        }
        rules
    }

    /// Reads the next statement of the path, with the index of its item.
    pub fn add_statement(&mut self, index: usize, statement: S) {
        let rules = &mut self.rules;
        if let Some(what) = statement.takes_back {
            rules.retain(|rule| !takes_back(&statement, what, &rule.statement));
        }
        let Some(strength) = statement.strength() else {
            return;
        };
        // A fact that an earlier sentence says with more words is known already.
        let is_known = |rule: &RuleOnPath<S>| {
            rule.text() != statement.text && says_too(&rule.statement, &statement)
        };
        if rules.iter().any(is_known) {
            return;
        }
        // Said again, it was said last.
        rules.retain(|rule| !is_said_again(&rule.statement, &statement));
        if rules.len() == MAX_RULES {
            let is_wish = |rule: &RuleOnPath<S>| rule.strength == RuleStrength::Wish;
            rules.remove(rules.iter().position(is_wish).unwrap_or(0));
        }
        rules.push(RuleOnPath {
            index,
            strength,
            statement,
        });
    }

    /// The rules, oldest first.
    #[must_use]
    pub fn rules(&self) -> &[RuleOnPath<S>] {
        &self.rules
    }
}

/// Whether a later sentence says what an earlier one says: in the same words, or a fact with more of them.
fn is_said_again(earlier: &Statement, later: &Statement) -> bool {
    earlier.text == later.text || same_words(&earlier.text, &later.text) || says_too(later, earlier)
}

/// Whether two sentences differ only in capitals, spaces and marks.
fn same_words(one: &str, other: &str) -> bool {
    let letters = |text: &str| {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect::<String>()
    };
    letters(one) == letters(other)
}

/// Whether one fact says all of another. A word that turns one of them round makes them two.
fn says_too(longer: &Statement, shorter: &Statement) -> bool {
    longer.is_fact
        && shorter.is_fact
        && longer.matter.is_negated == shorter.matter.is_negated
        && shorter.matter.is_within(&longer.matter)
}

/// Whether a sentence takes a rule back: it can take such a rule back, and is about the same matter.
///
/// The less expressly it speaks of a rule, the more of the words they share: all of its own for a fact, and for a permission more
/// than half of both and what is to be done, as "you can book a hotel again" says nothing of "never book a hotel with stairs".
fn takes_back(sentence: &Statement, what: TakesBack, rule: &Statement) -> bool {
    let (own, about) = (&sentence.matter, &rule.matter);
    // A lost fact, such as an allergy, can do harm: a word more than it has is about something else.
    if rule.is_fact && !rule.is_order {
        return matches!(what, TakesBack::Named | TakesBack::OfPerson) && own.is_within(about);
    }
    // If it has only words about what to do, it shares all of them; and a rule about something else than doing is not lifted by it.
    if own.things.is_empty() {
        return own.is_within(about)
            && match what {
                TakesBack::Named | TakesBack::Orders => true,
                TakesBack::Permits => about.things.is_empty(),
                TakesBack::OfPerson => about.is_within(own),
            };
    }
    let shared = own.shared_things(about) * 2;
    // Half will do where that is more than one word: a rule may give its reason.
    let covers = shared > about.things.len() || (shared >= about.things.len() && shared > 2);
    shared > own.things.len()
        && match what {
            // What stands beside a fact is about more than itself.
            TakesBack::Orders => covers || !rule.is_fact,
            // What was said of a matter may be one thing of several.
            TakesBack::Named => shared >= about.things.len(),
            // Mostly it is meant for once, or for something beside it.
            TakesBack::Permits => covers && own.shares_verb_of(about),
            // "I no longer want a hotel" says nothing of what to book.
            TakesBack::OfPerson => {
                rule.strength() == Some(RuleStrength::Wish) && shared > about.things.len()
            }
        }
}
