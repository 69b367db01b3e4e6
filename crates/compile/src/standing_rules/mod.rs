//! Standing rules that are not in view, shown again at the start of the history.
//!
//! What a person asked to hold from then on must not be lost because its message was cut, covered or never in the window. Which
//! rules must be shown depends on what is in view, so it is decided behind the budget and latched in the plan when an epoch opens; within an
//! epoch the list stays, as a new rule is itself in view. They are shown as the user's words: in the system prompt they would have the rank of
//! the host's.
//!
//! Two limits: [`MAX_RULE_TOKENS`], and an eighth of the window. What does not fit is named in the report.
//!
//! Not here: which sentences are rules and which are taken back (`contexture-condense`).

mod choose;
mod list;
mod statements;

pub(crate) use choose::{RuleChoice, show_rules};
pub use list::{StandingRule, list_standing_rules};
pub(crate) use statements::{
    FoundRules, ItemStatements, KnownRules, RulesOnPath, find_item_statements,
};
