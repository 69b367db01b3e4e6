//! The sentences of an item that state a rule, or take one back.
//!
//! Not here: which rules of a path still hold (`path_rules`).

use contexture_ir::{Item, Origin};

use super::language::{Finding, Matter, TakesBack, has_trigger, languages_of};
use super::normal_text::MaskedText;
use crate::extract::own_words::{own_parts, own_passages};

/// The name of the element in which rules are shown to a model.
pub(super) const ELEMENT: &str = "standing_rules";

/// A sentence of a person that says something about rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The sentence as it was written: one line, without the mark of a list.
    pub text: String,
    /// What it says.
    pub kind: StatementKind,
    /// The words that say what it is about.
    pub(super) matter: Matter,
    /// Whether it is a fact about the person, rather than what to do.
    pub(super) is_fact: bool,
    /// Whether it says what to do, beside such a fact or alone.
    pub(super) is_order: bool,
    /// What it takes back, if anything.
    pub(super) takes_back: Option<TakesBack>,
}

/// What a sentence says about rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// It is one.
    Rule(RuleStrength),
    /// It takes earlier ones back.
    TakesBack,
    /// It is one, and takes earlier ones about the same matter back.
    Replaces(RuleStrength),
}

/// How expressly a rule is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleStrength {
    /// A wish: "I prefer short answers."
    Wish,
    /// An express rule or a fact: "never", "from now on", "I am allergic to".
    Express,
}

impl Statement {
    /// How expressly it is stated, if it is a rule.
    #[must_use]
    pub const fn strength(&self) -> Option<RuleStrength> {
        match self.kind {
            StatementKind::Rule(strength) | StatementKind::Replaces(strength) => Some(strength),
            StatementKind::TakesBack => None,
        }
    }
}

/// Finds what a person says about rules in an item: English, German, Spanish and French sentences, in their order.
///
/// The result follows from the origin, the role and the text of the item alone. Items that no person wrote have none.
///
/// ```
/// use contexture_condense::{RuleStrength, find_statements};
/// use contexture_ir::{Item, Message, Origin, Role};
///
/// let message = Item::from(Message::text(Role::User, "Fix the login. Never push to main!"));
/// let found = find_statements(Origin::User, &message);
/// assert_eq!(found[0].text, "Never push to main!");
/// assert_eq!(found[0].strength(), Some(RuleStrength::Express));
/// assert!(find_statements(Origin::Tool, &message).is_empty());
/// ```
#[must_use]
pub fn find_statements(origin: Origin, item: &Item) -> Vec<Statement> {
    let mut found = Vec::new();
    for part in own_parts(origin, item) {
        // Most texts have no word of a rule: they cost one pass.
        if has_trigger(part) {
            for passage in own_passages(part) {
                add_statements(passage, &mut found);
            }
        }
    }
    found
}

fn add_statements(passage: &str, found: &mut Vec<Statement>) {
    let masked = MaskedText::new(passage);
    let mut in_list = false;
    for sentence in masked.sentences() {
        let may_lead_on = in_list && sentence.is_list_entry;
        // Most sentences have no word of a rule, and their plain form is never needed.
        if !may_lead_on && !has_trigger(sentence.text) {
            in_list = false;
            continue;
        }
        let Some(plain) = masked.plain_form(&sentence) else {
            in_list = false;
            continue;
        };
        // Shown again, the name would end the element in which rules stand; and a line of a program says nothing to anybody.
        if plain.contains(ELEMENT) || is_code(&plain) {
            continue;
        }
        let mut strongest: Option<(StatementKind, Finding, Matter)> = None;
        let mut leads_list = false;
        for language in languages_of(&plain) {
            let mut finding = language.classify(&plain);
            if finding == Finding::default() && language.introduces_person(sentence.text, &plain) {
                (finding.is_fact, finding.is_strong, finding.is_plain) = (true, true, true);
            }
            leads_list |= finding.leads_list;
            if let Some(kind) = kind_of(finding)
                && strongest
                    .as_ref()
                    .is_none_or(|(other, ..)| rank(kind) > rank(*other))
            {
                strongest = Some((kind, finding, language.matter_of(&plain)));
            }
        }
        // Entries of a list of rules are rules, whatever their words.
        if may_lead_on && strongest.is_none() {
            let kind = StatementKind::Rule(RuleStrength::Express);
            strongest = Some((kind, Finding::default(), Matter::default()));
        }
        in_list = leads_list || may_lead_on;
        if let Some((kind, finding, matter)) = strongest.filter(|_| has_words(&plain)) {
            found.push(Statement {
                text: sentence.text.to_owned(),
                kind,
                matter,
                is_fact: finding.is_fact,
                is_order: finding.is_order,
                takes_back: match kind {
                    StatementKind::Rule(_) => None,
                    // What stands in the place of an order leaves facts alone.
                    _ => finding.takes_back.or(Some(TakesBack::Orders)),
                },
            });
        }
    }
}

/// Whether a line of a program stands there without marks around it: one with a comment, or that ends as no sentence does.
///
/// Entries of a list end in `;` too, so that alone is no sign.
fn is_code(plain: &str) -> bool {
    let has_code =
        || plain.contains(['=', '(', '{', '}', '[', '<', '>', '$']) || plain.contains("::");
    plain.starts_with("//")
        || plain.contains(" //")
        || plain.ends_with(['{', '}'])
        || (plain.ends_with(';') && has_code())
}

/// Whether a sentence has two words: one alone says nothing.
fn has_words(plain: &str) -> bool {
    plain
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .nth(1)
        .is_some()
}

const fn kind_of(finding: Finding) -> Option<StatementKind> {
    let strength = match finding.is_strong {
        true => RuleStrength::Express,
        false => RuleStrength::Wish,
    };
    match finding {
        Finding {
            takes_back: Some(_),
            ..
        } => Some(StatementKind::TakesBack),
        Finding { replaces: true, .. } => Some(StatementKind::Replaces(strength)),
        Finding { is_plain: true, .. } => Some(StatementKind::Rule(strength)),
        _ => None,
    }
}

/// Of what two languages say the more express is taken; a rule rather than nothing.
const fn rank(kind: StatementKind) -> u8 {
    match kind {
        StatementKind::Rule(RuleStrength::Wish) => 0,
        StatementKind::Replaces(RuleStrength::Wish) => 1,
        StatementKind::TakesBack => 2,
        StatementKind::Rule(RuleStrength::Express) => 3,
        StatementKind::Replaces(RuleStrength::Express) => 4,
    }
}
